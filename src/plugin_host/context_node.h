#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "capi/handles.h"
#include "ep/provider.h"
#include "sardonyx/c_api.h"

namespace sardonyx::plugin_host {

/// What the session's entries say about compiled models.
struct ContextEntries {
  bool makes_context = false;
  bool embeds = false;
  bool shares = false;
  bool stops_sharing = false;
  /// Data go through functions of the program, not through files.
  bool writes_by_callback = false;
  bool reads_by_callback = false;
  /// ep.context_file_path; "" when it is not set.
  std::string file_path;
};
ContextEntries context_entries(const OrtSessionOptions& options);

/// Refuses entries that contradict each other.
/// Errors   InvalidArgument for shared data that are to be embedded.
Status check_context_entries(const ContextEntries& options);

/// The node that a plugin made for a part, by the model editor.
/// Errors   ORT_FAIL for no node or one that somebody else made; InvalidModel for one that does not
///          take and make the part's values.
Result<ContextNode> context_node_of(std::string_view ep_name, const OrtNode* made,
                                    const Graph& part);

/// Files that were promised by models of a group of shared data and are not there yet: the last
/// model of the group writes them. One per library.
class PromisedFiles {
 public:
  using Time = std::filesystem::file_time_type;
  /// Ends the group of the promise in place of a last model.
  using End = std::function<Status()>;

  /// Checks the file that a node names, after its provider compiled it from `start` on. In a group
  /// that goes on it is only remembered; when a group ends, files that it owes are reported.
  /// Errors   EP_FAIL, naming the node and the file that is not there.
  Status check(std::string_view ep_name, const ContextNode& node, const ContextEntries& options,
               const std::string& model_path, Time start, End end);
  /// Ends a group whose models go into another folder than those that are compiled next.
  void begin(const ContextEntries& options, const std::string& model_path);
  /// Ends a group that its program left open, and reports what is not written even then, as errors
  /// in the log.
  void finish();

 private:
  struct Promise {
    std::string ep_name;
    std::string model;
    std::string file;
    /// A file that is older is left from before.
    Time start;
  };
  static bool is_kept(const Promise& promise);
  std::vector<Promise> take(End* end);
  static void report(const std::vector<Promise>& promises);

  std::mutex mutex_;
  std::vector<Promise> promises_;
  End end_;
};

/// Whether something in the part is compiled already.
bool has_context_node(const Graph& part);

/// Looks at the nodes of compiled parts before the plugin loads them.
/// Errors   InvalidModel for data in a file that is not there, saying why that may be, and for data
///          that the plugin is known to crash on.
Status check_loadable(std::string_view ep_name, const Graph& part, const Model& model,
                      const ContextEntries& options);

}  // namespace sardonyx::plugin_host

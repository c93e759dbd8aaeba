#include "cli/ctx_gen/arguments.h"

#include <getopt.h>

#include <algorithm>

#include "cli/ctx_gen/qnn_options.h"
#include "cli/ctx_gen/vendors.h"

namespace sardonyx::cli::ctx_gen {

namespace {

constexpr const char* kHelpBegin =
    R"(Compiles models for a device ahead of time, so that they share one file of compiled data.

  ep_weight_sharing_ctx_gen [options] model1.onnx,model2.onnx,...

writes model1_ctx.onnx, model2_ctx.onnx, ... beside the models, and the compiled data in one file.
The recommended way today is "sardonyx compile a.onnx b.onnx -o FOLDER", or in Python
sardonyx.ModelCompiler (onnxruntime.ModelCompiler); this tool does the same with its old options.

Options:
  -e PROVIDER     qnn (default), tensorrt, openvino, vitisai: the vendor's provider library, which
                  its Python package brings; cpu: the built-in provider.
                  SARDONYX_PLUGIN_PATH names folders, or the library itself, to look at first.
  -p FILE         a plugin configuration in JSON, for any provider library; -e and -i do not count
                  then. Keys:
                    ep_library_registration_name  the name to register the library under
                    ep_library_path               the library
                    selected_ep_name              use all devices of this provider, or
                    selected_ep_device_indices    use these of the devices that -v lists; give
                                                  exactly one of the two
                    default_ep_options            optional: options of the provider, as texts
  -i "KEY|VALUE KEY|VALUE ..."
                  options of the provider. For qnn they are listed below; any other provider gets
                  them as they are and says itself what it does not know.
  -C "KEY|VALUE KEY|VALUE ..."
                  session configuration entries. Set by the tool, not by you:
                    ep.context_enable 1, ep.context_embed_mode 0, ep.context_file_path
  -v              say more: all log messages, and the numbered list of devices
  -h              this text

)";

constexpr const char* kHelpEnd = R"(
Examples:
  ep_weight_sharing_ctx_gen -e qnn -i "soc_model|60 htp_graph_finalization_optimization_mode|3" \
      prefill.onnx,decode.onnx
  ep_weight_sharing_ctx_gen -e cpu prefill.onnx,decode.onnx
  ep_weight_sharing_ctx_gen -p plugin_ep_config.json -v prefill.onnx,decode.onnx
Exit status: 0 done, 1 a plugin that cannot be used, 255 anything else.
)";

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

/// Appends entries that were given in several options.
Status append(Entries& all, const Entries& more) {
  for (const auto& entry : more) {
    for (const auto& [key, value] : all) {
      if (key == entry.first) return failure("'{}' is given twice.", key);
    }
    all.push_back(entry);
  }
  return {};
}

/// Takes out what the tool sets itself.
void protect_entries(Arguments& parsed) {
  Entries kept;
  for (auto& [key, value] : parsed.session_entries) {
    if (key == "ep.context_enable") {
      if (value != "1") parsed.warnings.emplace_back("Need to enable ep context cache.");
    } else if (key == "ep.context_embed_mode") {
      if (value != "0") {
        parsed.warnings.emplace_back("Only support non-embed model for weight sharing.");
      }
    } else if (key == "ep.context_file_path") {
      parsed.notes.emplace_back(
          "Not support to specify the generated Onnx context cache file name.");
    } else {
      kept.emplace_back(std::move(key), std::move(value));
    }
  }
  parsed.session_entries = std::move(kept);
}

Status read_models(Arguments& parsed, int argument_count, char** arguments) {
  if (optind >= argument_count) return failure("ERROR: Did not specify model paths");
  if (optind + 1 < argument_count) {
    return failure(
        "ERROR: '{}' is one argument too many: paths of models stand in one argument, with commas "
        "between them and no blanks",
        arguments[optind + 1]);
  }
  const std::string list = arguments[optind];
  if (list.empty()) return failure("ERROR: Did not specify model paths");
  parsed.models = split(list, ',');
  if (std::count(parsed.models.begin(), parsed.models.end(), "") > 0) {
    return failure("ERROR: a model path is empty in '{}'", list);
  }
  return {};
}

Status read_option(int letter, Arguments& parsed) {
  switch (letter) {
    case 'e':
      parsed.provider = optarg;
      parsed.names_provider = true;
      if (parsed.provider == "cpu" || find_vendor(parsed.provider) != nullptr) return {};
      return failure("The execution provider is not included in this tool.");
    case 'p':
      parsed.plugin_config = optarg;
      if (!parsed.plugin_config.empty()) return {};
      return failure("ERROR: -p needs the path of a plugin configuration");
    case 'v': parsed.is_verbose = true; return {};
    case 'h': parsed.wants_help = true; return {};
    case 'i':
    case 'C': {
      const char* option = letter == 'i' ? "-i" : "-C";
      auto entries = parse_entries(optarg);
      if (!entries.ok()) return failure("ERROR: {}: {}", option, entries.status().text());
      const Status status =
          append(letter == 'i' ? parsed.provider_options : parsed.session_entries, *entries);
      return status.ok() ? Status() : failure("ERROR: {}: {}", option, status.text());
    }
    default: return failure("ERROR: unknown option, or one without its value");
  }
}

}  // namespace

std::string usage() { return std::string(kHelpBegin) + qnn_options_help() + kHelpEnd; }

Result<Entries> parse_entries(const std::string& text) {
  Entries entries;
  std::size_t begin = 0;
  static constexpr const char* kBlanks = " \t\r\n";
  while ((begin = text.find_first_not_of(kBlanks, begin)) != std::string::npos) {
    const std::size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    const std::string entry = text.substr(begin, end - begin);
    begin = end;
    const std::size_t bar = entry.find('|');
    if (bar == std::string::npos) {
      return failure(
          "Use a '|' to separate the key and value for the run-time option you are trying to use. "
          "Found '{}'.",
          entry);
    }
    if (bar == 0) return failure("the key is empty in '{}'.", entry);
    if (bar + 1 == entry.size()) return failure("the value is empty in '{}'.", entry);
    SDX_TRY(append(entries, {{entry.substr(0, bar), entry.substr(bar + 1)}}));
  }
  return entries;
}

Result<Arguments> parse_arguments(int argument_count, char** arguments) {
  Arguments parsed;
  static const option kLong[] = {{"help", no_argument, nullptr, 'h'}, {nullptr, 0, nullptr, 0}};
  opterr = 0;
  for (int letter = 0;
       (letter = getopt_long(argument_count, arguments, "e:p:i:C:vh", kLong, nullptr)) != -1;) {
    SDX_TRY(read_option(letter, parsed));
  }
  if (parsed.wants_help) return parsed;
  SDX_TRY(read_models(parsed, argument_count, arguments));
  protect_entries(parsed);
  if (!parsed.plugin_config.empty()) {
    if (parsed.names_provider || !parsed.provider_options.empty()) {
      parsed.warnings.emplace_back("-e and -i do not count beside -p.");
    }
    return parsed;
  }
  if (parsed.provider == "qnn") SDX_TRY(check_qnn_options(parsed.provider_options));
  return parsed;
}

}  // namespace sardonyx::cli::ctx_gen

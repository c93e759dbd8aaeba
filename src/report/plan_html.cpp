#include "base/text.h"
#include "report/json.h"
#include "report/plan_template.h"
#include "report/report.h"

namespace sardonyx {

namespace {

/// JSON that can stand inside a <script> element: no '<' that could end it, and none of the line
/// ends that JavaScript did not always allow in texts.
std::string embed(const Json& json) {
  const std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '<': safe += "\\u003c"; break;
      case '>': safe += "\\u003e"; break;
      case '&': safe += "\\u0026"; break;
      default: safe += c;
    }
  }
  return safe;
}

/// Errors   InvalidArgument for what is not there or of another kind.
Status check_lists(const Json& plan) {
  for (const char* key : {"devices", "layers", "nodes", "copies", "rules", "warnings"}) {
    const auto found = plan.find(key);
    if (found == plan.end() || !found->is_array()) {
      return failure(Code::InvalidArgument,
                     "the plan should have a list \"{}\"; what explain and placement() give has it",
                     key);
    }
  }
  return {};
}

}  // namespace

Result<std::string> plan_to_html(std::string_view plan) {
  const Json json = Json::parse(plan, nullptr, false);
  if (json.is_discarded() || !json.is_object()) {
    return Status(Code::InvalidArgument, "the plan is not a JSON object");
  }
  SDX_TRY(check_lists(json));
  const std::string_view page = kPlanTemplate;
  constexpr std::string_view kMark = "/*PLAN*/null";
  const std::size_t at = page.find(kMark);
  if (at == std::string_view::npos) return Status(Code::Internal, "the page has no place for data");
  return fmt::format("{}{}{}", page.substr(0, at), embed(json), page.substr(at + kMark.size()));
}

}  // namespace sardonyx

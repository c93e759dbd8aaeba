#include "ops/schema.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/text.h"
#include "ops/families.h"
#include "ops/refused.h"

namespace sardonyx {

namespace {

using Key = std::pair<std::string_view, std::string_view>;

/// Rows by domain and name, oldest version first.
const std::map<Key, std::vector<const OpSchema*>>& schema_index() {
  static const auto* index = [] {
    auto* map = new std::map<Key, std::vector<const OpSchema*>>;
    for (const OpSchema& row : all_schemas()) (*map)[{row.domain, row.name}].push_back(&row);
    for (auto& [key, rows] : *map) {
      std::sort(rows.begin(), rows.end(),
                [](const OpSchema* a, const OpSchema* b) { return a->since < b->since; });
    }
    return map;
  }();
  return *index;
}

std::string qualified(std::string_view domain, std::string_view name) {
  return domain.empty() ? std::string(name) : fmt::format("{}:{}", domain, name);
}

Status unknown_operator(std::string_view domain, std::string_view name) {
  if (const std::string_view reason = refusal_reason(domain, name); !reason.empty()) {
    return failure(Code::Unsupported, "operator {} is not supported: {}", qualified(domain, name),
                   reason);
  }
  std::vector<std::string> known;
  for (const auto& [key, rows] : schema_index()) {
    if (key.first == domain) known.emplace_back(key.second);
  }
  if (known.empty()) {
    return failure(Code::InvalidModel, "operator {} is of domain '{}', which is not known",
                   qualified(domain, name), domain);
  }
  const std::string guess = nearest(name, known);
  return failure(Code::InvalidModel, "operator {} is not known{}", qualified(domain, name),
                 guess.empty() ? "" : fmt::format(" (did you mean {}?)", guess));
}

Arity arity_of(std::string_view letters) {
  Arity arity{0, 0};
  for (const char letter : letters) {
    if (letter == '*') {
      arity.most = -1;
      return arity;
    }
    ++arity.most;
    if (std::isupper(static_cast<unsigned char>(letter)) != 0) arity.least = arity.most;
  }
  return arity;
}

}  // namespace

const std::vector<OpSchema>& all_schemas() {
  static const auto* rows = [] {
    auto* all = new std::vector<OpSchema>;
    for (const auto family : kFamilies) {
      const auto part = family();
      all->insert(all->end(), part.begin(), part.end());
    }
    return all;
  }();
  return *rows;
}

Status check_opset(std::string_view domain, std::int64_t version) {
  const bool is_ml = domain == "ai.onnx.ml";
  if (!domain.empty() && !is_ml) return {};
  const std::int64_t newest = is_ml ? kOnnxMlOpsetReviewed : kOnnxOpsetReviewed;
  if (version >= 1 && version <= newest) return {};
  return failure(Code::Unsupported,
                 "the model imports opset {} of {}; this build knows versions 1 to {}", version,
                 is_ml ? "ai.onnx.ml" : "ai.onnx", newest);
}

Result<const OpSchema*> find_schema(std::string_view domain, std::string_view name,
                                    std::int64_t opset) {
  const auto found = schema_index().find({domain, name});
  if (found == schema_index().end()) return unknown_operator(domain, name);
  const OpSchema* best = nullptr;
  for (const OpSchema* row : found->second) {
    if (row->since <= opset) best = row;
  }
  if (best == nullptr) {
    return failure(Code::Unsupported,
                   "operator {} exists since opset {}, but the model imports opset {}",
                   qualified(domain, name), found->second.front()->since, opset);
  }
  if (best->has(kDeprecated)) {
    return failure(Code::Unsupported, "operator {} was withdrawn in opset {} (the model uses {})",
                   qualified(domain, name), best->since, opset);
  }
  return best;
}

Arity input_arity(const Signature& signature) {
  const std::string_view text = signature.text;
  return arity_of(text.substr(0, text.find('>')));
}

Arity output_arity(const Signature& signature) {
  const std::string_view text = signature.text;
  return arity_of(text.substr(text.find('>') + 1));
}

}  // namespace sardonyx

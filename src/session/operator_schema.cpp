#include "session/operator_schema.h"

#include <cctype>

#include "base/text.h"
#include "ops/schema.h"

namespace sardonyx {

namespace {

std::vector<std::string> type_names(DTypeSet set) {
  std::vector<std::string> names;
  for (int i = 1; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (contains(set, dtype)) names.push_back(fmt::format("tensor({})", dtype_name(dtype)));
  }
  return names;
}

/// What a letter of a signature stands for.
struct Letter {
  const char* name;
  DTypeSet types;
  /// Each place has a type of its own.
  bool is_alone;
};

/// Nothing for letters with one type.
std::optional<Letter> meaning_of(char letter, const Signature& signature) {
  switch (std::toupper(static_cast<unsigned char>(letter))) {
    case 'T': return Letter{"T", signature.t, false};
    case 'U': return Letter{"T1", signature.u, false};
    case 'V': return Letter{"T2", signature.v, false};
    case 'W': return Letter{"T3", signature.w, false};
    case 'N': return Letter{"N", set_of(DType::Int32, DType::Int64), true};
    case 'X': return Letter{"X", kAll, true};
    default: return std::nullopt;
  }
}

/// Index of the constraint of that name, made when it is new.
std::size_t constraint_index(OperatorSchema& schema, const std::string& name, DTypeSet types) {
  for (std::size_t i = 0; i < schema.constraints.size(); ++i) {
    if (schema.constraints[i].name == name) return i;
  }
  schema.constraints.push_back({name, type_names(types), {}, {}});
  return schema.constraints.size() - 1;
}

void add_ports(std::string_view letters, bool is_input, const Signature& signature,
               OperatorSchema& schema) {
  auto& ports = is_input ? schema.inputs : schema.outputs;
  for (const char letter : letters) {
    if (letter == '*') continue;
    const std::size_t place = ports.size();
    OperatorPort port{fmt::format("{}{}", is_input ? "input" : "output", place), std::nullopt};
    if (const auto meaning = meaning_of(letter, signature)) {
      std::string name = meaning->name;
      if (meaning->is_alone) name += fmt::format("_{}", port.name);
      port.constraint = constraint_index(schema, name, meaning->types);
      OperatorConstraint& constraint = schema.constraints[*port.constraint];
      (is_input ? constraint.inputs : constraint.outputs).push_back(place);
    }
    ports.push_back(std::move(port));
  }
}

}  // namespace

std::optional<OperatorSchema> operator_schema(std::string_view domain, std::string_view name,
                                              int version) {
  if (domain == "ai.onnx") domain = "";
  const OpSchema* row = nullptr;
  for (const OpSchema& candidate : all_schemas()) {
    if (candidate.domain != domain || candidate.name != name || candidate.since > version) continue;
    if (row == nullptr || candidate.since > row->since) row = &candidate;
  }
  if (row == nullptr || row->has(kDeprecated)) return std::nullopt;
  OperatorSchema schema;
  schema.since = row->since;
  const std::string_view letters = row->signature.text;
  const auto arrow = letters.find('>');
  add_ports(letters.substr(0, arrow), true, row->signature, schema);
  add_ports(letters.substr(arrow + 1), false, row->signature, schema);
  return schema;
}

}  // namespace sardonyx

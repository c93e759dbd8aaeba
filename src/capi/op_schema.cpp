// What the library knows of operators, for plugins that register kernels by it.
#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"
#include "session/operator_schema.h"

struct OrtOpSchemaTypeConstraint {
  sardonyx::OperatorConstraint constraint;
  std::vector<const char*> types;
};

struct OrtOpSchema {
  sardonyx::OperatorSchema schema;
  std::vector<OrtOpSchemaTypeConstraint> constraints;
};

namespace sardonyx::capi::ep_api {

namespace {

using Ports = std::vector<OperatorPort> OperatorSchema::*;

Result<const OperatorPort*> port_at(const OrtOpSchema* schema, Ports ports, size_t index) {
  SDX_TRY(require(schema, "schema"));
  const auto& all = schema->schema.*ports;
  if (index < all.size()) return &all[index];
  return failure(Code::InvalidArgument, "index {} is outside the {} {} of the operator", index,
                 all.size(), ports == &OperatorSchema::inputs ? "inputs" : "outputs");
}

Status give_count(const OrtOpSchema* schema, Ports ports, size_t* out) {
  SDX_TRY(require(schema, "schema"));
  SDX_TRY(require(out, "out"));
  *out = (schema->schema.*ports).size();
  return {};
}

Status give_name(const OrtOpSchema* schema, Ports ports, size_t index, const char** out) {
  SDX_TRY(require(out, "out"));
  SDX_ASSIGN(const OperatorPort* port, port_at(schema, ports, index));
  *out = port->name.c_str();
  return {};
}

/// Null for an input or output that has one type only.
Status give_constraint(const OrtOpSchema* schema, Ports ports, size_t index,
                       const OrtOpSchemaTypeConstraint** out) {
  SDX_TRY(require(out, "out"));
  SDX_ASSIGN(const OperatorPort* port, port_at(schema, ports, index));
  *out = port->constraint ? &schema->constraints[*port->constraint] : nullptr;
  return {};
}

Status give_indices(const OrtOpSchemaTypeConstraint* constraint,
                    std::vector<size_t> OperatorConstraint::* member, const size_t** out_indices,
                    size_t* count) {
  SDX_TRY(require(constraint, "type_constraint"));
  SDX_TRY(require(out_indices, "out_indices"));
  SDX_TRY(require(count, "count"));
  *out_indices = (constraint->constraint.*member).data();
  *count = (constraint->constraint.*member).size();
  return {};
}

}  // namespace

OrtStatus* GetOpSchema(const char* name, int max_inclusive_version, const char* domain,
                       OrtOpSchema** out_schema) noexcept {
  return guarded("GetOpSchema", [&]() -> Status {
    SDX_TRY(require(name, "name"));
    SDX_TRY(require(domain, "domain"));
    SDX_TRY(require(out_schema, "out_schema"));
    *out_schema = nullptr;
    auto found = operator_schema(domain, name, max_inclusive_version);
    if (!found) return {};
    auto made = std::make_unique<OrtOpSchema>();
    made->schema = std::move(*found);
    for (const OperatorConstraint& constraint : made->schema.constraints) {
      made->constraints.push_back({constraint, {}});
    }
    for (OrtOpSchemaTypeConstraint& constraint : made->constraints) {
      for (const auto& type : constraint.constraint.types) constraint.types.push_back(type.c_str());
    }
    *out_schema = made.release();
    return {};
  });
}

void ReleaseOpSchema(OrtOpSchema* object) noexcept { delete object; }

OrtStatus* OpSchema_GetSinceVersion(const OrtOpSchema* schema, int* out) noexcept {
  return guarded("OpSchema_GetSinceVersion", [&]() -> Status {
    SDX_TRY(require(schema, "schema"));
    SDX_TRY(require(out, "out"));
    *out = schema->schema.since;
    return {};
  });
}

OrtStatus* OpSchema_GetNumInputs(const OrtOpSchema* schema, size_t* out) noexcept {
  return guarded("OpSchema_GetNumInputs",
                 [&] { return give_count(schema, &OperatorSchema::inputs, out); });
}

OrtStatus* OpSchema_GetInputName(const OrtOpSchema* schema, size_t index,
                                 const char** out) noexcept {
  return guarded("OpSchema_GetInputName",
                 [&] { return give_name(schema, &OperatorSchema::inputs, index, out); });
}

OrtStatus* OpSchema_GetInputTypeConstraint(const OrtOpSchema* schema, size_t index,
                                           const OrtOpSchemaTypeConstraint** out) noexcept {
  return guarded("OpSchema_GetInputTypeConstraint",
                 [&] { return give_constraint(schema, &OperatorSchema::inputs, index, out); });
}

OrtStatus* OpSchema_GetNumOutputs(const OrtOpSchema* schema, size_t* out) noexcept {
  return guarded("OpSchema_GetNumOutputs",
                 [&] { return give_count(schema, &OperatorSchema::outputs, out); });
}

OrtStatus* OpSchema_GetOutputName(const OrtOpSchema* schema, size_t index,
                                  const char** out) noexcept {
  return guarded("OpSchema_GetOutputName",
                 [&] { return give_name(schema, &OperatorSchema::outputs, index, out); });
}

OrtStatus* OpSchema_GetOutputTypeConstraint(const OrtOpSchema* schema, size_t index,
                                            const OrtOpSchemaTypeConstraint** out) noexcept {
  return guarded("OpSchema_GetOutputTypeConstraint",
                 [&] { return give_constraint(schema, &OperatorSchema::outputs, index, out); });
}

OrtStatus* OpSchema_GetTypeConstraintCount(const OrtOpSchema* schema, size_t* out) noexcept {
  return guarded("OpSchema_GetTypeConstraintCount", [&]() -> Status {
    SDX_TRY(require(schema, "schema"));
    SDX_TRY(require(out, "out"));
    *out = schema->constraints.size();
    return {};
  });
}

OrtStatus* OpSchema_GetTypeConstraint(const OrtOpSchema* schema, size_t index,
                                      const OrtOpSchemaTypeConstraint** out) noexcept {
  return guarded("OpSchema_GetTypeConstraint", [&]() -> Status {
    SDX_TRY(require(schema, "schema"));
    SDX_TRY(require(out, "out"));
    if (index >= schema->constraints.size()) {
      return failure(Code::InvalidArgument,
                     "index {} is outside the {} constraints of the operator", index,
                     schema->constraints.size());
    }
    *out = &schema->constraints[index];
    return {};
  });
}

OrtStatus* OpSchemaTypeConstraint_GetTypeParamName(const OrtOpSchemaTypeConstraint* type_constraint,
                                                   const char** out) noexcept {
  return guarded("OpSchemaTypeConstraint_GetTypeParamName", [&]() -> Status {
    SDX_TRY(require(type_constraint, "type_constraint"));
    SDX_TRY(require(out, "out"));
    *out = type_constraint->constraint.name.c_str();
    return {};
  });
}

OrtStatus* OpSchemaTypeConstraint_GetAllowedTypes(const OrtOpSchemaTypeConstraint* type_constraint,
                                                  const char* const** out_types,
                                                  size_t* type_count) noexcept {
  return guarded("OpSchemaTypeConstraint_GetAllowedTypes", [&]() -> Status {
    SDX_TRY(require(type_constraint, "type_constraint"));
    SDX_TRY(require(out_types, "out_types"));
    SDX_TRY(require(type_count, "type_count"));
    *out_types = type_constraint->types.data();
    *type_count = type_constraint->types.size();
    return {};
  });
}

OrtStatus* OpSchemaTypeConstraint_GetInputIndices(const OrtOpSchemaTypeConstraint* type_constraint,
                                                  const size_t** out_indices,
                                                  size_t* count) noexcept {
  return guarded("OpSchemaTypeConstraint_GetInputIndices", [&] {
    return give_indices(type_constraint, &OperatorConstraint::inputs, out_indices, count);
  });
}

OrtStatus* OpSchemaTypeConstraint_GetOutputIndices(const OrtOpSchemaTypeConstraint* type_constraint,
                                                   const size_t** out_indices,
                                                   size_t* count) noexcept {
  return guarded("OpSchemaTypeConstraint_GetOutputIndices", [&] {
    return give_indices(type_constraint, &OperatorConstraint::outputs, out_indices, count);
  });
}

}  // namespace sardonyx::capi::ep_api

#pragma once

#include <string>
#include <utility>

#include "ir/attribute.h"
#include "sardonyx/c_api.h"

/// One attribute of a node or of an operator to be made. CreateOpAttr makes one that holds its
/// value; the ones that nodes hand out refer to the graph's.
struct OrtOpAttr {
  OrtOpAttr(std::string attribute_name, sardonyx::Attribute value)
      : name(std::move(attribute_name)), own(std::move(value)) {}
  OrtOpAttr(std::string attribute_name, const sardonyx::Attribute* value)
      : name(std::move(attribute_name)), borrowed(value) {}

  const sardonyx::Attribute& value() const { return borrowed != nullptr ? *borrowed : own; }

  std::string name;
  sardonyx::Attribute own;
  const sardonyx::Attribute* borrowed = nullptr;
};

namespace sardonyx::capi {

/// As the C interface numbers it; ORT_OP_ATTR_UNDEFINED for kinds that it has no number for.
OrtOpAttrType op_attr_type(const Attribute& attribute);

}  // namespace sardonyx::capi

#include "ops/formal.h"

#include <doctest/doctest.h>

using namespace sardonyx;

namespace {

Node node_of(std::string domain, std::string op, std::int64_t opset) {
  Node node;
  node.domain = std::move(domain);
  node.op_type = std::move(op);
  node.opset = opset;
  return node;
}

}  // namespace

TEST_CASE("inputs and outputs have the names of their type parameters") {
  const Node gather = node_of("", "Gather", 17);
  CHECK(type_parameter(gather, false, 0) == "T");
  CHECK(type_parameter(gather, false, 1) == "Tind");
  CHECK(type_parameter(gather, false, 2).empty());
  CHECK(type_parameter(gather, true, 0) == "T");
  const Node concat = node_of("", "Concat", 13);
  CHECK(type_parameter(concat, false, 7) == "T");
  const Node resize = node_of("", "Resize", 19);
  CHECK(type_parameter(resize, false, 0) == "T1");
  CHECK(type_parameter(resize, false, 1) == "T2");
  CHECK(type_parameter(resize, false, 2).empty());
  CHECK(type_parameter(node_of("", "NoSuchOperator", 17), false, 0).empty());
}

TEST_CASE("attributes that a node leaves out have the values of its version") {
  CHECK(attributes_with_defaults(node_of("", "Softmax", 11)).get_int("axis", 99) == 1);
  CHECK(attributes_with_defaults(node_of("", "Softmax", 13)).get_int("axis", 99) == -1);
  Node given = node_of("", "Softmax", 13);
  given.attributes.set("axis", std::int64_t{2});
  CHECK(attributes_with_defaults(given).get_int("axis", 99) == 2);
  const auto resize = attributes_with_defaults(node_of("", "Resize", 19));
  CHECK(resize.get_float("cubic_coeff_a", 0) == -0.75F);
  CHECK(resize.get_string("mode", "") == "nearest");
  CHECK(attributes_with_defaults(node_of("com.ms.internal.nhwc", "Conv", 11)).get_int("group", 0) ==
        1);
}

#include "session/session.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>

#include "base/log.h"
#include "session/known_keys.h"
#include "unit/onnx/messages.h"

using namespace messages;

namespace {

std::unique_ptr<Session> load(const std::string& bytes, SessionOptions options = {}) {
  auto session = Session::load_bytes(make_environment(),
                                     std::as_bytes(std::span(std::string_view(bytes))), options);
  REQUIRE_MESSAGE(session.ok(), session.status().to_string());
  return std::move(session).value();
}

std::string load_error(const std::string& bytes, const SessionOptions& options) {
  const auto session = Session::load_bytes(
      make_environment(), std::as_bytes(std::span(std::string_view(bytes))), options);
  return session.ok() ? "" : session.status().to_string();
}

/// y = -x.
std::string negation() {
  return model(input("x", Type::tensor(DType::Float32, Shape{2})) + node("Neg", {"x"}, {"y"}) +
               output("y"));
}

Tensor pair(float first, float second) {
  auto tensor = make_tensor<float>(Shape{2}, {first, second});
  REQUIRE(tensor.ok());
  return std::move(tensor).value();
}

/// An input x of type float[N,3] whose first dimension has this denotation, and y = Relu(x).
std::string denoted(const std::string& first_dim, const std::string& denotation) {
  const std::string first = first_dim + field(shape_field::kDenotation, denotation);
  const std::string shape =
      field(shape_field::kDim, first) + field(shape_field::kDim, integer(shape_field::kValue, 3));
  const std::string type = field(
      type_field::kTensor, integer(type_field::kElement, 1) + field(type_field::kSecond, shape));
  const std::string x = field(value_info_field::kName, "x") + field(value_info_field::kType, type);
  return model(field(graph_field::kInput, x) + node("Relu", {"x"}, {"y"}) + output("y"));
}

std::string symbol(const std::string& name) { return field(shape_field::kParameter, name); }

}  // namespace

TEST_CASE("an output that is asked for twice fills both buffers") {
  const auto session = load(negation());
  Tensor first = pair(0, 0);
  Tensor second = pair(0, 0);
  const std::string_view input_names[] = {"x"};
  const Datum inputs[] = {Datum(pair(1, 2))};
  const std::string_view output_names[] = {"y", "y"};
  SUBCASE("both given") {
    Datum outputs[] = {Datum(first), Datum(second)};
    REQUIRE(session->run(input_names, inputs, output_names, outputs).ok());
    CHECK(elements<float>(first) == std::vector<float>{-1, -2});
    CHECK(elements<float>(second) == std::vector<float>{-1, -2});
    CHECK(outputs[0].tensor()->data() == first.data());
    CHECK(outputs[1].tensor()->data() == second.data());
  }
  SUBCASE("the second given") {
    Datum outputs[] = {Datum(), Datum(second)};
    REQUIRE(session->run(input_names, inputs, output_names, outputs).ok());
    CHECK(elements<float>(*outputs[0].tensor()) == std::vector<float>{-1, -2});
    CHECK(elements<float>(second) == std::vector<float>{-1, -2});
    CHECK(outputs[0].tensor()->data() != second.data());
  }
  SUBCASE("none given") {
    Datum outputs[2];
    REQUIRE(session->run(input_names, inputs, output_names, outputs).ok());
    CHECK(elements<float>(*outputs[1].tensor()) == std::vector<float>{-1, -2});
    CHECK(outputs[0].tensor()->data() != outputs[1].tensor()->data());
  }
}

TEST_CASE("dimensions are fixed by denotation, whatever its case") {
  SessionOptions options;
  options.dimensions_by_denotation = {{"data_batch", 4}};
  CHECK(load(denoted(symbol("N"), "DATA_BATCH"), options)->outputs()[0].type.shape == Shape{4, 3});
  CHECK(load(denoted("", "DATA_BATCH"), options)->inputs()[0].type.shape == Shape{4, 3});
  CHECK(!is_known((*load(denoted(symbol("N"), "DATA_TIME"), options)->inputs()[0].type.shape)[0]));
  options.dimensions_by_denotation = {{"data_batch", -1}};
  CHECK((*load(denoted(symbol("N"), "DATA_BATCH"), options)->inputs()[0].type.shape)[0] ==
        kUnknownDim);
}

TEST_CASE("overrides that contradict the model or each other are refused") {
  SessionOptions options;
  options.dimensions_by_denotation = {{"DATA_BATCH", 4}};
  CHECK(contains_text(load_error(denoted(integer(shape_field::kValue, 2), "DATA_BATCH"), options),
                      "dimension 0 of input 'x' is 2, but the options override it with 4"));
  options.dimensions_by_name = {{"N", 5}};
  CHECK(contains_text(load_error(denoted(symbol("N"), "DATA_BATCH"), options),
                      "dimension 'N' is to be 5 by its name, but 4 by its denotation"));
}

TEST_CASE("a misspelled session config key is named in a warning, a foreign one is not") {
  CHECK(intended_session_key("session.disable_prepackin") == "session.disable_prepacking");
  CHECK(intended_session_key("disable_prepacking") == "session.disable_prepacking");
  CHECK(intended_session_key("session.disable_prepacking") == "");
  CHECK(intended_session_key("session.intra_op.allow_spinning") == "");
  CHECK(intended_session_key("company.tag") == "");

  std::vector<std::string> messages;
  set_log_sink([&](Severity severity, std::string_view message) {
    if (severity == Severity::Warning) messages.emplace_back(message);
  });
  SessionOptions options;
  options.entries = {{"session.use_env_allocator", "1"}, {"company.tag", "1"}};
  load(negation(), options);
  set_log_sink({});
  CHECK(messages == std::vector<std::string>{
                        "session config key 'session.use_env_allocator' is not known and has no "
                        "effect; did you mean 'session.use_env_allocators'?"});
}

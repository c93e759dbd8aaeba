// Every row of the operator table meets inputs that nobody thought of. The answer is a result or an
// error, from the plain evaluator and from compiled kernels alike.
#include <doctest/doctest.h>

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "ir/element.h"
#include "ops/attribute_rows.h"
#include "ops/schema.h"
#include "unit/small_graph.h"

using namespace sardonyx;

namespace {

/// Results larger than this are not made.
constexpr std::size_t kResultBytesMax = std::size_t{1} << 22;

class Chance {
 public:
  explicit Chance(unsigned seed) : random_(seed) {}
  std::size_t below(std::size_t bound) { return random_() % bound; }
  bool in_100(unsigned percent) { return random_() % 100 < percent; }
  template <typename T, std::size_t kCount>
  T one_of(const T (&items)[kCount]) {
    return items[below(kCount)];
  }

 private:
  std::mt19937 random_;
};

std::int64_t some_int(Chance& chance) {
  static constexpr std::int64_t kExtremes[] = {std::numeric_limits<std::int64_t>::min(),
                                               std::numeric_limits<std::int64_t>::max(),
                                               std::numeric_limits<std::int32_t>::min(),
                                               std::numeric_limits<std::int32_t>::max(),
                                               std::int64_t{1} << 62,
                                               std::int64_t{1} << 32,
                                               65536,
                                               1000,
                                               17,
                                               -17};
  if (chance.in_100(4)) return chance.one_of(kExtremes);
  return static_cast<std::int64_t>(chance.below(6)) - (chance.in_100(25) ? 2 : 0);
}

float some_float(Chance& chance) {
  static constexpr float kExtremes[] = {NAN, INFINITY, -INFINITY, 3.4e38F, -3.4e38F, 1e-45F};
  if (chance.in_100(4)) return chance.one_of(kExtremes);
  return static_cast<float>(chance.below(17)) * 0.25F - 1;
}

std::string some_text(Chance& chance) {
  static constexpr const char* kTexts[] = {
      "",         "none",          "tanh",    "linear",        "nearest",    "cubic", "constant",
      "edge",     "reflect",       "wrap",    "SAME_UPPER",    "SAME_LOWER", "VALID", "NOTSET",
      "add",      "mul",           "max",     "min",           "sum",        "mean",  "forward",
      "reverse",  "bidirectional", "relu",    "Sigmoid",       "Tanh",       "Relu",  "ij,jk->ik",
      "...i",     "DCR",           "CRD",     "align_corners", "half_pixel", "floor", "NFC",
      "LOGISTIC", "SOFTMAX",       "AVERAGE", "BRANCH_LEQ",    "TF",         "TFIDF", "L1",
      "RBF",      "UPPER",         "LOWER",   "RIGHT",         "a b",        "x",     "\xff\xfe"};
  return chance.one_of(kTexts);
}

/// Mostly small; now and then without elements, but for that with an axis of any length.
Shape some_shape(Chance& chance, int rank_max) {
  const auto rank = static_cast<int>(chance.below(static_cast<std::size_t>(rank_max)));
  Shape shape = Shape::filled(rank, 1);
  bool is_empty = false;
  for (int axis = 0; axis < rank; ++axis) {
    const bool is_zero = chance.in_100(6);
    is_empty = is_empty || is_zero;
    shape[axis] = is_zero ? 0 : 1 + static_cast<Dim>(chance.below(chance.in_100(5) ? 20 : 4));
  }
  const auto vast = static_cast<int>(chance.below(6));
  if (is_empty && vast < rank && shape[vast] != 0) shape[vast] = Dim{1} << 40;
  return shape;
}

DType some_dtype(Chance& chance, DTypeSet allowed) {
  for (int attempt = 0; attempt < 200; ++attempt) {
    const auto dtype = static_cast<DType>(1 + chance.below(kDTypeCount - 1));
    if (contains(allowed, dtype)) return dtype;
  }
  return DType::Float32;
}

Tensor some_tensor(Chance& chance, DType dtype, const Shape& shape) {
  auto made = Tensor::allocate(dtype, shape);
  REQUIRE(made.ok());
  Tensor tensor = std::move(made).value();
  const std::int64_t count = tensor.element_count();
  if (dtype == DType::String) {
    for (std::string& text : tensor.mutable_values<std::string>()) text = some_text(chance);
    return tensor;
  }
  for (std::byte& byte : tensor.mutable_values<std::byte>()) {
    byte = static_cast<std::byte>(chance.below(chance.in_100(10) ? 256 : 2));
  }
  for (std::int64_t i = 0; i < count; ++i) {
    if (dtype == DType::Bool) {
      tensor.mutable_values<bool>()[static_cast<std::size_t>(i)] = chance.in_100(50);
    } else if (contains(kInts, dtype)) {
      write_int(dtype, tensor.mutable_data(), i, some_int(chance));
    } else if (contains(kFloatsBf16, dtype)) {
      write_real(dtype, tensor.mutable_data(), i, some_float(chance));
    }
  }
  return tensor;
}

/// y = x, or a loop's or scan's body that passes everything on.
std::shared_ptr<Graph> some_graph(Chance& chance) {
  auto graph = std::make_shared<Graph>();
  const std::size_t inputs = chance.below(5);
  for (std::size_t i = 0; i < inputs; ++i) {
    const ValueId id = graph->add_value("i" + std::to_string(i), {});
    graph->add_input(id);
  }
  const ValueId constant = graph->add_value("c", Type::tensor(DType::Bool, Shape{}));
  graph->set_constant(constant, some_tensor(chance, DType::Bool, Shape{}));
  if (chance.in_100(50)) graph->add_output(constant);
  for (std::size_t i = 0; i < inputs; ++i) {
    if (chance.in_100(70)) graph->add_output(graph->inputs()[i]);
  }
  return graph;
}

template <typename T, typename Make>
std::vector<T> some_list(Chance& chance, Make make) {
  std::vector<T> list(chance.below(chance.in_100(10) ? 9 : 5));
  for (T& item : list) item = make(chance);
  return list;
}

Attribute some_attribute(Chance& chance, std::string_view kind) {
  const auto tensor = [](Chance& c) {
    return some_tensor(c, some_dtype(c, c.in_100(70) ? kNumeric | kAllClassic : kAll),
                       some_shape(c, 4));
  };
  const auto type = [](Chance& c) { return Type::tensor(some_dtype(c, kAll), some_shape(c, 4)); };
  if (kind == "i") return some_int(chance);
  if (kind == "f") return some_float(chance);
  if (kind == "s") return some_text(chance);
  if (kind == "t") return tensor(chance);
  if (kind == "g") return some_graph(chance);
  if (kind == "y") return type(chance);
  if (kind == "fs") return some_list<float>(chance, some_float);
  if (kind == "ss") return some_list<std::string>(chance, some_text);
  if (kind == "ts") return some_list<Tensor>(chance, tensor);
  if (kind == "p") {
    auto sparse = std::make_shared<SparseTensor>();
    sparse->shape = some_shape(chance, 3);
    sparse->values = some_tensor(chance, DType::Float32, Shape{1});
    sparse->indices = some_tensor(chance, DType::Int64, Shape{1});
    return std::shared_ptr<const SparseTensor>(std::move(sparse));
  }
  return some_list<std::int64_t>(chance, some_int);
}

void add_attributes(Chance& chance, const OpSchema& schema, Attributes& attributes) {
  for (const AttributeRow& row : attribute_rows(schema.attributes)) {
    if (!chance.in_100(row.is_required ? 98 : 30)) continue;
    attributes.set(std::string(row.name), some_attribute(chance, row.kind));
  }
}

/// The letters of one side of a signature, the last repeated as often as wished.
std::string some_letters(Chance& chance, std::string_view side) {
  const bool is_variadic = !side.empty() && side.back() == '*';
  std::string letters(side.substr(0, side.size() - is_variadic));
  if (is_variadic) {
    const std::size_t more = chance.below(4);
    letters.append(more, side[side.size() - 2]);
  }
  while (!letters.empty() && std::islower(static_cast<unsigned char>(letters.back())) != 0 &&
         chance.in_100(40)) {
    letters.pop_back();
  }
  if (!letters.empty() && chance.in_100(3)) letters.pop_back();
  if (chance.in_100(2)) letters.push_back('T');
  return letters;
}

/// One node with random operands, and feeds for its graph.
struct Case {
  SmallGraph small;
  std::vector<Datum> feeds;
  Node node;
  std::vector<Datum> operands;
};

class CaseMaker {
 public:
  CaseMaker(Chance& chance, const OpSchema& schema, Case& made)
      : chance_(chance), schema_(schema), made_(made), common_shape_(some_shape(chance, 6)) {}

  void make() {
    const std::string_view text = schema_.signature.text;
    const std::size_t middle = text.find('>');
    Node& node = made_.node;
    node.domain = schema_.domain;
    node.op_type = schema_.name;
    node.opset = schema_.since;
    for (const char letter : some_letters(chance_, text.substr(0, middle))) add_input(letter);
    for (const char letter : some_letters(chance_, text.substr(middle + 1))) {
      const bool is_left_out = chance_.in_100(letter == 'T' ? 3 : 15);
      node.outputs.push_back(
          is_left_out ? kNoValue : made_.small.graph.add_value(made_.small.graph.unique_name("y")));
    }
    add_attributes(chance_, schema_, node.attributes);
    made_.small.graph.add_node(Node(node));
    for (const ValueId id : node.outputs) {
      if (id != kNoValue) made_.small.graph.add_output(id);
    }
  }

 private:
  DType dtype_for(char upper) {
    if (chance_.in_100(2)) return some_dtype(chance_, kAll);
    switch (upper) {
      case 'I': return DType::Int64;
      case 'B': return DType::Bool;
      case 'F': return DType::Float32;
      case 'S': return DType::String;
      case 'N': return chance_.in_100(50) ? DType::Int64 : DType::Int32;
      case 'T':
      case 'U':
      case 'V':
      case 'W': break;
      default: return some_dtype(chance_, chance_.in_100(80) ? set_of(DType::Float32) : kAll);
    }
    DType& bound = bound_[upper - 'T'];
    const DTypeSet sets[] = {schema_.signature.t, schema_.signature.u, schema_.signature.v,
                             schema_.signature.w};
    const DTypeSet allowed = sets[upper - 'T'];
    if (bound == DType::Undefined) {
      const bool plain = chance_.in_100(40) && contains(allowed, DType::Float32);
      bound = plain ? DType::Float32 : some_dtype(chance_, allowed);
    }
    return bound;
  }

  Datum some_datum(char upper) {
    const Shape shape = chance_.in_100(55) ? common_shape_ : some_shape(chance_, 6);
    const Tensor tensor = some_tensor(chance_, dtype_for(upper), shape);
    if (upper != 'X' || chance_.in_100(60)) return tensor;
    auto sequence = std::make_shared<Sequence>();
    sequence->element = Type::tensor(tensor.dtype());
    sequence->items.assign(chance_.below(4), Datum(tensor));
    return std::shared_ptr<const Sequence>(std::move(sequence));
  }

  void add_input(char letter) {
    Graph& graph = made_.small.graph;
    const bool is_optional = std::islower(static_cast<unsigned char>(letter)) != 0;
    const bool is_variadic =
        std::string_view(schema_.signature.text).find('*') != std::string::npos;
    if (chance_.in_100(is_optional ? 30 : is_variadic ? 15 : 2)) {
      made_.node.inputs.push_back(kNoValue);
      made_.operands.emplace_back();
      return;
    }
    const char upper = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    Datum datum = some_datum(upper);
    const ValueId id = graph.add_value(graph.unique_name("x"), declared(datum));
    if (datum.tensor() != nullptr && chance_.in_100(30)) {
      graph.set_constant(id, *datum.tensor());
    } else {
      graph.add_input(id);
      made_.feeds.push_back(datum);
    }
    made_.node.inputs.push_back(id);
    made_.operands.push_back(std::move(datum));
  }

  /// The type as a model declares it: often without sizes.
  Type declared(const Datum& datum) {
    Type type = datum.type();
    if (!type.shape || chance_.in_100(50)) return type;
    if (chance_.in_100(40)) {
      type.shape.reset();
      return type;
    }
    for (int axis = 0; axis < type.shape->rank(); ++axis) {
      if (chance_.in_100(50)) (*type.shape)[axis] = kUnknownDim;
    }
    return type;
  }

  Chance& chance_;
  const OpSchema& schema_;
  Case& made_;
  Shape common_shape_;
  DType bound_[4] = {};
};

/// Runs cases one after the other over one pool and one store of weights.
class Bench {
 public:
  Bench() : pool_(ThreadPoolOptions{2}) {}

  void run(const OpSchema& schema, Case& made) {
    evaluate(schema, made);
    compile_and_run(made);
  }
  std::size_t evaluated = 0;
  std::size_t compiled = 0;

 private:
  void evaluate(const OpSchema& schema, const Case& made) {
    if (!subgraphs(made.node).empty()) return;
    std::vector<const Datum*> pointers;
    for (std::size_t i = 0; i < made.operands.size(); ++i) {
      pointers.push_back(made.node.inputs[i] == kNoValue ? nullptr : &made.operands[i]);
    }
    const auto result =
        evaluate_node(made.node, schema, made.small.graph, pointers, kResultBytesMax);
    check(result.ok() ? Status() : Status(result.status().code(), result.status().to_string()));
    if (!result.ok()) return;
    ++evaluated;
    CHECK(result->size() == made.node.outputs.size());
  }

  void compile_and_run(Case& made) {
    Status status = infer_types(made.small.graph);
    check(status);
    if (!status.ok() || is_large(made.small.graph)) return;
    PackedWeights weights(store_, {std::size_t{1} << 20, std::size_t{1} << 20});
    auto program = lower(made.small.graph, weights, 2);
    if (!program.ok()) return check(std::move(program).take_status());
    REQUIRE(weights.make_all(&pool_).ok());
    Executor executor(std::move(program).value());
    std::mt19937_64 random(1);
    const std::atomic<bool> cancel{false};
    RunState state{pool_, &cancel, nullptr, &random};
    for (int repeat = 0; repeat < 2; ++repeat) {
      std::vector<Datum> outputs(made.small.graph.outputs().size());
      status = executor.run(made.feeds, {}, outputs, state);
      check(status);
      if (!status.ok()) return;
    }
    ++compiled;
  }

  static bool is_large(const Graph& graph) {
    for (const ValueId id : graph.outputs()) {
      const Type& type = graph.value(id).type;
      const auto count = type.shape ? type.shape->element_count() : std::nullopt;
      const auto bytes = count ? dtype_bytes(type.dtype, *count) : std::nullopt;
      if (type.shape && type.shape->is_static() && (!bytes || *bytes > kResultBytesMax))
        return true;
    }
    return false;
  }

  static void check(const Status& status) {
    if (!status.ok()) CHECK(!status.message().empty());
  }

  ThreadPool pool_;
  WeightStore store_;
};

/// Cases per row; the environment asks for more.
unsigned rounds() {
  const char* wished = std::getenv("SARDONYX_TEST_ROUNDS");
  return wished != nullptr ? static_cast<unsigned>(std::atoi(wished)) : 12;
}

unsigned first_seed() {
  const char* wished = std::getenv("SARDONYX_TEST_SEED");
  return wished != nullptr ? static_cast<unsigned>(std::atoi(wished)) : 0;
}

}  // namespace

TEST_CASE("every operator answers whatever it is given with a result or an error") {
  Bench bench;
  const char* only = std::getenv("SARDONYX_TEST_OPERATOR");
  const std::vector<OpSchema>& rows = all_schemas();
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const OpSchema& schema = rows[row];
    if (schema.has(kDeprecated) || (only != nullptr && schema.name != only)) continue;
    for (unsigned round = 0; round < rounds(); ++round) {
      const unsigned seed = first_seed() + static_cast<unsigned>(row) * 100003U + round;
      const std::string what = std::string(schema.domain) + ":" + std::string(schema.name) + "-" +
                               std::to_string(schema.since) + " seed " + std::to_string(seed);
      CAPTURE(what);
      if (std::getenv("SARDONYX_TEST_TRACE") != nullptr) std::fprintf(stderr, "%s\n", what.c_str());
      Chance chance(seed);
      Case made;
      CaseMaker(chance, schema, made).make();
      bench.run(schema, made);
    }
  }
  MESSAGE(bench.evaluated << " evaluated, " << bench.compiled << " compiled");
  CHECK((only != nullptr || bench.evaluated > rows.size()));
}

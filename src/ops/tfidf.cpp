#include <algorithm>
#include <map>
#include <unordered_map>

#include "ir/element.h"
#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/movement.h"

namespace sardonyx {

namespace {

/// Size of the pool of n-grams in tokens, and whether they are strings.
struct Pool {
  const std::vector<std::string>* strings = nullptr;
  const std::vector<std::int64_t>* ints = nullptr;

  std::size_t size() const { return strings != nullptr ? strings->size() : ints->size(); }
};

Pool pool_of(const Attributes& attributes) {
  if (!attributes.get_strings("pool_strings").empty()) {
    return {&attributes.get_strings("pool_strings"), nullptr};
  }
  return {nullptr, &attributes.get_ints("pool_int64s")};
}

/// Checks the attributes against each other. Gives the number of output columns.
Result<Dim> column_count(const Attributes& attributes) {
  const auto& counts = attributes.get_ints("ngram_counts");
  const auto& columns = attributes.get_ints("ngram_indexes");
  const auto pool = static_cast<std::int64_t>(pool_of(attributes).size());
  std::int64_t ngrams = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::int64_t end = i + 1 < counts.size() ? counts[i + 1] : pool;
    const auto length = static_cast<std::int64_t>(i) + 1;
    if (counts[i] < 0 || end < counts[i] || end > pool || (end - counts[i]) % length != 0) {
      return failure(Code::InvalidModel, "ngram_counts[{}] is {}, which does not fit a pool of {}",
                     i, counts[i], pool);
    }
    ngrams += (end - counts[i]) / length;
  }
  if (ngrams != static_cast<std::int64_t>(columns.size())) {
    return failure(Code::InvalidModel, "the pool has {} n-grams, but ngram_indexes has {}", ngrams,
                   columns.size());
  }
  const auto& weights = attributes.get_floats("weights");
  if (!weights.empty() && weights.size() != columns.size()) {
    return failure(Code::InvalidModel, "weights has {} elements, expected {}", weights.size(),
                   columns.size());
  }
  Dim width = 0;
  for (const std::int64_t column : columns) {
    if (column < 0 || column >= std::int64_t{1} << 40) {
      return failure(Code::InvalidModel, "ngram_indexes holds {}", column);
    }
    width = std::max(width, column + 1);
  }
  return width;
}

Status infer_tfidf(InferContext& context) {
  const Attributes& attributes = context.attributes();
  const std::string mode = attributes.get_string("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") {
    return context.error("mode '{}' is none of TF, IDF, TFIDF", mode);
  }
  const std::int64_t least = attributes.get_int("min_gram_length", 0);
  if (least < 1 || attributes.get_int("max_gram_length", 0) < least ||
      attributes.get_int("max_skip_count", 0) < 0) {
    return context.error("lengths from {} to {} and a skip of {} are out of range", least,
                         attributes.get_int("max_gram_length", 0),
                         attributes.get_int("max_skip_count", 0));
  }
  SDX_ASSIGN(const Dim width, column_count(attributes));
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  if (input->rank() > 2) {
    return context.error("expected an input [C] or [N,C], found {}", input->to_string());
  }
  context.set_shape(0, input->rank() == 2 ? Shape{(*input)[0], width} : Shape{width});
  return {};
}

/// The n-grams of the pool as paths of tokens.
class NgramTree {
 public:
  NgramTree(const Attributes& attributes, std::int64_t least, std::int64_t most) {
    const Pool pool = pool_of(attributes);
    const auto& counts = attributes.get_ints("ngram_counts");
    std::int64_t ngram = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const auto length = static_cast<std::int64_t>(i) + 1;
      const std::int64_t end =
          i + 1 < counts.size() ? counts[i + 1] : static_cast<std::int64_t>(pool.size());
      for (std::int64_t begin = counts[i]; begin < end; begin += length, ++ngram) {
        if (length < least || length > most) continue;
        std::int64_t node = 0;
        for (std::int64_t k = begin; k < begin + length; ++k) {
          const auto at = static_cast<std::size_t>(k);
          node = child(node, pool.strings != nullptr ? intern((*pool.strings)[at])
                                                     : (*pool.ints)[at]);
        }
        ngram_at_[node] = ngram;
        longest_ = std::max(longest_, length);
      }
    }
  }

  std::int64_t longest() const { return longest_; }
  /// The token for a text; -1 when no n-gram has it.
  std::int64_t token(const std::string& text) const {
    const auto found = names_.find(text);
    return found != names_.end() ? found->second : -1;
  }
  /// The node below `node`, or -1.
  std::int64_t step(std::int64_t node, std::int64_t token) const {
    const auto found = children_.find({node, token});
    return found != children_.end() ? found->second : -1;
  }
  /// The n-gram that ends at `node`, or -1.
  std::int64_t ngram(std::int64_t node) const {
    const auto found = ngram_at_.find(node);
    return found != ngram_at_.end() ? found->second : -1;
  }

 private:
  std::int64_t child(std::int64_t node, std::int64_t token) {
    const auto next = static_cast<std::int64_t>(children_.size()) + 1;
    return children_.try_emplace({node, token}, next).first->second;
  }
  std::int64_t intern(const std::string& text) {
    return names_.try_emplace(text, static_cast<std::int64_t>(names_.size())).first->second;
  }

  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> children_;
  std::unordered_map<std::int64_t, std::int64_t> ngram_at_;
  std::unordered_map<std::string, std::int64_t> names_;
  std::int64_t longest_ = 0;
};

/// Calls found(ngram) for every n-gram in the row, with 0 to `skips` tokens left out in between.
template <typename Found>
void scan_row(const NgramTree& tree, std::span<const std::int64_t> row, std::int64_t skips,
              Found&& found) {
  const auto size = static_cast<std::int64_t>(row.size());
  for (std::int64_t stride = 1; stride <= std::min(skips, size) + 1; ++stride) {
    for (std::int64_t start = 0; start < size; ++start) {
      std::int64_t node = 0;
      std::int64_t length = 1;
      for (std::int64_t at = start; at < size && length <= tree.longest(); at += stride) {
        node = tree.step(node, row[static_cast<std::size_t>(at)]);
        if (node < 0) break;
        const std::int64_t ngram = tree.ngram(node);
        // Single tokens have nothing to skip and count once.
        if (ngram >= 0 && (length > 1 || stride == 1)) found(ngram);
        ++length;
      }
    }
  }
}

std::vector<std::int64_t> tokens_of(const Tensor& x, const NgramTree& tree) {
  std::vector<std::int64_t> tokens;
  tokens.reserve(static_cast<std::size_t>(x.element_count()));
  if (x.dtype() == DType::String) {
    for (const std::string& text : x.values<std::string>()) tokens.push_back(tree.token(text));
    return tokens;
  }
  for (std::int64_t i = 0; i < x.element_count(); ++i) {
    tokens.push_back(read_int(x.dtype(), x.data(), i));
  }
  return tokens;
}

Status evaluate_tfidf(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const Attributes& attributes = context.attributes();
  if ((x.dtype() == DType::String) != (pool_of(attributes).strings != nullptr)) {
    return context.error("the pool does not hold tensor({})", dtype_name(x.dtype()));
  }
  const NgramTree tree(attributes, attributes.get_int("min_gram_length", 1),
                       attributes.get_int("max_gram_length", 1));
  const auto& columns = attributes.get_ints("ngram_indexes");
  const auto& weights = attributes.get_floats("weights");
  const std::string mode = attributes.get_string("mode", "TF");
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  fill_zero(*y);
  const auto tokens = tokens_of(x, tree);
  const std::int64_t rows = x.rank() == 2 ? x.dim(0) : 1;
  const auto width = static_cast<std::size_t>(y->element_count() / rows);
  const std::size_t length = tokens.size() / static_cast<std::size_t>(rows);
  std::span<float> counts = y->mutable_values<float>();
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    scan_row(tree, std::span(tokens).subspan(row * length, length),
             attributes.get_int("max_skip_count", 0), [&](std::int64_t ngram) {
               const auto n = static_cast<std::size_t>(ngram);
               float& count = counts[row * width + static_cast<std::size_t>(columns[n])];
               const float weight = weights.empty() ? 1.0F : weights[n];
               count = mode == "TF" ? count + 1.0F : mode == "IDF" ? weight : count + weight;
             });
  }
  return {};
}

constexpr OpSchema kRows[] = {
    {"", "TfIdfVectorizer", 9, {"T>F", set_of(DType::Int32, DType::Int64, DType::String)},
     "max_gram_length:i! max_skip_count:i! min_gram_length:i! mode:s! ngram_counts:is! "
     "ngram_indexes:is! pool_int64s:is pool_strings:ss weights:fs",
     infer_tfidf, evaluate_tfidf},
};

}  // namespace

std::span<const OpSchema> tfidf_schemas() { return kRows; }

}  // namespace sardonyx

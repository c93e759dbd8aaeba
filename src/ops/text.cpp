#include <re2/re2.h>

#include <algorithm>
#include <clocale>
#include <cwctype>
#include <unordered_set>

#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/movement.h"

namespace sardonyx {

namespace {

Status evaluate_concat(EvalContext& context) {
  const Tensor& a = context.tensor(0);
  const Tensor& b = context.tensor(1);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  const auto steps = [&](const Tensor& tensor) {
    Shape strides = Shape::filled(y->rank(), 0);
    const Shape own = strides_of(tensor.shape());
    for (int axis = 0; axis < tensor.rank(); ++axis) {
      if (tensor.dim(axis) != 1) strides[y->rank() - tensor.rank() + axis] = own[axis];
    }
    return strides;
  };
  BoxWalker walker(y->shape(), steps(a), steps(b));
  for (std::string& text : y->mutable_values<std::string>()) {
    text = a.values<std::string>()[static_cast<std::size_t>(walker.first())] +
           b.values<std::string>()[static_cast<std::size_t>(walker.second())];
    walker.next();
  }
  return {};
}

/// A locale that knows the letters of Unicode; none on systems without it.
class Letters {
 public:
  Letters() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {}
  ~Letters() {
    if (locale_ != nullptr) freelocale(locale_);
  }
  Letters(const Letters&) = delete;
  Letters& operator=(const Letters&) = delete;

  std::uint32_t to_case(std::uint32_t letter, bool is_upper) const {
    if (locale_ == nullptr) {
      const std::uint32_t first = is_upper ? 'a' : 'A';
      return letter - first < 26 ? letter ^ 0x20U : letter;
    }
    const auto wide = static_cast<wint_t>(letter);
    return static_cast<std::uint32_t>(is_upper ? towupper_l(wide, locale_)
                                               : towlower_l(wide, locale_));
  }

 private:
  locale_t locale_;
};

/// Length of the UTF-8 sequence at `text[at]` and its code point; malformed bytes stand for
/// themselves.
struct CodePoint {
  std::size_t length = 1;
  std::uint32_t value = 0;
  bool is_valid = false;
};

CodePoint decode(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {1, first, true};
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + length > text.size()) return {};
  std::uint32_t value = first & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0U) != 0x80U) return {};
    value = value << 6 | (byte(at + i) & 0x3fU);
  }
  return {length, value, true};
}

void encode(std::uint32_t value, std::string& text) {
  if (value < 0x80) {
    text.push_back(static_cast<char>(value));
    return;
  }
  const int extra = value < 0x800 ? 1 : value < 0x10000 ? 2 : 3;
  const std::uint32_t mark = extra == 1 ? 0xc0U : extra == 2 ? 0xe0U : 0xf0U;
  text.push_back(static_cast<char>(mark | value >> (6 * extra)));
  for (int i = extra - 1; i >= 0; --i) {
    text.push_back(static_cast<char>(0x80U | (value >> (6 * i) & 0x3fU)));
  }
}

std::string to_case(std::string_view text, bool is_upper, const Letters& letters) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text, at);
    if (point.is_valid) {
      encode(letters.to_case(point.value, is_upper), result);
    } else {
      result.push_back(text[at]);
    }
    at += point.length;
  }
  return result;
}

Status infer_normalizer(InferContext& context) {
  const std::string action = context.attributes().get_string("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER") {
    return context.error("case_change_action '{}' is none of LOWER, UPPER, NONE", action);
  }
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  const bool is_row = input->rank() == 2 && (!is_known((*input)[0]) || (*input)[0] == 1);
  if (input->rank() != 1 && !is_row) {
    return context.error("expected an input [C] or [1,C], found {}", input->to_string());
  }
  context.set_shape(0, input->rank() == 1 ? Shape{kUnknownDim} : Shape{1, kUnknownDim});
  return {};
}

Status evaluate_normalizer(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const Attributes& attributes = context.attributes();
  const bool is_sensitive = attributes.get_int("is_case_sensitive", 0) != 0;
  const std::string action = attributes.get_string("case_change_action", "NONE");
  const Letters letters;
  const auto key = [&](const std::string& text) {
    return is_sensitive ? text : to_case(text, false, letters);
  };
  std::unordered_set<std::string> stopwords;
  for (const std::string& word : attributes.get_strings("stopwords")) stopwords.insert(key(word));
  std::vector<std::string> kept;
  for (const std::string& text : x.values<std::string>()) {
    if (stopwords.contains(key(text))) continue;
    kept.push_back(action == "NONE" ? text : to_case(text, action == "UPPER", letters));
  }
  if (kept.empty()) kept.emplace_back();
  const auto count = static_cast<Dim>(kept.size());
  SDX_ASSIGN(Tensor * y, context.allocate(0, x.rank() == 1 ? Shape{count} : Shape{1, count}));
  if (y == nullptr) return {};
  std::move(kept.begin(), kept.end(), y->mutable_values<std::string>().begin());
  return {};
}

Status infer_split(InferContext& context) {
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  if (!Shape::fits(static_cast<std::size_t>(input->rank()) + 1)) {
    return context.error("{} with one more axis is above rank {}", input->to_string(),
                         Shape::kMaxRank);
  }
  context.set_shape(1, *input);
  Shape output = *input;
  output.push_back(kUnknownDim);
  context.set_shape(0, output);
  return {};
}

constexpr std::string_view kBlanks = " \t\n\v\f\r";

/// Parts between runs of blanks; the last one of `most` cuts takes the rest.
void split_blanks(std::string_view text, std::int64_t most, std::vector<std::string_view>& parts) {
  parts.clear();
  while (true) {
    const std::size_t begin = text.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return;
    text.remove_prefix(begin);
    const std::size_t end = text.find_first_of(kBlanks);
    if (end == std::string_view::npos || static_cast<std::int64_t>(parts.size()) == most) {
      parts.push_back(text);
      return;
    }
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

void split_at(std::string_view text, std::string_view delimiter, std::int64_t most,
              std::vector<std::string_view>& parts) {
  parts.clear();
  while (static_cast<std::int64_t>(parts.size()) != most) {
    const std::size_t end = text.find(delimiter);
    if (end == std::string_view::npos) break;
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + delimiter.size());
  }
  parts.push_back(text);
}

Status evaluate_split(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const std::string delimiter = context.attributes().get_string("delimiter", "");
  const std::int64_t given = context.attributes().get_int("maxsplit", -1);
  const std::int64_t most = given < 0 ? -1 : given;
  const auto split = [&](const std::string& text, std::vector<std::string_view>& parts) {
    if (delimiter.empty()) {
      split_blanks(text, most, parts);
    } else {
      split_at(text, delimiter, most, parts);
    }
  };
  const auto texts = x.values<std::string>();
  std::vector<std::string_view> parts;
  std::size_t longest = 0;
  SDX_ASSIGN(Tensor * counts, context.allocate(1));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    split(texts[i], parts);
    longest = std::max(longest, parts.size());
    if (counts != nullptr) {
      counts->mutable_values<std::int64_t>()[i] = static_cast<std::int64_t>(parts.size());
    }
  }
  Shape shape = x.shape();
  shape.push_back(static_cast<Dim>(longest));
  SDX_ASSIGN(Tensor * y, context.allocate(0, shape));
  if (y == nullptr) return {};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    split(texts[i], parts);
    for (std::size_t k = 0; k < longest; ++k) {
      std::string& target = y->mutable_values<std::string>()[i * longest + k];
      target = k < parts.size() ? std::string(parts[k]) : std::string();
    }
  }
  return {};
}

RE2::Options quiet_options() {
  RE2::Options options;
  options.set_log_errors(false);
  return options;
}

Status infer_match(InferContext& context) {
  const RE2 pattern(context.attributes().get_string("pattern", ""), quiet_options());
  if (!pattern.ok()) {
    return context.error("pattern '{}' is not valid: {}", pattern.pattern(), pattern.error());
  }
  return infer_same_shape(context);
}

Status evaluate_match(EvalContext& context) {
  const RE2 pattern(context.attributes().get_string("pattern", ""), quiet_options());
  const auto texts = context.tensor(0).values<std::string>();
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    y->mutable_values<bool>()[i] = RE2::FullMatch(texts[i], pattern);
  }
  return {};
}

constexpr OpSchema kRows[] = {
    {"", "StringConcat", 20, {"SS>S"}, "", infer_broadcast, evaluate_concat},
    {"", "StringNormalizer", 10, {"S>S"},
     "case_change_action:s is_case_sensitive:i locale:s stopwords:ss", infer_normalizer,
     evaluate_normalizer, kDataDependentShape},
    {"", "StringSplit", 20, {"S>SI"}, "delimiter:s maxsplit:i", infer_split,
     evaluate_split, kDataDependentShape},
    {"", "RegexFullMatch", 20, {"S>B"}, "pattern:s", infer_match, evaluate_match},
};

}  // namespace

std::span<const OpSchema> text_schemas() { return kRows; }

}  // namespace sardonyx

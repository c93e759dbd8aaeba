#include "op_case.h"

using namespace sardonyx;

namespace {

using Texts = std::vector<std::string>;

Tensor texts(const Shape& shape, std::initializer_list<std::string> values) {
  return tensor_of<std::string>(shape, values);
}

}  // namespace

TEST_CASE("StringSplit cuts at blanks like Python, and at most as often as it may") {
  const auto split = [](std::string text, std::string delimiter, std::int64_t most) {
    return elements<std::string>(OpCase("StringSplit", 20)
                                     .input(texts({1}, {std::move(text)}))
                                     .attribute("delimiter", std::move(delimiter))
                                     .attribute("maxsplit", most)
                                     .outputs(2)
                                     .tensor());
  };
  CHECK(split("  a  b c ", "", -1) == Texts{"a", "b", "c"});
  CHECK(split("  a  b c ", "", 1) == Texts{"a", "b c "});
  CHECK(split("a--b-", "-", -1) == Texts{"a", "", "b", ""});
  CHECK(split("a--b-", "-", 1) == Texts{"a", "-b-"});
}

TEST_CASE("RegexFullMatch takes hostile patterns in linear time and refuses broken ones") {
  const std::string long_text(20000, 'a');
  CHECK(elements<bool>(OpCase("RegexFullMatch", 20)
                           .input(texts({2}, {long_text, long_text + "b"}))
                           .attribute("pattern", std::string("(a*)*"))
                           .tensor()) == std::vector<bool>{true, false});
  const std::string error = OpCase("RegexFullMatch", 20)
                                .input(texts({1}, {""}))
                                .attribute("pattern", std::string("(a"))
                                .error();
  CHECK(error == "pattern '(a' is not valid: missing ): (a");
}

TEST_CASE("StringNormalizer changes letters beyond ASCII and keeps malformed bytes") {
  const Tensor y = OpCase("StringNormalizer", 10)
                       .input(texts({3}, {"\xc3\x84rger", "x\xff", "The"}))
                       .attribute("case_change_action", std::string("LOWER"))
                       .attribute("stopwords", Texts{"the"})
                       .tensor();
  CHECK(elements<std::string>(y) == Texts{"\xc3\xa4rger", "x\xff"});
}

TEST_CASE("SplitToSequence and ConcatFromSequence undo each other") {
  const Tensor x = tensor_of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto parts = OpCase("SplitToSequence", 11)
                         .input(x)
                         .input(tensor_of<std::int64_t>({}, {2}))
                         .evaluate();
  REQUIRE(parts.ok());
  REQUIRE(parts->at(0).sequence() != nullptr);
  CHECK(parts->at(0).sequence()->items.size() == 2);
  const Tensor y = OpCase("ConcatFromSequence", 11)
                       .input(parts->at(0))
                       .attribute("axis", std::int64_t{0})
                       .tensor();
  CHECK(elements<float>(y) == elements<float>(x));
}

TEST_CASE("positions outside a sequence are refused with its size") {
  const auto sequence = OpCase("SequenceConstruct", 11)
                            .input(tensor_of<float>({1}, {1}))
                            .evaluate();
  REQUIRE(sequence.ok());
  CHECK(OpCase("SequenceAt", 11)
            .input(sequence->at(0))
            .input(tensor_of<std::int64_t>({}, {1}))
            .error() == "position 1 is outside [-1, 0] in a sequence of 1");
  CHECK(OpCase("SequenceInsert", 11)
            .input(sequence->at(0))
            .input(tensor_of<std::int64_t>({1}, {1}))
            .error() == "tensor(int64) does not fit a sequence of tensor(float)");
}

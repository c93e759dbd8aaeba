#include "placement/text_automaton.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

using namespace sardonyx;

namespace {

using Text = TextAutomaton::Text;
using Where = TextAutomaton::Where;

/// The same by looking for one text after the other.
std::uint32_t naive(const std::vector<Text>& texts, std::string_view name, Where where,
                    std::vector<bool>& found) {
  std::uint32_t best = kNoRank;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string_view text = texts[i].text;
    for (std::size_t at = 0; at + text.size() <= name.size(); ++at) {
      if (where == Where::AtStart && at != 0) break;
      if (name.substr(at, text.size()) != text) continue;
      const std::size_t end = at + text.size();
      if (texts[i].ends_with_number && end < name.size() && name[end] >= '0' && name[end] <= '9') {
        continue;
      }
      found[i] = true;
      best = std::min(best, texts[i].rank);
    }
  }
  return best;
}

std::string random_text(std::mt19937& random, std::size_t size_max, std::string_view letters) {
  std::string text(random() % (size_max + 1), ' ');
  for (char& c : text) c = letters[random() % letters.size()];
  return text;
}

}  // namespace

TEST_CASE("random texts are found in random names as by looking for each") {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    const Where where = round % 2 == 0 ? Where::Anywhere : Where::AtStart;
    const std::string_view letters = round % 3 == 0 ? "ab" : "a1/2";
    std::vector<std::string> strings(1 + random() % 12);
    std::vector<Text> texts;
    for (std::string& text : strings) text = "a1"[random() % 2] + random_text(random, 5, letters);
    for (const std::string& text : strings) {
      texts.push_back({text, static_cast<std::uint32_t>(random() % 20), random() % 2 == 0});
    }
    const auto automaton = TextAutomaton::create(texts, where);
    REQUIRE(automaton.ok());
    TextAutomaton::Visits visits;
    std::vector<bool> found(texts.size());
    for (int i = 0; i < 8; ++i) {
      const std::string name = random_text(random, 14, letters);
      REQUIRE(automaton->search(name, visits) == naive(texts, name, where, found));
    }
    REQUIRE(automaton->found(visits) == found);
  }
}

TEST_CASE("all bytes can be letters of texts") {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::vector<Text> texts = {{all, 1, false}, {std::string_view(all).substr(100), 0, false}};
  const auto automaton = TextAutomaton::create(texts, Where::Anywhere);
  REQUIRE(automaton.ok());
  TextAutomaton::Visits visits;
  CHECK(automaton->search(all + all, visits) == 0);
  CHECK(automaton->search(all.substr(0, 255), visits) == kNoRank);
}

TEST_CASE("an automaton without texts finds nothing; one too large is refused") {
  const auto none = TextAutomaton::create({}, Where::Anywhere);
  REQUIRE(none.ok());
  TextAutomaton::Visits visits;
  CHECK(none->search("abc", visits) == kNoRank);
  CHECK(none->found(visits).empty());
  std::string huge(1U << 20, 'a');
  for (std::size_t i = 0; i < huge.size(); ++i) huge[i] = static_cast<char>(i * 7);
  const std::vector<Text> texts = {{huge, 0, false}};
  const auto refused = TextAutomaton::create(texts, Where::Anywhere);
  REQUIRE(!refused.ok());
  CHECK(refused.status().code() == Code::InvalidArgument);
}

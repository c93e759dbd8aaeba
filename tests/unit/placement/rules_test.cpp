#include "placement/rules.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace sardonyx;

namespace {

Result<Rules> by_names(std::string_view text) { return parse_rules({"", text, ""}); }
Result<Rules> by_annotations(std::string_view text) { return parse_rules({"", "", text}); }
Result<Rules> own(std::string_view text) { return parse_rules({text, "", ""}); }

std::string message_of(const Result<Rules>& rules) {
  if (rules.ok()) return "ok";
  CHECK(rules.status().code() == Code::InvalidArgument);
  return rules.status().message();
}

/// "device|mark|pattern" of each rule.
std::vector<std::string> shown(const Result<Rules>& rules) {
  REQUIRE_MESSAGE(rules.ok(), rules.status().to_string());
  std::vector<std::string> texts;
  for (const Rule& rule : rules->rules) texts.push_back(rule.to_string());
  return texts;
}

using Texts = std::vector<std::string>;

struct Row {
  const char* text;
  /// "" is accepted.
  const char* error;
};

}  // namespace

TEST_CASE("what ONNX Runtime 1.32.0 says about a configuration is said in both options") {
  const Row rows[] = {
      {"cpu(layers.1/)", ""},
      {"cpu()", ""},
      {"cpu( )", ""},
      {"cpu(=)", ""},
      {"cpu(= )", ""},
      {";;", ""},
      {" ", ""},
      {"cpu (a);;", ""},
      {"cpu\t(a)", ""},
      {"cpu(a\n)", ""},
      {"cpu(a)(b)", ""},
      {"cpu(a) junk", ""},
      {"cpu(a(b),c)", ""},
      {"cpu((a)", ""},
      {"cpu(a))", ""},
      {"cpu(a),gpu(b)", ""},
      {"CPUExecutionProvider(layers.)", ""},
      {"foo(layers.)", ""},
      {"cpu", "Invalid layering config: Missing '(' in entry: cpu"},
      {" cpu", "Invalid layering config: Missing '(' in entry: cpu"},
      {"cpu(a);gpu", "Invalid layering config: Missing '(' in entry: gpu"},
      {"cpu(a);=", "Invalid layering config: Missing '(' in entry: ="},
      {"cpu(a", "Invalid layering config: Missing ')' in entry: cpu(a"},
      {"cpu(a;b)", "Invalid layering config: Missing ')' in entry: cpu(a"},
      {"cpu)a(", "Invalid layering config: ')' comes before '(' in entry: cpu)a("},
      {"(a)", "Invalid layering config: Empty device name in entry: (a)"},
      {" (a)", "Invalid layering config: Empty device name in entry: (a)"},
      {"cpu(a);gpu(a)",
       "Invalid layering config: Duplicate prefix match annotation 'a' found in entry: gpu(a)"},
      {"cpu(a,a)",
       "Invalid layering config: Duplicate prefix match annotation 'a' found in entry: cpu(a,a)"},
      {"  cpu(a) ;  gpu( a ) ",
       "Invalid layering config: Duplicate prefix match annotation 'a' found in entry: gpu( a )"},
      {"cpu(=a,=a)",
       "Invalid layering config: Duplicate exact match annotation 'a' found in entry: cpu(=a,=a)"},
      {"cpu(=a);gpu( = a )",
       "Invalid layering config: Duplicate exact match annotation 'a' found in entry: "
       "gpu( = a )"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const std::string expected = *row.error == '\0' ? "ok" : row.error;
    CHECK(message_of(by_names(row.text)) == expected);
    CHECK(message_of(by_annotations(row.text)) == expected);
  }
}

TEST_CASE("exact patterns belong to annotations") {
  const std::string refusal =
      "Name-based layer assignment does not support the '=' (exact-match) qualifier. All patterns "
      "are treated as substrings. Remove the '=' prefix from pattern: '";
  CHECK(message_of(by_names("cpu(=layers.1/)")) == refusal + "layers.1/'");
  CHECK(message_of(by_names("cpu(= layers.1/ )")) == refusal + "layers.1/'");
  CHECK(message_of(by_names("cpu(a,=a)")) == refusal + "a'");
  CHECK(message_of(by_names("cpu(a,=b,=c)")) == refusal + "b'");
  CHECK(message_of(by_names("cpu(==a)")) == refusal + "=a'");
  CHECK(shown(by_annotations("cpu(a,=a)")) == Texts{"cpu(a)", "cpu(=a)"});
  CHECK(by_annotations("cpu(==a)")->rules[0].pattern == "=a");
}

TEST_CASE("the two options of ONNX Runtime exclude each other") {
  const char* refusal =
      "Cannot set both 'session.layer_assignment_settings' and "
      "'session.name_based_layer_assignment'. These options are mutually exclusive. Use "
      "annotation-based matching for models with explicit layer annotations, or name-based "
      "matching for models with structured node names.";
  CHECK(message_of(parse_rules({"", "cpu(a)", "cpu(b)"})) == refusal);
  // Before anything else, and with blanks as well.
  CHECK(message_of(parse_rules({"", "cpu", "cpu"})) == refusal);
  CHECK(message_of(parse_rules({"", " ", " "})) == refusal);
  CHECK(message_of(parse_rules({"gpu(a)", "cpu(a)", "cpu(b)"})) == refusal);
  CHECK(message_of(parse_rules({"", "cpu(a)", ""})) == "ok");
  CHECK(message_of(parse_rules({"gpu(a)", "cpu(a)", ""})) == "ok");
}

TEST_CASE("configurations of upstream's tests give as many rules") {
  CHECK(by_annotations("")->empty());
  CHECK(by_annotations(";   ;")->empty());
  CHECK(shown(by_annotations("EP1(Annotation1)")) == Texts{"EP1(Annotation1)"});
  CHECK(shown(by_annotations("EP1(Annotation1, Annotation2)")) ==
        Texts{"EP1(Annotation1)", "EP1(Annotation2)"});
  CHECK(shown(by_annotations("EP1(Annotation1); EP2(Annotation2)")) ==
        Texts{"EP1(Annotation1)", "EP2(Annotation2)"});
  CHECK(shown(by_annotations("EP1(=Annotation1)")) == Texts{"EP1(=Annotation1)"});
  const auto spaced =
      by_annotations("  EP1  (  Annotation1  ,  =Annotation2  )  ;  EP2  (  Annotation3  )  ");
  CHECK(shown(spaced) == Texts{"EP1(Annotation1)", "EP1(=Annotation2)", "EP2(Annotation3)"});
  CHECK(spaced->rules[0].kind == PatternKind::AnnotationPrefix);
  CHECK(spaced->rules[1].kind == PatternKind::ExactAnnotation);
  CHECK(by_annotations("EP1(Ann1, =Ann1)")->rules.size() == 2);
  for (const char* text : {"Device1Annotation1", "Device1(Annotation1", "Device1Annotation1)",
                           "Device1)Annotation1(", "(Annotation1)", "EP1(Ann1, Ann1)",
                           "EP1(Ann1); EP2(Ann1)", "EP1(=Ann1, =Ann1)", "EP1(=Ann1); EP2(=Ann1)"}) {
    CAPTURE(text);
    CHECK(message_of(by_annotations(text)).starts_with("Invalid layering config: "));
  }
}

TEST_CASE("mistakes that ONNX Runtime passes over are told") {
  const Row rows[] = {
      {"cpu(a)(b)", "entry 'cpu(a)(b)': '(b)' after the ')' is ignored"},
      {"cpu(a) junk", "entry 'cpu(a) junk': 'junk' after the ')' is ignored"},
      {"cpu(a),gpu(b)", "',gpu(b)' after the ')' is ignored; entries are separated by ';'"},
      {"cpu(a(b),c)", "the list ends at the first ')' and is taken as 'a(b'"},
      {"cpu()", "entry 'cpu()': has no pattern and takes nothing"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto rules = by_names(row.text);
    REQUIRE(rules.ok());
    REQUIRE(!rules->warnings.empty());
    CHECK(rules->warnings[0].find(row.error) != std::string::npos);
    CHECK(rules->warnings[0].starts_with("session.name_based_layer_assignment: "));
  }
  CHECK(by_names("cpu(a); gpu(b, c) ;")->warnings.empty());
}

TEST_CASE("the own grammar has names, ranges, expressions and annotations in one option") {
  const auto rules =
      own("gpu:0(layers.[0-15]/, =\"/model/a, b\"); gpu:1!(~layers\\.\\d+/mlp, @enc, @=layer_3);\n"
          "cpu ( * , \"odd [name]\" )");
  REQUIRE_MESSAGE(rules.ok(), rules.status().to_string());
  REQUIRE(rules->rules.size() == 7);
  const auto& all = rules->rules;
  CHECK(all[0].kind == PatternKind::Text);
  CHECK(all[0].expansion.size() == 16);
  CHECK(all[0].expansion[15] == "layers.15/");
  CHECK(all[1].kind == PatternKind::ExactName);
  CHECK(all[1].pattern == "/model/a, b");
  CHECK(all[2].kind == PatternKind::Regex);
  CHECK(all[2].is_strict);
  CHECK(all[3].kind == PatternKind::AnnotationPrefix);
  CHECK(all[4].kind == PatternKind::ExactAnnotation);
  CHECK(all[5].kind == PatternKind::Everything);
  CHECK(!all[5].is_strict);
  CHECK(all[6].expansion == Texts{"odd [name]"});
  CHECK(shown(rules) == Texts{"gpu:0(layers.[0-15]/)", "gpu:0(=\"/model/a, b\")",
                              "gpu:1!(~layers\\.\\d+/mlp)", "gpu:1!(@enc)", "gpu:1!(@=layer_3)",
                              "cpu(*)", "cpu(\"odd [name]\")"});
}

TEST_CASE("what a rule prints can be read again") {
  for (const char* text : {"cpu(a)", "gpu:1!(layers.[0,2,4-7]/)", "cpu(\"a \\\" b\\\\c\")",
                           "cpu(~\"(a|b),\\\\d\\\"\")", "cpu(\"=a\")", "cpu(\"*\")", "cpu(*)",
                           "cpu(@\"a,b\")", "cpu(~a*)"}) {
    CAPTURE(text);
    const Texts once = shown(own(text));
    CHECK(once == Texts{text});
    CHECK(shown(own(once[0])) == once);
  }
}

TEST_CASE("ranges stand for whole numbers") {
  CHECK(own("cpu(a[08-11]b)")->rules[0].expansion == Texts{"a08b", "a09b", "a10b", "a11b"});
  CHECK(own("cpu(a[1, 3-4].b[0-1])")->rules[0].expansion ==
        Texts{"a1.b0", "a1.b1", "a3.b0", "a3.b1", "a4.b0", "a4.b1"});
  CHECK(own("cpu(a[1-2])")->rules[0].ends_with_number);
  CHECK(!own("cpu(a[1-2]/)")->rules[0].ends_with_number);
  for (const char* text :
       {"cpu(a[2-1])", "cpu(a[])", "cpu(a[x])", "cpu(a[1-])", "cpu(a[-1])", "cpu(a[1)", "cpu(a])",
        "cpu([0-3]/)", "cpu(a1[0-3])", "cpu(a[0-3]1)", "cpu(a[0-1][0-1])", "cpu(a[0-99999999999])",
        "cpu(a[008-11])", "cpu(a[0-70000])", "cpu(a[0-999].[0-999].)"}) {
    CAPTURE(text);
    CHECK(message_of(own(text)).starts_with("sardonyx.placement: "));
  }
}

TEST_CASE("mistakes in the own grammar are errors with their place") {
  const Row rows[] = {
      {"cpu", "expected a device and '(' with patterns; at byte 0: 'cpu'"},
      {"cpu(a", "missing ')'; at byte 0"},
      {"cpu(a;b)", "missing ')'"},
      {"cpu)a(", "expected a device and '(' with patterns"},
      {"(a)", "expected a device before '('"},
      {"cpu()", "'cpu' has no pattern; '*' takes all nodes"},
      {"cpu(a)(b)", "expected ';' or the end after ')'; at byte 6: '(b)'"},
      {"cpu(a) junk", "expected ';' or the end after ')'; at byte 7: 'junk'"},
      {"cpu(a(b),c)", "one with parentheses has to stand in quotes; at byte 5"},
      {"cpu(a,a)", "'a' stands in both cpu(a) and cpu(a)"},
      {"cpu(a);gpu(a)", "'a' stands in both cpu(a) and gpu(a)"},
      {"gpu:0(l.[0-15]/);gpu:1(l.[15-31]/)",
       "'l.15/' stands in both gpu:0(l.[0-15]/) and gpu:1(l.[15-31]/)"},
      {"cpu(layers.*)", "'*' inside a pattern means nothing"},
      {"cpu(=)", "a pattern is empty"},
      {"cpu(\"a)", "missing '\"'"},
      {"cpu(\"a\\n\")", "only \\\" and \\\\ are escapes in quotes"},
      {"strict(a)", "'strict' is a word of its own"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const std::string message = message_of(own(row.text));
    CAPTURE(message);
    CHECK(message.starts_with("sardonyx.placement: "));
    CHECK(message.find(row.error) != std::string::npos);
  }
  // An exception from a range is no mistake.
  CHECK(own("gpu:0(l.[0-15]/);gpu:1(l.7/)").ok());
}

TEST_CASE("strict holds for all rules, wherever it stands") {
  for (const char* text : {"strict; cpu(a); gpu(b)", "cpu(a); gpu(b); STRICT"}) {
    const auto rules = own(text);
    REQUIRE(rules.ok());
    for (const Rule& rule : rules->rules) CHECK(rule.is_strict);
  }
  CHECK(own("strict")->empty());
}

TEST_CASE("configurations of megabytes are bounded") {
  const std::string long_text(std::size_t{5} << 20, 'a');
  CHECK(message_of(own(long_text)).find("bytes of text") != std::string::npos);
  CHECK(message_of(by_names(long_text)).find("bytes of text") != std::string::npos);
  std::string many = "cpu(";
  for (int i = 0; i < 70000; ++i) many += std::to_string(i) + ",";
  many += "x)";
  CHECK(message_of(own(many)).find("65536") != std::string::npos);
  CHECK(message_of(by_names(many)).find("65536") != std::string::npos);
  std::string device(std::size_t{1} << 20, 'd');
  CHECK(message_of(own(device + "(a)")).size() < 1000);
  CHECK(message_of(by_names(device + "(a)")).size() < 2000);
  std::string ranges = "cpu(a";
  for (int i = 0; i < 1000; ++i) ranges += "[0-9999].";
  CHECK(message_of(own(ranges + ")")).find("65536") != std::string::npos);
  const std::string half(std::size_t{2} << 20, 'a');
  CHECK(message_of(own("cpu(" + half + "[0-9]/)")).find("too many") != std::string::npos);
  CHECK(own("cpu(" + half + ")").ok());
}

TEST_CASE("bytes that are no text are taken as they are") {
  const std::string odd("cpu(\xff\xfe\x01)", 8);
  CHECK(own(odd)->rules[0].pattern == "\xff\xfe\x01");
  CHECK(by_names(odd)->rules[0].pattern == "\xff\xfe\x01");
}

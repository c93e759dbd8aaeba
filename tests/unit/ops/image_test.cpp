#include "ops/image.h"

#include <string>

#include "op_case.h"

using namespace sardonyx;

namespace {

using Pixels = std::vector<std::uint8_t>;

Tensor decoded(const std::string& file, std::string format = "RGB") {
  const std::vector<std::uint8_t> bytes(file.begin(), file.end());
  auto stream = make_tensor<std::uint8_t>({static_cast<Dim>(bytes.size())},
                                          std::span<const std::uint8_t>(bytes));
  REQUIRE(stream.ok());
  return OpCase("ImageDecoder", 20)
      .input(*stream)
      .attribute("pixel_format", std::move(format))
      .tensor();
}

}  // namespace

TEST_CASE("ImageDecoder reads portable pictures, as text and binary") {
  const Tensor text = decoded("P3 # two pixels\n2 1\n255\n1 2 3 4 5 6\n", "BGR");
  CHECK(text.shape() == Shape{1, 2, 3});
  CHECK(elements<std::uint8_t>(text) == Pixels{3, 2, 1, 6, 5, 4});
  CHECK(elements<std::uint8_t>(decoded("P5 2 1 255\n\x01\x02", "Grayscale")) == Pixels{1, 2});
  CHECK(elements<std::uint8_t>(decoded("P4 2 1\n\x40")) == Pixels{255, 255, 255, 0, 0, 0});
}

TEST_CASE("ImageDecoder gives an empty picture for what is damaged, cut off or too large") {
  for (const std::string file :
       {"", "P6", "P6 2 1 255\n\x01\x02", "P5 999999999 999999999 255\n", "P5 0 4 255\n",
        "P6 2 1 0\n123456", "BM", "BMxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}) {
    CAPTURE(file);
    CHECK(decoded(file).shape() == Shape{0, 0, 3});
  }
}

TEST_CASE("ImageDecoder says which format it was built without") {
  if (has_codecs()) {
    CHECK(decoded("\x89PNG cut off").shape() == Shape{0, 0, 3});
  } else {
    const std::string file = "\x89PNG cut off";
    const std::vector<std::uint8_t> bytes(file.begin(), file.end());
    auto stream = make_tensor<std::uint8_t>({static_cast<Dim>(bytes.size())},
                                            std::span<const std::uint8_t>(bytes));
    REQUIRE(stream.ok());
    CHECK(OpCase("ImageDecoder", 20).input(*stream).error().find("is PNG") != std::string::npos);
  }
}

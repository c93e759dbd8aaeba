#include <algorithm>

#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/image.h"
#include "ops/infer_context.h"

namespace sardonyx {

namespace {

Status infer_decoder(InferContext& context) {
  const Shape* input = context.shape(0);
  if (input != nullptr && input->rank() != 1) {
    return context.error("the encoded stream should have rank 1, but has shape {}",
                         input->to_string());
  }
  const std::string format = context.attributes().get_string("pixel_format", "RGB");
  if (format != "RGB" && format != "BGR" && format != "Grayscale") {
    return context.error("pixel_format '{}' is none of RGB, BGR, Grayscale", format);
  }
  context.set_shape(0, {kUnknownDim, kUnknownDim, format == "Grayscale" ? 1 : 3});
  return {};
}

/// Luma of BT.601 in 16-bit fixed point.
std::uint8_t gray(const std::uint8_t* rgb) {
  const std::uint32_t sum = rgb[0] * 19595U + rgb[1] * 38470U + rgb[2] * 7471U + 0x8000U;
  return static_cast<std::uint8_t>(sum >> 16);
}

/// A damaged picture gives an empty one, as the standard asks for.
Status evaluate_decoder(EvalContext& context) {
  const std::string format = context.attributes().get_string("pixel_format", "RGB");
  const Dim channels = format == "Grayscale" ? 1 : 3;
  const Bytes bytes = context.tensor(0).values<std::uint8_t>();
  if (const std::string_view codec = codec_of(bytes); !codec.empty() && !has_codecs()) {
    return context.error(
        "the stream is {}, and this build decodes BMP and PNM; for the others, "
        "build with SARDONYX_IMAGE_CODECS",
        codec);
  }
  const auto image = decode_image(bytes);
  const Shape shape = image ? Shape{image->height, image->width, channels} : Shape{0, 0, channels};
  SDX_ASSIGN(Tensor * y, context.allocate(0, shape));
  if (y == nullptr || !image) return {};
  auto* to = y->mutable_values<std::uint8_t>().data();
  const std::uint8_t* from = image->pixels.data();
  for (std::size_t i = 0; i < image->pixels.size() / 3; ++i, from += 3) {
    if (format == "Grayscale") {
      *to++ = gray(from);
    } else if (format == "RGB") {
      to = std::copy(from, from + 3, to);
    } else {
      to = std::reverse_copy(from, from + 3, to);
    }
  }
  return {};
}

constexpr OpSchema kRows[] = {
    {"",
     "ImageDecoder",
     20,
     {"T>T", set_of(DType::UInt8)},
     "pixel_format:s",
     infer_decoder,
     evaluate_decoder,
     kDataDependentShape},
};

}  // namespace

std::span<const OpSchema> image_decoder_schemas() { return kRows; }

}  // namespace sardonyx

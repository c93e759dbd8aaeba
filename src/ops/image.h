#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace sardonyx {

using Bytes = std::span<const std::uint8_t>;

/// A picture of 8-bit red, green and blue, row by row from the top.
struct Image {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;
};

/// Pictures above this many pixels are refused.
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 28;

/// An image of that size, or nothing when the size is 0 or too large.
std::optional<Image> make_image(std::int64_t height, std::int64_t width);

/// The format that takes a codec library, by the first bytes of a file: "JPEG", "PNG", "WebP",
/// "TIFF", "JPEG 2000", or nothing.
std::string_view codec_of(Bytes bytes);
/// Whether this build has those libraries (SARDONYX_IMAGE_CODECS).
bool has_codecs();

/// The picture in the bytes of a file, whose format its first bytes tell; nothing when the bytes
/// are no picture, a damaged one, or of a format that this build has no decoder for.
std::optional<Image> decode_image(Bytes bytes);

/// BMP without compression, of 1, 4, 8, 24 or 32 bits; PBM, PGM and PPM, as text or binary.
std::optional<Image> decode_bmp(Bytes bytes);
std::optional<Image> decode_pnm(Bytes bytes);

/// With the system's codec libraries; without them they give nothing.
std::optional<Image> decode_jpeg(Bytes bytes);
std::optional<Image> decode_png(Bytes bytes);
std::optional<Image> decode_webp(Bytes bytes);
std::optional<Image> decode_tiff(Bytes bytes);
std::optional<Image> decode_jpeg2000(Bytes bytes);

}  // namespace sardonyx

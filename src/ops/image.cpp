#include "ops/image.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace sardonyx {

namespace {

bool starts_with(Bytes bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

std::uint32_t read_u16(Bytes bytes, std::size_t at) {
  return static_cast<std::uint32_t>(bytes[at] | bytes[at + 1] << 8);
}

std::uint32_t read_u32(Bytes bytes, std::size_t at) {
  return read_u16(bytes, at) | read_u16(bytes, at + 2) << 16;
}

}  // namespace

std::optional<Image> make_image(std::int64_t height, std::int64_t width) {
  if (height <= 0 || width <= 0 || height > kMostPixels / width) return std::nullopt;
  Image image{height, width, {}};
  image.pixels.resize(static_cast<std::size_t>(height * width * 3));
  return image;
}

std::string_view codec_of(Bytes bytes) {
  using std::string_view_literals::operator""sv;
  if (starts_with(bytes, "\xff\xd8\xff")) return "JPEG";
  if (starts_with(bytes, "\x89PNG")) return "PNG";
  if (starts_with(bytes, "RIFF")) return "WebP";
  if (starts_with(bytes, "II*\0"sv) || starts_with(bytes, "MM\0*"sv)) return "TIFF";
  if (starts_with(bytes, "\0\0\0\x0cjP  "sv) || starts_with(bytes, "\xff\x4f\xff\x51")) {
    return "JPEG 2000";
  }
  return "";
}

std::optional<Image> decode_image(Bytes bytes) {
  if (starts_with(bytes, "BM")) return decode_bmp(bytes);
  const std::string_view codec = codec_of(bytes);
  if (codec.empty()) return decode_pnm(bytes);
  if (codec == "JPEG") return decode_jpeg(bytes);
  if (codec == "PNG") return decode_png(bytes);
  if (codec == "WebP") return decode_webp(bytes);
  return codec == "TIFF" ? decode_tiff(bytes) : decode_jpeg2000(bytes);
}

namespace {

/// What the headers of a BMP say.
struct BmpHeader {
  std::size_t pixels = 0;
  std::size_t palette = 0;
  std::size_t palette_step = 4;
  std::size_t colors = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;
  bool is_upside_down = true;
  std::uint32_t bits = 0;
};

std::optional<BmpHeader> bmp_header(Bytes bytes) {
  if (bytes.size() < 26) return std::nullopt;
  BmpHeader header;
  header.pixels = read_u32(bytes, 10);
  const std::size_t size = read_u32(bytes, 14);
  header.palette = 14 + size;
  if (size == 12) {
    header.width = read_u16(bytes, 18);
    header.height = read_u16(bytes, 20);
    header.bits = read_u16(bytes, 24);
    header.palette_step = 3;
  } else {
    if (size < 40 || bytes.size() < 54) return std::nullopt;
    header.width = static_cast<std::int32_t>(read_u32(bytes, 18));
    header.height = static_cast<std::int32_t>(read_u32(bytes, 22));
    header.bits = read_u16(bytes, 28);
    header.colors = read_u32(bytes, 46);
    // Bit fields are taken only in the order of plain 32-bit pixels.
    const std::uint32_t compression = read_u32(bytes, 30);
    if (compression != 0 && !(compression == 3 && header.bits == 32)) return std::nullopt;
    header.is_upside_down = header.height > 0;
    if (header.height < 0) header.height = -header.height;
  }
  if (header.bits <= 8 && header.colors == 0) header.colors = std::size_t{1} << header.bits;
  return header;
}

/// Colour number `i` of the palette; black when it has none such.
const std::uint8_t* palette_color(Bytes bytes, const BmpHeader& header, std::size_t i) {
  static constexpr std::uint8_t kBlack[3] = {0, 0, 0};
  const std::size_t at = header.palette + i * header.palette_step;
  return i < header.colors && at + 3 <= bytes.size() ? bytes.data() + at : kBlack;
}

}  // namespace

std::optional<Image> decode_bmp(Bytes bytes) {
  const auto header = bmp_header(bytes);
  if (!header) return std::nullopt;
  const std::uint32_t bits = header->bits;
  if (bits != 1 && bits != 4 && bits != 8 && bits != 24 && bits != 32) return std::nullopt;
  // Each row is filled up to a multiple of four bytes.
  if (header->width <= 0 || header->width > kMostPixels) return std::nullopt;
  const auto row_bytes =
      (static_cast<std::size_t>(header->width) * bits + 31) / 32 * std::size_t{4};
  const auto rows = static_cast<std::size_t>(header->height);
  if (header->pixels > bytes.size() || rows > (bytes.size() - header->pixels) / row_bytes) {
    return std::nullopt;
  }
  auto image = make_image(header->height, header->width);
  if (!image) return std::nullopt;
  std::uint8_t* to = image->pixels.data();
  for (std::size_t y = 0; y < rows; ++y) {
    const std::size_t line = header->is_upside_down ? rows - 1 - y : y;
    const std::uint8_t* row = bytes.data() + header->pixels + line * row_bytes;
    for (std::size_t x = 0; x < static_cast<std::size_t>(header->width); ++x) {
      const std::uint8_t* color = nullptr;
      if (bits >= 24) {
        color = row + x * (bits / 8);
      } else {
        const std::size_t shift = 8 - bits - x * bits % 8;
        const std::size_t code = row[x * bits / 8] >> shift & ((1U << bits) - 1);
        color = palette_color(bytes, *header, code);
      }
      *to++ = color[2];
      *to++ = color[1];
      *to++ = color[0];
    }
  }
  return image;
}

namespace {

/// Reads the numbers of a PNM file; comments run from # to the end of the line.
class PnmReader {
 public:
  explicit PnmReader(Bytes bytes) : bytes_(bytes) {}

  /// The next number, or nothing; `most_digits` of 1 reads the pixels of a PBM as text.
  std::optional<std::int64_t> number(int most_digits = 9) {
    skip_blanks();
    std::int64_t value = 0;
    int digits = 0;
    while (at_ < bytes_.size() && digits < most_digits && bytes_[at_] >= '0' &&
           bytes_[at_] <= '9') {
      value = value * 10 + (bytes_[at_++] - '0');
      ++digits;
    }
    return digits > 0 ? std::optional(value) : std::nullopt;
  }
  /// What follows the one blank behind the header.
  Bytes rest() const { return bytes_.subspan(std::min(at_ + 1, bytes_.size())); }
  void skip(std::size_t count) { at_ = std::min(at_ + count, bytes_.size()); }

 private:
  void skip_blanks() {
    bool is_comment = false;
    for (; at_ < bytes_.size(); ++at_) {
      const std::uint8_t c = bytes_[at_];
      if (c == '#') is_comment = true;
      if (c == '\n') is_comment = false;
      const bool is_blank = c == ' ' || (c >= '\t' && c <= '\r');
      if (!is_blank && !is_comment) return;
    }
  }

  Bytes bytes_;
  std::size_t at_ = 0;
};

std::uint8_t scaled(std::int64_t sample, std::int64_t most) {
  return static_cast<std::uint8_t>((std::min(sample, most) * 255 + most / 2) / most);
}

/// Samples of a binary file: bits for PBM (1 is black), else one or two bytes each.
bool read_binary(Bytes data, char kind, std::int64_t most, std::int64_t channels, Image& image) {
  const auto pixels = static_cast<std::size_t>(image.height * image.width);
  if (kind == '4') {
    const auto width = static_cast<std::size_t>(image.width);
    const std::size_t row_bytes = (width + 7) / 8;
    if (data.size() / row_bytes < static_cast<std::size_t>(image.height)) return false;
    for (std::size_t i = 0; i < pixels; ++i) {
      const std::size_t x = i % width;
      const bool is_black = (data[i / width * row_bytes + x / 8] >> (7 - x % 8) & 1U) != 0;
      std::fill_n(image.pixels.data() + 3 * i, 3, is_black ? 0 : 255);
    }
    return true;
  }
  const std::size_t step = most > 255 ? 2 : 1;
  const std::size_t samples = pixels * static_cast<std::size_t>(channels);
  if (data.size() / step < samples) return false;
  for (std::size_t i = 0; i < samples; ++i) {
    const std::int64_t sample = step == 1 ? data[i] : data[2 * i] << 8 | data[2 * i + 1];
    const std::uint8_t value = scaled(sample, most);
    if (channels == 3) {
      image.pixels[i] = value;
    } else {
      std::fill_n(image.pixels.data() + 3 * i, 3, value);
    }
  }
  return true;
}

bool read_text(PnmReader& reader, char kind, std::int64_t most, std::int64_t channels,
               Image& image) {
  const std::int64_t samples = image.height * image.width * channels;
  for (std::int64_t i = 0; i < samples; ++i) {
    const auto sample = reader.number(kind == '1' ? 1 : 9);
    if (!sample) return false;
    const std::uint8_t value =
        kind == '1' ? (*sample != 0 ? std::uint8_t{0} : std::uint8_t{255}) : scaled(*sample, most);
    if (channels == 3) {
      image.pixels[static_cast<std::size_t>(i)] = value;
    } else {
      std::fill_n(image.pixels.data() + 3 * i, 3, value);
    }
  }
  return true;
}

}  // namespace

std::optional<Image> decode_pnm(Bytes bytes) {
  if (bytes.size() < 3 || bytes[0] != 'P' || bytes[1] < '1' || bytes[1] > '6') return std::nullopt;
  const char kind = static_cast<char>(bytes[1]);
  PnmReader reader(bytes);
  reader.skip(2);
  const auto width = reader.number();
  const auto height = reader.number();
  const bool is_bitmap = kind == '1' || kind == '4';
  const auto most = is_bitmap ? std::optional<std::int64_t>(1) : reader.number();
  if (!width || !height || !most || *most < 1 || *most > 65535) return std::nullopt;
  const std::int64_t channels = kind == '3' || kind == '6' ? 3 : 1;
  // Every pixel takes at least a bit.
  if (*height > 0 && *width / 8 > static_cast<std::int64_t>(bytes.size()) / *height) {
    return std::nullopt;
  }
  auto image = make_image(*height, *width);
  if (!image) return std::nullopt;
  const bool is_whole = kind >= '4' ? read_binary(reader.rest(), kind, *most, channels, *image)
                                    : read_text(reader, kind, *most, channels, *image);
  return is_whole ? image : std::nullopt;
}

}  // namespace sardonyx

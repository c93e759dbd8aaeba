#include "ops/image.h"

#ifdef SARDONYX_IMAGE_CODECS

#include <jpeglib.h>
#include <openjpeg.h>
#include <png.h>
#include <tiffio.h>
#include <webp/decode.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

namespace sardonyx {

namespace {

/// libjpeg reports errors by a call that must not return.
struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf escape;
};

void leave_jpeg(j_common_ptr info) {
  std::longjmp(reinterpret_cast<JpegErrors*>(info->err)->escape, 1);
}

void ignore_jpeg_message(j_common_ptr) {}

/// Reads into `image`; nothing in here has a destructor that an error would skip.
bool read_jpeg(Bytes bytes, std::optional<Image>& image) {
  jpeg_decompress_struct info;
  JpegErrors errors;
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = leave_jpeg;
  errors.manager.output_message = ignore_jpeg_message;
  if (setjmp(errors.escape) != 0) {
    jpeg_destroy_decompress(&info);
    return false;
  }
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, bytes.data(), bytes.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  image = make_image(info.output_height, info.output_width);
  const bool fits = image.has_value() && info.output_components == 3;
  while (fits && info.output_scanline < info.output_height) {
    JSAMPROW row = image->pixels.data() + std::size_t{3} * info.output_width * info.output_scanline;
    jpeg_read_scanlines(&info, &row, 1);
  }
  if (fits) jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return fits;
}

/// Drops the fourth channel.
Image without_alpha(std::span<const std::uint8_t> rgba, Image image) {
  for (std::size_t i = 0; i < image.pixels.size() / 3; ++i) {
    std::memcpy(image.pixels.data() + 3 * i, rgba.data() + 4 * i, 3);
  }
  return image;
}

}  // namespace

bool has_codecs() { return true; }

std::optional<Image> decode_jpeg(Bytes bytes) {
  std::optional<Image> image;
  if (!read_jpeg(bytes, image)) return std::nullopt;
  return image;
}

std::optional<Image> decode_png(Bytes bytes) {
  png_image info;
  std::memset(&info, 0, sizeof info);
  info.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&info, bytes.data(), bytes.size()) == 0) {
    return std::nullopt;
  }
  info.format = PNG_FORMAT_RGBA;
  auto image = make_image(info.height, info.width);
  if (!image) {
    png_image_free(&info);
    return std::nullopt;
  }
  std::vector<std::uint8_t> rgba(image->pixels.size() / 3 * 4);
  if (png_image_finish_read(&info, nullptr, rgba.data(), 0, nullptr) == 0) return std::nullopt;
  return without_alpha(rgba, *std::move(image));
}

std::optional<Image> decode_webp(Bytes bytes) {
  int width = 0;
  int height = 0;
  if (WebPGetInfo(bytes.data(), bytes.size(), &width, &height) == 0) return std::nullopt;
  auto image = make_image(height, width);
  if (!image) return std::nullopt;
  const auto* decoded = WebPDecodeRGBInto(bytes.data(), bytes.size(), image->pixels.data(),
                                          image->pixels.size(), 3 * width);
  return decoded != nullptr ? image : std::nullopt;
}

namespace {

/// A file in memory, as libtiff and openjpeg read it.
struct MemoryFile {
  Bytes bytes;
  std::size_t at = 0;

  std::size_t read(void* to, std::size_t count) {
    count = std::min(count, bytes.size() - at);
    std::memcpy(to, bytes.data() + at, count);
    at += count;
    return count;
  }
};

tmsize_t tiff_read(thandle_t handle, void* to, tmsize_t count) {
  if (count < 0) return 0;
  return static_cast<tmsize_t>(
      static_cast<MemoryFile*>(handle)->read(to, static_cast<std::size_t>(count)));
}

tmsize_t tiff_write(thandle_t, void*, tmsize_t) { return 0; }

toff_t tiff_seek(thandle_t handle, toff_t offset, int whence) {
  auto* file = static_cast<MemoryFile*>(handle);
  const toff_t base = whence == SEEK_CUR ? file->at : whence == SEEK_END ? file->bytes.size() : 0;
  file->at = static_cast<std::size_t>(std::min<toff_t>(base + offset, file->bytes.size()));
  return file->at;
}

int tiff_close(thandle_t) { return 0; }
toff_t tiff_size(thandle_t handle) { return static_cast<MemoryFile*>(handle)->bytes.size(); }
int ignore_tiff_message(TIFF*, void*, const char*, const char*, va_list) { return 1; }

}  // namespace

std::optional<Image> decode_tiff(Bytes bytes) {
  MemoryFile file{bytes};
  TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
  if (options == nullptr) return std::nullopt;
  TIFFOpenOptionsSetErrorHandlerExtR(options, ignore_tiff_message, nullptr);
  TIFFOpenOptionsSetWarningHandlerExtR(options, ignore_tiff_message, nullptr);
  TIFF* tiff = TIFFClientOpenExt("image", "rm", &file, tiff_read, tiff_write, tiff_seek, tiff_close,
                                 tiff_size, nullptr, nullptr, options);
  TIFFOpenOptionsFree(options);
  if (tiff == nullptr) return std::nullopt;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
  auto image = make_image(height, width);
  bool is_read = false;
  if (image) {
    std::vector<std::uint8_t> rgba(image->pixels.size() / 3 * 4);
    is_read = TIFFReadRGBAImageOriented(tiff, width, height,
                                        reinterpret_cast<std::uint32_t*>(rgba.data()),
                                        ORIENTATION_TOPLEFT, 1) != 0;
    if (is_read) image = without_alpha(rgba, *std::move(image));
  }
  TIFFClose(tiff);
  return is_read ? image : std::nullopt;
}

namespace {

OPJ_SIZE_T opj_read(void* to, OPJ_SIZE_T count, void* handle) {
  const std::size_t done = static_cast<MemoryFile*>(handle)->read(to, count);
  return done != 0 ? done : static_cast<OPJ_SIZE_T>(-1);
}

OPJ_OFF_T opj_skip(OPJ_OFF_T count, void* handle) {
  auto* file = static_cast<MemoryFile*>(handle);
  if (count < 0) return -1;
  file->at = std::min(file->at + static_cast<std::size_t>(count), file->bytes.size());
  return count;
}

OPJ_BOOL opj_seek(OPJ_OFF_T offset, void* handle) {
  auto* file = static_cast<MemoryFile*>(handle);
  if (offset < 0 || static_cast<std::size_t>(offset) > file->bytes.size()) return OPJ_FALSE;
  file->at = static_cast<std::size_t>(offset);
  return OPJ_TRUE;
}

/// Takes over components of up to 16 bits and one size; grey counts for all three colours.
std::optional<Image> take_components(const opj_image_t& decoded) {
  if (decoded.numcomps < 1) return std::nullopt;
  const opj_image_comp_t& first = decoded.comps[0];
  auto image = make_image(first.h, first.w);
  if (!image) return std::nullopt;
  for (std::size_t c = 0; c < 3; ++c) {
    const opj_image_comp_t& part = decoded.comps[decoded.numcomps >= 3 ? c : 0];
    if (part.w != first.w || part.h != first.h || part.data == nullptr || part.prec < 1 ||
        part.prec > 16) {
      return std::nullopt;
    }
    const int shift = part.sgnd != 0 ? 1 << (part.prec - 1) : 0;
    const int most = (1 << part.prec) - 1;
    for (std::size_t i = 0; i < image->pixels.size() / 3; ++i) {
      const int value = std::clamp(part.data[i] + shift, 0, most);
      image->pixels[3 * i + c] = static_cast<std::uint8_t>(value * 255 / most);
    }
  }
  return image;
}

}  // namespace

std::optional<Image> decode_jpeg2000(Bytes bytes) {
  MemoryFile file{bytes};
  const bool is_raw = !bytes.empty() && bytes[0] == 0xff;
  opj_codec_t* codec = opj_create_decompress(is_raw ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
  opj_stream_t* stream = opj_stream_default_create(OPJ_TRUE);
  std::optional<Image> image;
  if (codec != nullptr && stream != nullptr) {
    opj_dparameters_t parameters;
    opj_set_default_decoder_parameters(&parameters);
    opj_stream_set_read_function(stream, opj_read);
    opj_stream_set_skip_function(stream, opj_skip);
    opj_stream_set_seek_function(stream, opj_seek);
    opj_stream_set_user_data(stream, &file, nullptr);
    opj_stream_set_user_data_length(stream, bytes.size());
    opj_image_t* decoded = nullptr;
    if (opj_setup_decoder(codec, &parameters) != 0 &&
        opj_read_header(stream, codec, &decoded) != 0) {
      const bool fits = make_image(decoded->y1 - std::int64_t{decoded->y0},
                                   decoded->x1 - std::int64_t{decoded->x0})
                            .has_value();
      if (fits && opj_decode(codec, stream, decoded) != 0) image = take_components(*decoded);
    }
    if (decoded != nullptr) opj_image_destroy(decoded);
  }
  if (stream != nullptr) opj_stream_destroy(stream);
  if (codec != nullptr) opj_destroy_codec(codec);
  return image;
}

}  // namespace sardonyx

#else

namespace sardonyx {

bool has_codecs() { return false; }

std::optional<Image> decode_jpeg(Bytes) { return std::nullopt; }
std::optional<Image> decode_png(Bytes) { return std::nullopt; }
std::optional<Image> decode_webp(Bytes) { return std::nullopt; }
std::optional<Image> decode_tiff(Bytes) { return std::nullopt; }
std::optional<Image> decode_jpeg2000(Bytes) { return std::nullopt; }

}  // namespace sardonyx

#endif

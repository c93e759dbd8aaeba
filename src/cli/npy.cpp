#include "cli/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>


namespace sardonyx::cli {

namespace {

using Kind = ElementType::Kind;
constexpr std::string_view kMagic = "\x93NUMPY";

struct Header {
  std::string descr;
  bool is_fortran = false;
  std::vector<std::int64_t> dims;
  std::span<const std::byte> data;
};

/// What follows 'key': in the header's dict literal.
std::optional<std::string_view> after_key(std::string_view text, std::string_view key) {
  auto at = text.find(fmt::format("'{}'", key));
  if (at == std::string_view::npos) return std::nullopt;
  at = text.find(':', at);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + 1);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text;
}

bool parse_shape(std::string_view text, std::vector<std::int64_t>* dims) {
  if (!text.starts_with('(')) return false;
  const auto end = text.find(')');
  if (end == std::string_view::npos) return false;
  const char* at = text.data() + 1;
  const char* last = text.data() + end;
  while (at != last) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    std::int64_t dim = 0;
    const auto [next, error] = std::from_chars(at, last, dim);
    if (error != std::errc() || dim < 0) return false;
    dims->push_back(dim);
    at = next;
  }
  return true;
}

Result<Header> parse_header(std::span<const std::byte> bytes) {
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  if (bytes.size() < 10 || std::string_view(text, kMagic.size()) != kMagic) {
    return Status("this is no .npy file: it should begin with \\x93NUMPY");
  }
  const bool is_long = std::to_integer<int>(bytes[6]) >= 2;
  const std::size_t start = is_long ? 12 : 10;
  std::uint32_t length = 0;
  if (bytes.size() >= start) std::memcpy(&length, text + 8, is_long ? 4 : 2);
  if (bytes.size() < start || bytes.size() - start < length) {
    return failure("the .npy file is cut: its header should have {} bytes",
                   length);
  }
  const std::string_view dict(text + start, length);
  const auto descr = after_key(dict, "descr");
  const auto order = after_key(dict, "fortran_order");
  const auto shape = after_key(dict, "shape");
  Header header;
  if (!descr || !order || !shape || !parse_shape(*shape, &header.dims)) {
    return Status("the .npy header should have 'descr', 'fortran_order' and 'shape'");
  }
  if (!descr->starts_with('\'') || descr->find('\'', 1) == std::string_view::npos) {
    return Status("arrays of structures are not supported");
  }
  header.descr = descr->substr(1, descr->find('\'', 1) - 1);
  header.is_fortran = order->starts_with("True");
  header.data = bytes.subspan(start + length);
  return header;
}

void append_utf8(std::uint32_t letter, std::string* text) {
  if (letter > 0x10ffff) letter = 0xfffd;
  if (letter < 0x80) {
    text->push_back(static_cast<char>(letter));
    return;
  }
  const int more = letter < 0x800 ? 1 : letter < 0x10000 ? 2 : 3;
  static constexpr std::uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  text->push_back(static_cast<char>(kLead[more] | (letter >> (6 * more))));
  for (int i = more - 1; i >= 0; --i) {
    text->push_back(static_cast<char>(0x80U | ((letter >> (6 * i)) & 0x3fU)));
  }
}

/// Texts of fixed width: UCS-4 ("<U5") or bytes ("|S5"), padded by zeros.
void read_texts(const Header& header, std::size_t width, bool is_wide, Array& array) {
  const std::byte* at = header.data.data();
  for (std::string& text : array.texts) {
    std::size_t used = width;
    for (std::size_t i = 0; i < width; ++i) {
      std::uint32_t letter = 0;
      std::memcpy(&letter, at + i * (is_wide ? 4 : 1), is_wide ? 4 : 1);
      if (letter == 0) {
        used = std::min(used, i);
        continue;
      }
      if (is_wide) append_utf8(letter, &text);
    }
    if (!is_wide) text.assign(reinterpret_cast<const char*>(at), used);
    at += width * (is_wide ? 4 : 1);
  }
}

/// The elements of a column-major array in row-major order.
std::vector<std::byte> row_major(std::span<const std::byte> data, std::size_t item_bytes,
                                 const std::vector<std::int64_t>& dims) {
  std::vector<std::byte> result(data.size());
  std::vector<std::int64_t> index(dims.size(), 0);
  for (std::size_t to = 0; to + item_bytes <= result.size(); to += item_bytes) {
    std::int64_t from = 0;
    for (std::size_t axis = dims.size(); axis-- > 0;) from = from * dims[axis] + index[axis];
    std::memcpy(result.data() + to, data.data() + static_cast<std::size_t>(from) * item_bytes,
                item_bytes);
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      if (++index[axis] < dims[axis]) break;
      index[axis] = 0;
    }
  }
  return result;
}

/// Bytes of one element and the element type of the array that a descr makes.
struct Layout {
  std::size_t item_bytes = 0;
  std::size_t text_width = 0;
  bool is_wide = false;
  const ElementType* type = nullptr;
};

Result<Layout> layout_of(const std::string& descr, const ElementType* wanted) {
  if (descr.size() >= 3 && (descr[1] == 'U' || descr[1] == 'S') && descr[0] != '>') {
    Layout layout{0, 0, descr[1] == 'U', find_element(ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)};
    const auto [end, error] =
        std::from_chars(descr.data() + 2, descr.data() + descr.size(), layout.text_width);
    if (error == std::errc() && layout.text_width < (std::size_t{1} << 32)) {
      layout.item_bytes = layout.text_width * (layout.is_wide ? 4 : 1);
      return layout;
    }
  }
  if (wanted != nullptr && wanted->kind != Kind::Text) {
    const bool is_same = descr == wanted->descr;
    const bool is_raw = descr.size() == 3 && descr[1] == 'V' && wanted->bits <= 16 &&
                        descr[2] - '0' == std::max(wanted->bits / 8, 1);
    const bool is_named = descr == wanted->name;
    if (is_same || is_raw || is_named) {
      return Layout{static_cast<std::size_t>(std::max(wanted->bits / 8, 1)), 0, false, wanted};
    }
  }
  if (const ElementType* type = find_element_by_descr(descr)) {
    return Layout{static_cast<std::size_t>(type->bits / 8), 0, false, type};
  }
  return failure("elements of numpy's type '{}' are not supported (supported: bool, integers, "
                 "floats and complex numbers, little-endian; U and S texts)",
                 descr);
}

}  // namespace

Result<Array> parse_npy(std::span<const std::byte> bytes, const ElementType* wanted) {
  SDX_ASSIGN(const Header header, parse_header(bytes));
  SDX_ASSIGN(const Layout layout, layout_of(header.descr, wanted));
  const auto count = count_elements(header.dims);
  std::size_t expected = 0;
  if (!count || __builtin_mul_overflow(static_cast<std::size_t>(*count), layout.item_bytes,
                                       &expected) ||
      expected != header.data.size()) {
    return failure("the .npy file's shape and type do not fit its {} bytes of data",
                   header.data.size());
  }
  if (layout.type->kind == Kind::Text && layout.item_bytes == 0 && *count > (1 << 20)) {
    return Status("the .npy file names more texts than it holds");
  }
  SDX_ASSIGN(Array array, make_array(*layout.type, header.dims));
  Header ordered = header;
  std::vector<std::byte> moved;
  if (header.is_fortran && header.dims.size() > 1 && layout.item_bytes != 0) {
    moved = row_major(header.data, layout.item_bytes, header.dims);
    ordered.data = moved;
  }
  if (layout.type->kind == Kind::Text) {
    read_texts(ordered, layout.text_width, layout.is_wide, array);
  } else if (layout.type->bits >= 8) {
    std::copy(ordered.data.begin(), ordered.data.end(), array.bytes.begin());
  } else {
    for (std::int64_t i = 0; i < *count; ++i) {
      const auto raw = std::to_integer<std::uint8_t>(ordered.data[static_cast<std::size_t>(i)]);
      const bool is_signed = layout.type->kind == Kind::Signed;
      const int number = is_signed ? static_cast<std::int8_t>(raw) : raw;
      if (!set_integer(array, i, number)) {
        return failure("element {} is {}, outside the range of {}", i,
                       number, layout.type->name);
      }
    }
  }
  return array;
}

namespace {

/// The letters of UTF-8 text; wrong bytes give U+FFFD.
std::u32string letters_of(const std::string& text) {
  std::u32string letters;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    const int more = lead < 0x80 ? 0 : lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : -1;
    std::uint32_t letter = more < 0 ? 0xfffdU : lead & (more == 0 ? 0x7fU : 0x3fU >> more);
    for (int k = 0; k < more; ++k) {
      const bool goes_on = i < text.size() && (text[i] & 0xc0) == 0x80;
      if (!goes_on) {
        letter = 0xfffd;
        break;
      }
      letter = (letter << 6) | (static_cast<unsigned char>(text[i++]) & 0x3fU);
    }
    letters.push_back(letter > 0x10ffff ? U'\xfffd' : static_cast<char32_t>(letter));
  }
  return letters;
}

std::string header_text(const std::string& descr, const std::vector<std::int64_t>& dims) {
  std::string shape = "(";
  for (const std::int64_t dim : dims) shape += fmt::format("{}, ", dim);
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}), }}", descr,
                                 dims.empty() ? "(" : shape);
  const bool is_long = dict.size() > 65000;
  const std::size_t start = is_long ? 12 : 10;
  dict.append(63 - (start + dict.size()) % 64, ' ');
  dict.push_back('\n');
  std::string text(kMagic);
  text.push_back(is_long ? '\x02' : '\x01');
  text.push_back('\0');
  const auto length = static_cast<std::uint32_t>(dict.size());
  text.append(reinterpret_cast<const char*>(&length), is_long ? 4 : 2);
  return text + dict;
}

}  // namespace

Result<std::string> format_npy(const Array& array) {
  if (array.type->kind == Kind::Text) {
    std::vector<std::u32string> texts;
    std::size_t width = 1;
    for (const std::string& text : array.texts) {
      width = std::max(width, texts.emplace_back(letters_of(text)).size());
    }
    std::string bytes = header_text(fmt::format("<U{}", width), array.dims);
    for (std::u32string& text : texts) {
      text.resize(width, U'\0');
      bytes.append(reinterpret_cast<const char*>(text.data()), width * 4);
    }
    return bytes;
  }
  std::string bytes = header_text(array.type->descr, array.dims);
  if (array.type->bits >= 8) {
    bytes.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
    return bytes;
  }
  for (std::int64_t i = 0; i < array.element_count(); ++i) {
    bytes.push_back(static_cast<char>(static_cast<int>(number_at(array, i).value_or(0))));
  }
  return bytes;
}

}  // namespace sardonyx::cli

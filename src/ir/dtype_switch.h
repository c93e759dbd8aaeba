#pragma once

#include <cstdint>

#include "base/small_floats.h"
#include "ir/dtype.h"

namespace sardonyx {

/// Calls body.template operator()<T>() with the C++ type of `dtype`; false when it is not one of
/// the plain integers, floats (Half and BFloat16 included) or bool. Each use instantiates the body
/// fourteen times: narrow it with the functions below where a family allows.
template <typename Body>
bool switch_floats(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::Float32: body.template operator()<float>(); return true;
    case DType::Float64: body.template operator()<double>(); return true;
    case DType::Float16: body.template operator()<Half>(); return true;
    case DType::BFloat16: body.template operator()<BFloat16>(); return true;
    default: return false;
  }
}

template <typename Body>
bool switch_ints(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::Int8: body.template operator()<std::int8_t>(); return true;
    case DType::Int16: body.template operator()<std::int16_t>(); return true;
    case DType::Int32: body.template operator()<std::int32_t>(); return true;
    case DType::Int64: body.template operator()<std::int64_t>(); return true;
    case DType::UInt8: body.template operator()<std::uint8_t>(); return true;
    case DType::UInt16: body.template operator()<std::uint16_t>(); return true;
    case DType::UInt32: body.template operator()<std::uint32_t>(); return true;
    case DType::UInt64: body.template operator()<std::uint64_t>(); return true;
    default: return false;
  }
}

template <typename Body>
bool switch_numeric(DType dtype, Body&& body) {
  return switch_floats(dtype, body) || switch_ints(dtype, body);
}

}  // namespace sardonyx

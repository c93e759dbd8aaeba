#include <algorithm>
#include <cstring>
#include <span>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/places.h"
#include "capi/status.h"
#include "ir/make_map.h"

namespace sardonyx::capi {

namespace {

/// The tensor of a value, or InvalidArgument.
Result<Tensor*> tensor_of(const OrtValue* value) {
  SDX_TRY(require(value, "value"));
  Tensor* tensor = const_cast<OrtValue*>(value)->datum.tensor();
  if (tensor != nullptr) return tensor;
  return failure(Code::InvalidArgument, "the value is {}, expected a tensor",
                 value->datum.has_value() ? value->datum.type().to_string() : "empty");
}

Result<Tensor*> string_tensor_of(const OrtValue* value) {
  SDX_ASSIGN(Tensor * tensor, tensor_of(value));
  if (tensor->dtype() == DType::String) return tensor;
  return failure(kPlainFailure, "the tensor holds {}, expected strings",
                 dtype_name(tensor->dtype()));
}

/// The strings of a tensor, or of a sparse one.
Result<const Tensor*> strings_of(const OrtValue* value) {
  SDX_TRY(require(value, "value"));
  const SparseTensor* sparse = value->datum.sparse();
  if (sparse != nullptr && sparse->values.dtype() == DType::String) return &sparse->values;
  SDX_ASSIGN(const Tensor* tensor, string_tensor_of(value));
  return tensor;
}

Result<std::string*> string_at(const OrtValue* value, size_t index) {
  SDX_ASSIGN(Tensor * tensor, string_tensor_of(value));
  const auto strings = tensor->mutable_values<std::string>();
  if (index < strings.size()) return &strings[index];
  return failure(Code::InvalidArgument, "element {} is outside a tensor of {} elements", index,
                 strings.size());
}

}  // namespace

Result<Tensor> allocate_with(const HeldAllocator& held, DType dtype, const Shape& shape) {
  OrtAllocator* allocator = held.allocator;
  if (dtype == DType::String || allocator == nullptr || allocator == default_allocator()) {
    return Tensor::allocate(dtype, shape);
  }
  const auto count = shape.element_count();
  const auto bytes = count ? dtype_bytes(dtype, *count) : std::nullopt;
  void* memory = bytes ? allocator->Alloc(allocator, std::max<size_t>(*bytes, 1)) : nullptr;
  if (memory == nullptr) {
    return failure(Code::OutOfMemory, "no memory for a tensor({}) of shape {}", dtype_name(dtype),
                   shape.to_string());
  }
  const OrtMemoryInfo* info = allocator->Info(allocator);
  const Place* place = info != nullptr ? place_of(*info) : nullptr;
  return tensor_at(place, dtype, shape, memory, [own = HeldAllocator(held)](void* block) mutable {
    own.free(block);
    // Weak references to the tensor keep this function.
    own = {};
  });
}

void copy_elements(const Tensor& from, Tensor& to) {
  if (from.dtype() == DType::String) {
    const auto source = from.values<std::string>();
    std::copy(source.begin(), source.end(), to.mutable_values<std::string>().begin());
  } else if (from.byte_size() != 0) {
    std::memcpy(to.mutable_data(), from.data(), from.byte_size());
  }
}

OrtStatus* CreateTensorAsOrtValue(OrtAllocator* allocator, const int64_t* shape, size_t shape_count,
                                  ONNXTensorElementDataType type, OrtValue** out) noexcept {
  return guarded("CreateTensorAsOrtValue", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_ASSIGN(const DType dtype, to_dtype(type));
    SDX_ASSIGN(const Shape dims, to_shape(shape, shape_count));
    SDX_ASSIGN(Tensor tensor, allocate_with(allocator, dtype, dims));
    const OrtMemoryInfo* info = allocator != nullptr ? allocator->Info(allocator) : nullptr;
    *out = new OrtValue{Datum(std::move(tensor)), info != nullptr ? *info : cpu_memory_info()};
    return {};
  });
}

namespace {

Result<Tensor> view_of(const OrtMemoryInfo* info, void* data, size_t data_bytes,
                       const int64_t* shape, size_t shape_count, ONNXTensorElementDataType type) {
  SDX_ASSIGN(const DType dtype, to_dtype(type));
  SDX_ASSIGN(const Shape dims, to_shape(shape, shape_count));
  if (dtype == DType::String) {
    return failure(Code::InvalidArgument,
                   "string tensors cannot be made over memory: use CreateTensorAsOrtValue");
  }
  const auto count = dims.element_count();
  const auto needed = count ? dtype_bytes(dtype, *count) : std::nullopt;
  if (!needed || *needed > data_bytes) {
    return failure(Code::InvalidArgument,
                   "a tensor({}) of shape {} needs {} bytes, but the buffer has {}",
                   dtype_name(dtype), dims.to_string(), needed.value_or(0), data_bytes);
  }
  return tensor_at(info != nullptr ? place_of(*info) : nullptr, dtype, dims, data);
}

}  // namespace

OrtStatus* CreateTensorWithDataAsOrtValue(const OrtMemoryInfo* info, void* data, size_t data_bytes,
                                          const int64_t* shape, size_t shape_count,
                                          ONNXTensorElementDataType type, OrtValue** out) noexcept {
  return guarded("CreateTensorWithDataAsOrtValue", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_ASSIGN(Tensor tensor, view_of(info, data, data_bytes, shape, shape_count, type));
    *out = new OrtValue{Datum(std::move(tensor)), info != nullptr ? *info : cpu_memory_info()};
    return {};
  });
}

OrtStatus* CreateTensorWithDataAndDeleterAsOrtValue(OrtAllocator* deleter, void* data,
                                                    size_t data_bytes, const int64_t* shape,
                                                    size_t shape_count,
                                                    ONNXTensorElementDataType type,
                                                    OrtValue** out) noexcept {
  return guarded("CreateTensorWithDataAndDeleterAsOrtValue", [&]() -> Status {
    SDX_TRY(require(deleter, "deleter"));
    SDX_TRY(require(out, "out"));
    const OrtMemoryInfo* info = deleter->Info(deleter);
    SDX_ASSIGN(Tensor tensor, view_of(info, data, data_bytes, shape, shape_count, type));
    Tensor owned = tensor_at(place_of(tensor), tensor.dtype(), tensor.shape(), data,
                             [held = hold(deleter)](void* memory) mutable {
                               held.free(memory);
                               held = {};
                             });
    *out = new OrtValue{Datum(std::move(owned)), info != nullptr ? *info : cpu_memory_info()};
    return {};
  });
}

void ReleaseValue(OrtValue* object) noexcept { delete object; }

OrtStatus* IsTensor(const OrtValue* value, int* out) noexcept {
  return guarded("IsTensor", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    *out = value != nullptr && value->datum.tensor() != nullptr ? 1 : 0;
    return {};
  });
}

OrtStatus* IsSparseTensor(const OrtValue* value, int* out) noexcept {
  return guarded("IsSparseTensor", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    *out = value != nullptr && value->datum.sparse() != nullptr ? 1 : 0;
    return {};
  });
}

OrtStatus* HasValue(const OrtValue* value, int* out) noexcept {
  return guarded("HasValue", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    *out = value != nullptr && value->datum.has_value() ? 1 : 0;
    return {};
  });
}

OrtStatus* GetTensorMutableData(OrtValue* value, void** out) noexcept {
  return guarded("GetTensorMutableData", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_ASSIGN(Tensor * tensor, tensor_of(value));
    *out = tensor->mutable_data();
    return {};
  });
}

OrtStatus* GetTensorData(const OrtValue* value, const void** out) noexcept {
  return guarded("GetTensorData", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_ASSIGN(Tensor * tensor, tensor_of(value));
    *out = tensor->data();
    return {};
  });
}

OrtStatus* GetTensorSizeInBytes(const OrtValue* ort_value, size_t* size) noexcept {
  return guarded("GetTensorSizeInBytes", [&]() -> Status {
    SDX_TRY(require(size, "size"));
    SDX_ASSIGN(Tensor * tensor, tensor_of(ort_value));
    if (tensor->dtype() == DType::String) {
      return failure(Code::InvalidArgument, "string tensors have no size in bytes");
    }
    *size = tensor->byte_size();
    return {};
  });
}

OrtStatus* GetTensorElementTypeAndShapeDataReference(const OrtValue* value,
                                                     ONNXTensorElementDataType* element_type,
                                                     const int64_t** shape_data,
                                                     size_t* shape_data_count) noexcept {
  return guarded("GetTensorElementTypeAndShapeDataReference", [&]() -> Status {
    SDX_TRY(require(value, "value"));
    SDX_TRY(require(element_type, "element_type"));
    SDX_TRY(require(shape_data, "shape_data"));
    SDX_TRY(require(shape_data_count, "shape_data_count"));
    const SparseTensor* sparse = value->datum.sparse();
    const Tensor* tensor = sparse != nullptr ? &sparse->values : value->datum.tensor();
    if (tensor == nullptr) return failure(Code::InvalidArgument, "the value is not a tensor");
    const Shape& shape = sparse != nullptr ? sparse->shape : tensor->shape();
    *element_type = to_ort(tensor->dtype());
    *shape_data = shape.empty() ? nullptr : shape.begin();
    *shape_data_count = static_cast<size_t>(shape.rank());
    return {};
  });
}

OrtStatus* TensorAt(OrtValue* value, const int64_t* location_values, size_t location_values_count,
                    void** out) noexcept {
  return guarded("TensorAt", [&]() -> Status {
    if (location_values_count != 0) SDX_TRY(require(location_values, "location_values"));
    SDX_TRY(require(out, "out"));
    SDX_ASSIGN(Tensor * tensor, tensor_of(value));
    const Shape& shape = tensor->shape();
    if (tensor->dtype() == DType::String || dtype_bits(tensor->dtype()) < 8) {
      return failure(Code::InvalidArgument, "elements of {} have no address of their own",
                     dtype_name(tensor->dtype()));
    }
    if (location_values_count != static_cast<size_t>(shape.rank())) {
      return failure(Code::InvalidArgument, "expected {} coordinates, found {}", shape.rank(),
                     location_values_count);
    }
    const Shape strides = strides_of(shape);
    std::int64_t offset = 0;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const int64_t at = location_values[axis];
      if (at < 0 || at >= shape[axis]) {
        return failure(Code::InvalidArgument, "coordinate {} is {}, expected 0 to {}", axis, at,
                       shape[axis] - 1);
      }
      offset += at * strides[axis];
    }
    *out = tensor->mutable_data() + offset * (dtype_bits(tensor->dtype()) / 8);
    return {};
  });
}

OrtStatus* GetTensorMemoryInfo(const OrtValue* value, const OrtMemoryInfo** mem_info) noexcept {
  return guarded("GetTensorMemoryInfo", [&]() -> Status {
    SDX_TRY(require(value, "value"));
    SDX_TRY(require(mem_info, "mem_info"));
    *mem_info = &value->memory;
    return {};
  });
}

OrtStatus* FillStringTensor(OrtValue* value, const char* const* strings, size_t s_count) noexcept {
  return guarded("FillStringTensor", [&]() -> Status {
    if (s_count != 0) SDX_TRY(require(strings, "strings"));
    SDX_ASSIGN(Tensor * tensor, string_tensor_of(value));
    const auto target = tensor->mutable_values<std::string>();
    if (s_count != target.size()) {
      return failure(Code::InvalidArgument, "the tensor has {} elements, but {} strings were given",
                     target.size(), s_count);
    }
    for (size_t i = 0; i < s_count; ++i) target[i] = strings[i];
    return {};
  });
}

OrtStatus* FillStringTensorElement(OrtValue* value, const char* strings, size_t index) noexcept {
  return guarded("FillStringTensorElement", [&]() -> Status {
    SDX_ASSIGN(std::string * target, string_at(value, index));
    *target = strings;
    return {};
  });
}

OrtStatus* GetResizedStringTensorElementBuffer(OrtValue* value, size_t index,
                                               size_t length_in_bytes, char** buffer) noexcept {
  return guarded("GetResizedStringTensorElementBuffer", [&]() -> Status {
    SDX_TRY(require(buffer, "buffer"));
    SDX_ASSIGN(std::string * target, string_at(value, index));
    target->resize(length_in_bytes);
    *buffer = target->data();
    return {};
  });
}

OrtStatus* GetStringTensorDataLength(const OrtValue* value, size_t* len) noexcept {
  return guarded("GetStringTensorDataLength", [&]() -> Status {
    SDX_TRY(require(len, "len"));
    SDX_ASSIGN(const Tensor* tensor, strings_of(value));
    size_t total = 0;
    for (const std::string& text : tensor->values<std::string>()) total += text.size();
    *len = total;
    return {};
  });
}

OrtStatus* GetStringTensorContent(const OrtValue* value, void* strings, size_t s_count,
                                  size_t* offsets, size_t offsets_count) noexcept {
  return guarded("GetStringTensorContent", [&]() -> Status {
    if (offsets_count != 0) SDX_TRY(require(offsets, "offsets"));
    if (s_count != 0) SDX_TRY(require(strings, "strings"));
    SDX_ASSIGN(const Tensor* tensor, strings_of(value));
    const auto source = tensor->values<std::string>();
    if (offsets_count < source.size()) {
      return failure(kPlainFailure, "the tensor has {} elements, but {} offsets fit",
                     source.size(), offsets_count);
    }
    size_t used = 0;
    for (size_t i = 0; i < source.size(); ++i) {
      if (source[i].size() > s_count - used) {
        return failure(kPlainFailure, "the strings need more than {} bytes", s_count);
      }
      std::memcpy(static_cast<char*>(strings) + used, source[i].data(), source[i].size());
      offsets[i] = used;
      used += source[i].size();
    }
    return {};
  });
}

OrtStatus* GetStringTensorElementLength(const OrtValue* value, size_t index, size_t* out) noexcept {
  return guarded("GetStringTensorElementLength", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_ASSIGN(const std::string* text, string_at(value, index));
    *out = text->size();
    return {};
  });
}

OrtStatus* GetStringTensorElement(const OrtValue* value, size_t s_count, size_t index,
                                  void* strings) noexcept {
  return guarded("GetStringTensorElement", [&]() -> Status {
    SDX_ASSIGN(const std::string* text, string_at(value, index));
    if (!text->empty()) SDX_TRY(require(strings, "strings"));
    if (s_count < text->size()) {
      return failure(kPlainFailure, "the string needs {} bytes, the buffer has {}",
                     text->size(), s_count);
    }
    std::memcpy(strings, text->data(), text->size());
    return {};
  });
}

OrtStatus* GetValueCount(const OrtValue* value, size_t* out) noexcept {
  return guarded("GetValueCount", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_TRY(require(value, "value"));
    if (const Sequence* sequence = value->datum.sequence()) {
      *out = sequence->items.size();
    } else if (value->datum.map() != nullptr) {
      *out = 2;
    } else {
      return failure(kPlainFailure, "the value should be a sequence or a map");
    }
    return {};
  });
}

namespace {

/// The datum with a tensor, if it is one, in memory of its own.
Result<Datum> copied(const Datum& datum, OrtAllocator* allocator) {
  const Tensor* tensor = datum.tensor();
  if (tensor == nullptr) return datum;
  SDX_ASSIGN(Tensor copy, allocate_with(allocator, tensor->dtype(), tensor->shape()));
  if (tensor->dtype() == DType::String) {
    const auto texts = tensor->values<std::string>();
    std::copy(texts.begin(), texts.end(), copy.mutable_values<std::string>().begin());
  } else if (tensor->byte_size() != 0) {
    std::memcpy(copy.mutable_data(), tensor->data(), tensor->byte_size());
  }
  return Datum(std::move(copy));
}

Result<Datum> map_of(std::span<const OrtValue* const> parts) {
  const Tensor* keys = parts.size() == 2 ? parts[0]->datum.tensor() : nullptr;
  const Tensor* values = parts.size() == 2 ? parts[1]->datum.tensor() : nullptr;
  if (keys == nullptr || values == nullptr || keys->rank() > 1 || values->rank() > 1 ||
      keys->element_count() != values->element_count()) {
    return failure(Code::InvalidArgument,
                   "a map is made of a tensor of keys and one of as many values, of rank 1");
  }
  if (keys->dtype() != DType::Int64 && keys->dtype() != DType::String) {
    return failure(Code::InvalidArgument, "the keys of a map should be int64 or string, found {}",
                   dtype_name(keys->dtype()));
  }
  constexpr DTypeSet kValues =
      set_of(DType::Float32, DType::Float64, DType::Int64, DType::String);
  if (!contains(kValues, values->dtype())) {
    return failure(Code::InvalidArgument,
                   "the values of a map should be float, double, int64 or string, found {}",
                   dtype_name(values->dtype()));
  }
  SDX_ASSIGN(auto map, make_map(*keys, *values));
  return Datum(std::move(map));
}

/// The tensors are shared with the values that the sequence is made of.
Result<Datum> sequence_of(std::span<const OrtValue* const> values) {
  auto sequence = std::make_shared<Sequence>();
  for (const OrtValue* value : values) {
    Type type = value->datum.type();
    if (type.kind != Type::Kind::Tensor && type.kind != Type::Kind::Map) {
      return failure(Code::InvalidArgument,
                     "the items of a sequence should be tensors or maps, found {}",
                     value->datum.has_value() ? type.to_string() : "an empty value");
    }
    type.shape.reset();
    if (sequence->items.empty()) sequence->element = type;
    if (type.to_string() != sequence->element.to_string()) {
      return failure(Code::InvalidArgument,
                     "the items of a sequence should be of one type, found {} and {}",
                     sequence->element.to_string(), type.to_string());
    }
    sequence->items.push_back(value->datum);
  }
  return Datum(std::shared_ptr<const Sequence>(std::move(sequence)));
}

}  // namespace

OrtStatus* GetValue(const OrtValue* value, int index, OrtAllocator* allocator,
                    OrtValue** out) noexcept {
  return guarded("GetValue", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_TRY(require(value, "value"));
    const auto i = static_cast<size_t>(index);
    if (const Sequence* sequence = value->datum.sequence()) {
      if (i >= sequence->items.size()) {
        return failure(kPlainFailure, "item {} is outside a sequence of {}", index,
                       sequence->items.size());
      }
      SDX_ASSIGN(Datum item, copied(sequence->items[i], allocator));
      *out = new OrtValue{std::move(item), value->memory};
      return {};
    }
    const Map* map = value->datum.map();
    if (map == nullptr || i > 1) {
      return failure(kPlainFailure,
                     "a map has the keys as item 0 and the values as item 1, asked for {}", index);
    }
    SDX_ASSIGN(Datum item, copied(i == 0 ? map->keys : map->values, allocator));
    *out = new OrtValue{std::move(item), value->memory};
    return {};
  });
}

OrtStatus* CreateValue(const OrtValue* const* in, size_t value_count, ONNXType value_type,
                       OrtValue** out) noexcept {
  return guarded("CreateValue", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    if (value_count != 0) SDX_TRY(require(in, "in"));
    const std::span<const OrtValue* const> values(in, value_count);
    for (const OrtValue* value : values) SDX_TRY(require(value, "in"));
    Datum made;
    if (value_type == ONNX_TYPE_MAP) {
      SDX_ASSIGN(made, map_of(values));
    } else if (value_type == ONNX_TYPE_SEQUENCE) {
      SDX_ASSIGN(made, sequence_of(values));
    } else {
      return failure(Code::InvalidArgument, "values can be made as sequences or as maps");
    }
    *out = new OrtValue{std::move(made), cpu_memory_info()};
    return {};
  });
}

}  // namespace sardonyx::capi

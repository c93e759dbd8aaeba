// The class OrtValue, DLPack, sparse tensors.
#include "value.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "numpy_api.h"

namespace sardonyx::python {
namespace {

constexpr auto kUndefined = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;

ONNXType kind_of(const Value& self) {
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  check(api().GetValueType(self.handle.get(), &kind));
  return kind;
}

bool has_value(const Value& self) {
  int result = 0;
  check(api().HasValue(self.handle.get(), &result));
  return result != 0;
}

struct Description {
  ONNXTensorElementDataType element = kUndefined;
  std::vector<int64_t> shape;
  size_t count = 0;
};

Description describe(const Value& self) {
  const ONNXType kind = kind_of(self);
  if (kind != ONNX_TYPE_TENSOR && kind != ONNX_TYPE_SPARSETENSOR) {
    throw nb::value_error("only a tensor has a shape and an element type");
  }
  OrtTensorTypeAndShapeInfo* info = nullptr;
  check(api().GetTensorTypeAndShape(self.handle.get(), &info));
  ShapeHandle owner(info);
  Description result;
  size_t rank = 0;
  check(api().GetTensorElementType(info, &result.element));
  check(api().GetDimensionsCount(info, &rank));
  check(api().GetTensorShapeElementCount(info, &result.count));
  result.shape.resize(rank);
  check(api().GetDimensions(info, result.shape.data(), rank));
  return result;
}

std::string data_type(const Value& self) {
  OrtTypeInfo* info = nullptr;
  check(api().GetTypeInfo(self.handle.get(), &info));
  TypeInfoHandle owner(info);
  return info ? read_type(info).name() : "";
}

const OrtMemoryInfo* memory_of(const Value& self) {
  const OrtMemoryInfo* memory = nullptr;
  check(api().GetTensorMemoryInfo(self.handle.get(), &memory));
  return memory;
}

std::string device_name(const Value& self) {
  const ONNXType kind = kind_of(self);
  if (kind != ONNX_TYPE_TENSOR) return "cpu";
  OrtMemoryInfoDeviceType device = OrtMemoryInfoDeviceType_CPU;
  api().MemoryInfoGetDeviceType(memory_of(self), &device);
  if (device == OrtMemoryInfoDeviceType_CPU) return "cpu";
  if (device == OrtMemoryInfoDeviceType_GPU) return "gpu";
  return device == OrtMemoryInfoDeviceType_NPU ? "npu" : "fpga";
}

size_t data_address(const Value& self) {
  void* data = nullptr;
  check(api().GetTensorMutableData(self.handle.get(), &data));
  return reinterpret_cast<size_t>(data);
}

// An element type from what Python gives: a number as onnx uses it, or anything numpy.dtype takes.
ONNXTensorElementDataType element_from(nb::handle type) {
  if (PyLong_Check(type.ptr())) {
    return element_of_number(nb::cast<int>(type));
  }
  return dtype_element(nb::module_::import_("numpy").attr("dtype")(type));
}

int device_number(const std::string& name) {
  if (name == "cpu") return OrtMemoryInfoDeviceType_CPU;
  if (name == "npu" || name == "cann") return OrtMemoryInfoDeviceType_NPU;
  for (const char* gpu : {"gpu", "cuda", "dml", "webgpu", "hip"}) {
    if (name == gpu) return OrtMemoryInfoDeviceType_GPU;
  }
  throw nb::value_error(("Unsupported device type: " + name).c_str());
}

// The allocator of a device's memory, as its provider registered it with the environment.
OrtAllocator* device_allocator(const std::string& name, int id) {
  const int wanted = device_number(name);
  if (wanted == OrtMemoryInfoDeviceType_CPU) return cpu_allocator();
  const OrtEpDevice* const* devices = nullptr;
  size_t count = 0;
  check(api().GetEpDevices(environment(), &devices, &count));
  for (size_t i = 0; i < count; ++i) {
    const auto* memory = api().EpDevice_MemoryInfo(devices[i], OrtDeviceMemoryType_DEFAULT);
    if (!memory) continue;
    OrtMemoryInfoDeviceType type = OrtMemoryInfoDeviceType_CPU;
    api().MemoryInfoGetDeviceType(memory, &type);
    int number = 0;
    check(api().MemoryInfoGetId(memory, &number));
    if (type != wanted || number != id) continue;
    OrtAllocator* allocator = nullptr;
    check(api().GetSharedAllocator(environment(), memory, &allocator));
    if (allocator) return allocator;
  }
  throw nb::value_error(("no provider with memory on device " + name + ":" + std::to_string(id) +
                         " is registered")
                            .c_str());
}

ValueHandle allocate(OrtAllocator* allocator, const std::vector<int64_t>& shape,
                     ONNXTensorElementDataType element) {
  OrtValue* value = nullptr;
  check(api().CreateTensorAsOrtValue(allocator, shape.data(), shape.size(), element, &value));
  return ValueHandle(value);
}

nb::object on_device(Fed fed, const std::string& device, int id) {
  if (device_number(device) == OrtMemoryInfoDeviceType_CPU) {
    return make_value(std::move(fed.value), std::move(fed.owner));
  }
  Value source{std::move(fed.value), std::move(fed.owner)};
  const Description mine = describe(source);
  ValueHandle target = allocate(device_allocator(device, id), mine.shape, mine.element);
  const OrtValue* from[] = {source.handle.get()};
  OrtValue* to[] = {target.get()};
  check(api().CopyTensors(environment(), from, to, nullptr, 1));
  return make_value(std::move(target));
}

nb::object from_numpy(nb::object array, const std::string& device, int id, int) {
  return on_device(from_array(array, kUndefined), device, id);
}

nb::object from_numpy_as(nb::object array, int element) {
  return on_device(from_array(array, element_of_number(element)), "cpu", 0);
}

nb::object from_shape(const std::vector<int64_t>& shape, nb::object element,
                      const std::string& device, int id, int, nb::object) {
  return make_value(allocate(device_allocator(device, id), shape, element_from(element)));
}

nb::object from_address(const OrtMemoryInfo* memory, size_t address,
                        const std::vector<int64_t>& shape, ONNXTensorElementDataType type) {
  size_t count = 1;
  for (int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(count, static_cast<size_t>(dim), &count)) {
      throw nb::value_error("a shape has a negative dimension or too many elements");
    }
  }
  OrtValue* value = nullptr;
  check(api().CreateTensorWithDataAsOrtValue(memory, reinterpret_cast<void*>(address),
                                             element_bytes(type, count), shape.data(),
                                             shape.size(), type, &value));
  return make_value(ValueHandle(value));
}

void update_in_place(Value& self, nb::object data) {
  const Description mine = describe(self);
  Fed fed = from_array(data, kUndefined);
  Value other{std::move(fed.value), std::move(fed.owner)};
  const Description theirs = describe(other);
  if (mine.element != theirs.element) {
    throw nb::type_error((std::string("the array holds ") + element_name(theirs.element) +
                          ", the OrtValue " + element_name(mine.element))
                             .c_str());
  }
  const size_t bytes = element_bytes(mine.element, mine.count);
  if (bytes != element_bytes(theirs.element, theirs.count)) {
    throw nb::value_error(("the array has " +
                           std::to_string(element_bytes(theirs.element, theirs.count)) +
                           " bytes, but the OrtValue holds " + std::to_string(bytes))
                              .c_str());
  }
  if (!bytes) return;
  std::memmove(reinterpret_cast<void*>(data_address(self)),
               reinterpret_cast<void*>(data_address(other)), bytes);
}

nb::dlpack::dtype dlpack_type(ONNXTensorElementDataType element) {
  nb::object dtype = element_dtype(element);
  const auto bits = static_cast<uint8_t>(element_bytes(element, 1) * 8);
  if (element == ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16) {
    return {static_cast<uint8_t>(nb::dlpack::dtype_code::Bfloat), bits, 1};
  }
  const char kind = *nb::str(dtype.attr("kind")).c_str();
  using Code = nb::dlpack::dtype_code;
  switch (kind) {
    case 'f': return {static_cast<uint8_t>(Code::Float), bits, 1};
    case 'i': return {static_cast<uint8_t>(Code::Int), bits, 1};
    case 'u': return {static_cast<uint8_t>(Code::UInt), bits, 1};
    case 'b': return {static_cast<uint8_t>(Code::Bool), bits, 1};
    case 'c': return {static_cast<uint8_t>(Code::Complex), bits, 1};
    default: break;
  }
  const std::string text = std::string(element_name(element)) + " has no type in DLPack";
  throw nb::type_error(text.c_str());
}

nb::object to_dlpack(nb::handle owner) {
  const Value& self = *nb::cast<Value*>(owner);
  const Description mine = describe(self);
  const std::vector<size_t> shape(mine.shape.begin(), mine.shape.end());
  nb::ndarray<> exported(reinterpret_cast<void*>(data_address(self)), shape.size(), shape.data(),
                         owner, nullptr, dlpack_type(mine.element));
  return nb::cast(exported);
}

ONNXTensorElementDataType element_of(nb::dlpack::dtype type) {
  using Code = nb::dlpack::dtype_code;
  const auto code = static_cast<Code>(type.code);
  if (code == Code::Bfloat) return ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16;
  const char* kind = nullptr;
  if (code == Code::Float) kind = "f";
  if (code == Code::Int) kind = "i";
  if (code == Code::UInt) kind = "u";
  if (code == Code::Bool) kind = "b";
  if (code == Code::Complex) kind = "c";
  if (!kind || type.lanes != 1 || type.bits % 8) {
    throw nb::type_error("a tensor of this DLPack type cannot be taken");
  }
  const std::string name = kind + std::to_string(type.bits / 8);
  nb::object dtype = nb::module_::import_("numpy").attr("dtype")(nb::str(name.c_str()));
  return dtype_element(dtype);
}

nb::object from_dlpack(nb::ndarray<nb::c_contig, nb::device::cpu> array) {
  std::vector<int64_t> shape;
  for (size_t i = 0; i < array.ndim(); ++i) shape.push_back(static_cast<int64_t>(array.shape(i)));
  const auto element = element_of(array.dtype());
  OrtValue* value = nullptr;
  check(api().CreateTensorWithDataAsOrtValue(cpu_memory(), array.data(),
                                             element_bytes(element, array.size()), shape.data(),
                                             shape.size(), element, &value));
  return make_value(ValueHandle(value), nb::cast(array, nb::rv_policy::reference));
}

// --- sparse tensors

nb::object array_of(const void* data, std::vector<int64_t> shape, ONNXTensorElementDataType element,
                    nb::handle owner) {
  OrtValue* value = nullptr;
  size_t count = 1;
  for (int64_t dim : shape) count *= static_cast<size_t>(dim);
  check(api().CreateTensorWithDataAsOrtValue(cpu_memory(), const_cast<void*>(data),
                                             element_bytes(element, count), shape.data(),
                                             shape.size(), element, &value));
  ValueHandle held(value);
  return to_array(value, owner);
}

nb::object sparse_values(nb::handle owner) {
  const Value& self = *nb::cast<Value*>(owner);
  OrtTensorTypeAndShapeInfo* info = nullptr;
  check(api().GetSparseTensorValuesTypeAndShape(self.handle.get(), &info));
  ShapeHandle held(info);
  size_t rank = 0;
  ONNXTensorElementDataType element = kUndefined;
  check(api().GetDimensionsCount(info, &rank));
  check(api().GetTensorElementType(info, &element));
  std::vector<int64_t> shape(rank);
  check(api().GetDimensions(info, shape.data(), rank));
  const void* data = nullptr;
  check(api().GetSparseTensorValues(self.handle.get(), &data));
  return array_of(data, shape, element, owner);
}

nb::object sparse_indices(nb::handle owner, int format) {
  const Value& self = *nb::cast<Value*>(owner);
  const auto which = static_cast<OrtSparseIndicesFormat>(format);
  OrtTensorTypeAndShapeInfo* info = nullptr;
  check(api().GetSparseTensorIndicesTypeShape(self.handle.get(), which, &info));
  ShapeHandle held(info);
  size_t rank = 0;
  ONNXTensorElementDataType element = kUndefined;
  check(api().GetDimensionsCount(info, &rank));
  check(api().GetTensorElementType(info, &element));
  std::vector<int64_t> shape(rank);
  check(api().GetDimensions(info, shape.data(), rank));
  size_t count = 0;
  const void* data = nullptr;
  check(api().GetSparseTensorIndices(self.handle.get(), which, &count, &data));
  return array_of(data, shape, element, owner);
}

nb::object make_sparse(nb::object array, const std::vector<int64_t>& dense_shape,
                       std::vector<int64_t> first, std::vector<int64_t> second, bool is_csr) {
  Fed fed = from_array(array, kUndefined);
  Value data{std::move(fed.value), std::move(fed.owner)};
  const Description mine = describe(data);
  OrtValue* value = nullptr;
  check(api().CreateSparseTensorWithValuesAsOrtValue(
      cpu_memory(), reinterpret_cast<void*>(data_address(data)), dense_shape.data(),
      dense_shape.size(), mine.shape.data(), mine.shape.size(), mine.element, &value));
  ValueHandle held(value);
  // The library uses the indices in place: they live in arrays that the value keeps.
  nb::module_ numpy = nb::module_::import_("numpy");
  nb::object one = numpy.attr("array")(nb::cast(first), "int64");
  nb::object two = numpy.attr("array")(nb::cast(second), "int64");
  auto* one_data = static_cast<int64_t*>(
      PyArray_DATA(reinterpret_cast<PyArrayObject*>(one.ptr())));
  auto* two_data = static_cast<int64_t*>(
      PyArray_DATA(reinterpret_cast<PyArrayObject*>(two.ptr())));
  if (is_csr) {
    check(api().UseCsrIndices(value, one_data, first.size(), two_data, second.size()));
  } else {
    check(api().UseCooIndices(value, one_data, first.size()));
  }
  nb::object keeper = data.owner.is_valid() ? data.owner : nb::none();
  return make_value(std::move(held), nb::make_tuple(keeper, one, two));
}

int sparse_format(const Value& self) {
  OrtSparseFormat format = ORT_SPARSE_UNDEFINED;
  check(api().GetSparseTensorFormat(self.handle.get(), &format));
  return format;
}

void bind_sparse(nb::module_& module) {
  module.def("sparse_values", &sparse_values);
  module.def("sparse_indices", &sparse_indices);
  module.def("make_sparse", &make_sparse);
  module.def("sparse_format", &sparse_format);
}

// How values are made from arrays, shapes, addresses and DLPack.
void bind_makers(nb::class_<Value>& type) {
  type.def_static("ortvalue_from_numpy", &from_numpy, nb::arg("numpy_obj"),
                  nb::arg("device_type") = "cpu", nb::arg("device_id") = 0,
                  nb::arg("vendor_id") = -1,
                  "A tensor over an array's memory, or a copy of it on another device.")
      .def_static("ortvalue_from_numpy_with_onnx_type", &from_numpy_as, nb::arg("data"),
                  nb::arg("onnx_element_type"),
                  "A tensor that reads an array's bytes as another type of the same size.")
      .def_static("ortvalue_from_shape_and_type", &from_shape, nb::arg("shape"),
                  nb::arg("element_type"), nb::arg("device_type") = "cpu",
                  nb::arg("device_id") = 0, nb::arg("vendor_id") = -1,
                  nb::arg("memory_info") = nb::none(),
                  "A tensor with memory of its own whose content is not set; the type is a numpy\n"
                  "dtype or a number of onnx.TensorProto.DataType.")
      .def_static("_from_address", [](size_t address, const std::vector<int64_t>& shape,
                                      nb::object element) {
        return from_address(cpu_memory(), address, shape, element_from(element));
      })
      .def_static("from_dlpack", &from_dlpack, nb::arg("data"),
                  "A tensor over the memory of any object with __dlpack__, or of a capsule.");
}

constexpr const char* kValueDoc =
    "A value as the runtime holds it: a tensor, a sequence, a map or nothing.\n\n"
    "Feed it to run_with_ort_values or an IOBinding to keep data where it is between runs.\n"
    "Tensors made from numpy share the array's memory when it is dense and of native byte order:\n"
    "what is written to the array afterwards is what the model sees.";

}  // namespace

nb::object make_value(ValueHandle value, nb::object owner) {
  return nb::cast(new Value{std::move(value), std::move(owner)}, nb::rv_policy::take_ownership);
}

Value* value_in(nb::handle object) {
  Value* value = nullptr;
  return nb::try_cast(object, value, false) ? value : nullptr;
}

nb::object take_python(ValueHandle value) {
  const OrtValue* raw = value.get();
  return to_python(raw, make_value(std::move(value)));
}

void bind_values(nb::module_& module) {
  nb::class_<Value> type(module, "OrtValue", kValueDoc, nb::dynamic_attr());
  bind_makers(type);
  type.def("data_type", &data_type, "Type as ONNX writes it: 'tensor(float)', 'seq(...)', ...")
      .def("device_name", &device_name, "Where the data is: 'cpu', 'gpu', 'npu'.")
      .def("element_type", [](const Value& self) { return onnx_number(describe(self).element); },
           "Element type of a tensor as the number that onnx.TensorProto.DataType gives it.")
      .def("shape", [](const Value& self) { return describe(self).shape; }, "Shape of a tensor.")
      .def("tensor_size_in_bytes", [](const Value& self) {
             const Description mine = describe(self);
             return element_bytes(mine.element, mine.count);
           }, "Bytes of a tensor's data.")
      .def("has_value", &has_value, "False for an optional that holds nothing.")
      .def("is_tensor", [](const Value& self) { return kind_of(self) == ONNX_TYPE_TENSOR; },
           "Is it a dense tensor?")
      .def("is_sparse_tensor",
           [](const Value& self) { return kind_of(self) == ONNX_TYPE_SPARSETENSOR; },
           "Is it a sparse tensor?")
      .def("is_tensor_sequence",
           [](const Value& self) { return kind_of(self) == ONNX_TYPE_SEQUENCE; },
           "Is it a sequence?")
      .def("data_ptr", &data_address, "Address of the first element.")
      .def("to_python", [](nb::handle self) {
             return to_python(nb::cast<Value*>(self)->handle.get(), self);
           }, "The array, list, dict or None that run() would return for this value.")
      .def("numpy", [](nb::handle self) {
             return to_array(nb::cast<Value*>(self)->handle.get(), self);
           }, "The tensor as an array over the same memory; strings and packed types are copied.")
      .def("update_inplace", &update_in_place, nb::arg("data"),
           "Copies an array of the same size in bytes into the tensor's memory.")
      .def("as_sparse_tensor", [](nb::handle self) {
             return nb::module_::import_("sardonyx.sparse").attr("SparseTensor")(self);
           }, "The value as a SparseTensor.")
      .def_static("ort_value_from_sparse_tensor", [](nb::object sparse) {
             return nb::object(sparse.attr("_value"));
           }, nb::arg("sparse_tensor"), "The OrtValue inside a SparseTensor.")
      .def("_get_c_value", [](nb::object self) { return self; })
      .def("_keep", [](Value& self, nb::object owner) {
             self.owner = nb::make_tuple(self.owner.is_valid() ? self.owner : nb::none(), owner);
           })
      .def("__dlpack__", [](nb::handle self, nb::kwargs) { return to_dlpack(self); },
           "The tensor as a DLPack capsule over the same memory.")
      .def("__dlpack_device__", [](const Value& self) {
        return nb::make_tuple(device_name(self) == "cpu" ? 1 : 2, 0);
      })
      .def("__repr__", [](const Value& self) {
        if (!has_value(self)) return std::string("OrtValue(none)");
        std::string text = "OrtValue(" + data_type(self);
        if (kind_of(self) == ONNX_TYPE_TENSOR) {
          text += ", shape=[";
          for (int64_t dim : describe(self).shape) text += std::to_string(dim) + ", ";
          if (text.back() == ' ') text.resize(text.size() - 2);
          text += "]";
        }
        return text + ")";
      });
  module.def("element_of_dtype",
             [](nb::handle dtype) { return onnx_number(dtype_element(dtype)); });
  module.def("dtype_of_element", [](int element) {
    return element_dtype(element_of_number(element));
  });
  bind_sparse(module);
}

}  // namespace sardonyx::python

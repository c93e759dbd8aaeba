// Arrays and values: numpy to the C interface and back.
#include "arrays.h"

#include <cstring>

#include "numpy_api.h"

namespace sardonyx::python {
namespace {

constexpr auto kUndefined = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
constexpr auto kString = ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;

PyArrayObject* as_array(nb::handle object) {
  return reinterpret_cast<PyArrayObject*>(object.ptr());
}

nb::object numpy_array(nb::handle object, nb::handle dtype) {
  nb::module_ numpy = nb::module_::import_("numpy");
  return dtype.is_none() ? numpy.attr("asarray")(object) : numpy.attr("asarray")(object, dtype);
}

std::vector<int64_t> shape_of(PyArrayObject* array) {
  const npy_intp* dims = PyArray_DIMS(array);
  return {dims, dims + PyArray_NDIM(array)};
}

int bits_of(ONNXTensorElementDataType element) {
  return static_cast<int>(element_bytes(element, 8));  // of 8 elements in bytes: bits of one
}

// Elements below 8 bits are packed from the low end of each byte.
void pack(const uint8_t* from, uint8_t* to, size_t count, int bits) {
  const size_t per_byte = static_cast<size_t>(8 / bits);
  const unsigned mask = (1U << bits) - 1;
  std::memset(to, 0, (count + per_byte - 1) / per_byte);
  for (size_t i = 0; i < count; ++i) {
    const unsigned shift = static_cast<unsigned>(i % per_byte) * static_cast<unsigned>(bits);
    to[i / per_byte] = static_cast<uint8_t>(to[i / per_byte] | ((from[i] & mask) << shift));
  }
}

void unpack(const uint8_t* from, uint8_t* to, size_t count, int bits, bool is_signed) {
  const size_t per_byte = static_cast<size_t>(8 / bits);
  const unsigned mask = (1U << bits) - 1;
  const unsigned sign = 1U << (bits - 1);
  for (size_t i = 0; i < count; ++i) {
    const unsigned shift = static_cast<unsigned>(i % per_byte) * static_cast<unsigned>(bits);
    unsigned value = (from[i / per_byte] >> shift) & mask;
    if (is_signed && (value & sign)) value |= ~mask;
    to[i] = static_cast<uint8_t>(value);
  }
}

bool is_signed_integer(ONNXTensorElementDataType element) {
  return element == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4 ||
         element == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2;
}

ValueHandle make_tensor(const std::vector<int64_t>& shape, ONNXTensorElementDataType element) {
  OrtValue* value = nullptr;
  check(api().CreateTensorAsOrtValue(cpu_allocator(), shape.data(), shape.size(), element, &value));
  return ValueHandle(value);
}

// UTF-8 of one element of a string array; bytes are taken as they are, other objects by str().
nb::object encoded(nb::handle item) {
  if (PyBytes_Check(item.ptr())) return nb::borrow(item);
  nb::object text = PyUnicode_Check(item.ptr()) ? nb::borrow(item) : nb::object(nb::str(item));
  return nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
}

Fed from_string_array(nb::object array) {
  nb::object objects = array.attr("astype")(nb::str("O"));
  ValueHandle value = make_tensor(shape_of(as_array(array)), kString);
  size_t index = 0;
  for (nb::handle item : nb::list(objects.attr("ravel")().attr("tolist")())) {
    nb::object bytes = encoded(item);
    if (!bytes.is_valid()) throw nb::python_error();
    const auto length = static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()));
    char* buffer = nullptr;
    check(api().GetResizedStringTensorElementBuffer(value.get(), index++, length, &buffer));
    if (length) std::memcpy(buffer, PyBytes_AS_STRING(bytes.ptr()), length);
  }
  return {std::move(value), {}};
}

// A dense, aligned array of native byte order with the same elements.
nb::object dense(nb::handle object) {
  PyArrayObject* array = as_array(object);
  if (!PyArray_ISNOTSWAPPED(array)) {
    nb::object native = nb::borrow(object).attr("dtype").attr("newbyteorder")("=");
    return nb::borrow(object).attr("astype")(native, nb::arg("order") = "C");
  }
  if (PyArray_IS_C_CONTIGUOUS(array) && PyArray_ISALIGNED(array)) return nb::borrow(object);
  return nb::steal(PyArray_NewCopy(array, NPY_CORDER));
}

Fed from_dense(nb::object owner, ONNXTensorElementDataType element) {
  PyArrayObject* array = as_array(owner);
  const std::vector<int64_t> shape = shape_of(array);
  const auto count = static_cast<size_t>(PyArray_SIZE(array));
  if (bits_of(element) < 8) {
    ValueHandle value = make_tensor(shape, element);
    void* data = nullptr;
    check(api().GetTensorMutableData(value.get(), &data));
    if (count) pack(static_cast<uint8_t*>(PyArray_DATA(array)), static_cast<uint8_t*>(data), count,
                    bits_of(element));
    return {std::move(value), {}};
  }
  OrtValue* value = nullptr;
  check(api().CreateTensorWithDataAsOrtValue(cpu_memory(), PyArray_DATA(array),
                                             element_bytes(element, count), shape.data(),
                                             shape.size(), element, &value));
  return {ValueHandle(value), std::move(owner)};
}

ValueHandle make_container(const std::vector<Fed>& parts, ONNXType kind) {
  std::vector<const OrtValue*> values;
  for (const Fed& part : parts) values.push_back(part.value.get());
  OrtValue* value = nullptr;
  check(api().CreateValue(values.data(), values.size(), kind, &value));
  return ValueHandle(value);
}

Fed from_sequence(nb::handle object, const TypeTree& type, const std::string& name) {
  if (!PyList_Check(object.ptr()) && !PyTuple_Check(object.ptr())) {
    const std::string text = "input '" + name + "' expects a list for " + type.name() + ", found " +
                             nb::str(object.type()).c_str();
    throw nb::type_error(text.c_str());
  }
  const TypeTree any;
  const TypeTree& inner = type.contained.empty() ? any : type.contained[0];
  std::vector<Fed> parts;
  nb::list owners;
  for (nb::handle item : object) {
    parts.push_back(from_python(item, inner, name));
    if (parts.back().owner.is_valid()) owners.append(parts.back().owner);
  }
  return {make_container(parts, ONNX_TYPE_SEQUENCE), std::move(owners)};
}

Fed from_map(nb::handle object, const TypeTree& type, const std::string& name) {
  if (!PyDict_Check(object.ptr())) {
    const std::string text = "input '" + name + "' expects a dict for " + type.name() + ", found " +
                             nb::str(object.type()).c_str();
    throw nb::type_error(text.c_str());
  }
  nb::dict items = nb::borrow<nb::dict>(object);
  const TypeTree any;
  const TypeTree& inner = type.contained.empty() ? any : type.contained[0];
  auto array_of = [](nb::list list, ONNXTensorElementDataType element) {
    nb::object dtype = element == kUndefined ? nb::none() : element_dtype(element);
    return from_array(numpy_array(list, dtype), element == kString ? kUndefined : element);
  };
  std::vector<Fed> parts;
  parts.push_back(array_of(items.keys(), type.element));
  parts.push_back(array_of(items.values(), inner.element));
  nb::list owners;
  for (Fed& part : parts) owners.append(part.owner.is_valid() ? part.owner : nb::none());
  return {make_container(parts, ONNX_TYPE_MAP), std::move(owners)};
}

nb::object string_array(const OrtValue* value, const std::vector<npy_intp>& shape, size_t count) {
  size_t bytes = 0;
  check(api().GetStringTensorDataLength(value, &bytes));
  std::string text(bytes, '\0');
  std::vector<size_t> starts(count + 1, bytes);
  if (count) check(api().GetStringTensorContent(value, text.data(), bytes, starts.data(), count));
  auto* dims = const_cast<npy_intp*>(shape.data());
  nb::object result =
      nb::steal(PyArray_SimpleNew(static_cast<int>(shape.size()), dims, NPY_OBJECT));
  auto** items = static_cast<PyObject**>(PyArray_DATA(as_array(result)));
  for (size_t i = 0; i < count; ++i) {
    const auto length = static_cast<Py_ssize_t>(starts[i + 1] - starts[i]);
    PyObject* item = PyUnicode_DecodeUTF8(text.data() + starts[i], length, "surrogateescape");
    if (!item) throw nb::python_error();
    Py_XSETREF(items[i], item);
  }
  return result;
}

nb::object unpacked_array(const void* data, const std::vector<npy_intp>& shape, size_t count,
                          ONNXTensorElementDataType element) {
  nb::object dtype = element_dtype(element);
  auto* dims = const_cast<npy_intp*>(shape.data());
  nb::object result = nb::steal(PyArray_NewFromDescr(
      &PyArray_Type, reinterpret_cast<PyArray_Descr*>(dtype.release().ptr()),
      static_cast<int>(shape.size()), dims, nullptr, nullptr, 0, nullptr));
  if (!result.is_valid()) throw nb::python_error();
  unpack(static_cast<const uint8_t*>(data), static_cast<uint8_t*>(PyArray_DATA(as_array(result))),
         count, bits_of(element), is_signed_integer(element));
  return result;
}

nb::object array_over(const void* data, const std::vector<npy_intp>& shape,
                      ONNXTensorElementDataType element, nb::handle owner) {
  nb::object dtype = element_dtype(element);
  auto* dims = const_cast<npy_intp*>(shape.data());
  static char empty[64] = {};  // an array needs an address even when it has no elements
  nb::object result = nb::steal(PyArray_NewFromDescr(
      &PyArray_Type, reinterpret_cast<PyArray_Descr*>(dtype.release().ptr()),
      static_cast<int>(shape.size()), dims, nullptr, data ? const_cast<void*>(data) : empty,
      NPY_ARRAY_CARRAY, nullptr));
  if (!result.is_valid()) throw nb::python_error();
  if (PyArray_SetBaseObject(as_array(result), nb::borrow(owner).release().ptr()) != 0) {
    throw nb::python_error();
  }
  return result;
}

bool is_on_cpu(const OrtValue* value) {
  const OrtMemoryInfo* memory = nullptr;
  check(api().GetTensorMemoryInfo(value, &memory));
  OrtMemoryInfoDeviceType device = OrtMemoryInfoDeviceType_CPU;
  api().MemoryInfoGetDeviceType(memory, &device);
  if (device == OrtMemoryInfoDeviceType_CPU) return true;
  return api().MemoryInfoGetDeviceMemType(memory) == OrtDeviceMemoryType_HOST_ACCESSIBLE;
}

nb::object from_device(const OrtValue* value, const std::vector<npy_intp>& shape,
                       ONNXTensorElementDataType element) {
  ValueHandle copy = make_tensor({shape.begin(), shape.end()}, element);
  const OrtValue* sources[] = {value};
  OrtValue* targets[] = {copy.get()};
  check(api().CopyTensors(environment(), sources, targets, nullptr, 1));
  return take_python(std::move(copy));
}

ValueHandle item_of(const OrtValue* value, size_t index) {
  OrtValue* item = nullptr;
  check(api().GetValue(value, static_cast<int>(index), cpu_allocator(), &item));
  return ValueHandle(item);
}

nb::object to_map(const OrtValue* value) {
  nb::object keys = take_python(item_of(value, 0)).attr("tolist")();
  nb::object values = take_python(item_of(value, 1)).attr("tolist")();
  nb::dict result;
  for (size_t i = 0; i < nb::len(keys); ++i) result[keys[i]] = values[i];
  return result;
}

nb::object to_list(const OrtValue* value) {
  size_t count = 0;
  check(api().GetValueCount(value, &count));
  nb::list result;
  for (size_t i = 0; i < count; ++i) result.append(take_python(item_of(value, i)));
  return result;
}

}  // namespace

Fed from_array(nb::handle object, ONNXTensorElementDataType element) {
  nb::object array = PyArray_Check(object.ptr()) ? nb::borrow(object) : nb::object();
  if (!array.is_valid()) {
    array = numpy_array(object, element == kUndefined ? nb::none() : element_dtype(element));
  }
  const auto own = dtype_element(nb::object(array.attr("dtype")));
  if (element == kUndefined) element = own;
  if (own == kString) return from_string_array(std::move(array));
  if (element != own && bits_of(element) != PyArray_ITEMSIZE(as_array(array)) * 8) {
    const std::string text = std::string("the array holds ") + element_name(own) +
                             ", which cannot be read as " + element_name(element);
    throw nb::type_error(text.c_str());
  }
  return from_dense(dense(array), element);
}

Fed from_python(nb::handle object, const TypeTree& type, const std::string& name) {
  if (type.kind == ONNX_TYPE_OPTIONAL && !type.contained.empty()) {
    if (object.is_none()) return {};
    return from_python(object, type.contained[0], name);
  }
  if (PyArray_Check(object.ptr()) && type.kind != ONNX_TYPE_SEQUENCE) {
    return from_array(object, kUndefined);
  }
  if (type.kind == ONNX_TYPE_MAP) return from_map(object, type, name);
  if (type.kind == ONNX_TYPE_SEQUENCE) return from_sequence(object, type, name);
  if (object.is_none() || PyDict_Check(object.ptr())) {
    const std::string text = "input '" + name + "' expects an array for " + type.name() +
                             ", found " + nb::str(object.type()).c_str();
    throw nb::type_error(text.c_str());
  }
  // Numbers without a dtype of their own take the type that the model declares.
  const bool typed = nb::hasattr(object, "dtype");
  nb::object dtype = nb::none();
  if (!typed && type.element != kUndefined && type.element != kString) {
    dtype = element_dtype(type.element);
  }
  return from_array(numpy_array(object, dtype), kUndefined);
}

nb::object to_array(const OrtValue* value, nb::handle owner) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  check(api().GetTensorTypeAndShape(value, &info));
  ShapeHandle held(info);
  ONNXTensorElementDataType element = kUndefined;
  check(api().GetTensorElementType(info, &element));
  size_t rank = 0;
  size_t count = 0;
  check(api().GetDimensionsCount(info, &rank));
  check(api().GetTensorShapeElementCount(info, &count));
  static_assert(sizeof(npy_intp) == sizeof(int64_t));
  std::vector<int64_t> dims(rank);
  check(api().GetDimensions(info, dims.data(), rank));
  const std::vector<npy_intp> shape(dims.begin(), dims.end());
  if (element == kString) return string_array(value, shape, count);
  if (!is_on_cpu(value)) return from_device(value, shape, element);
  const void* data = nullptr;
  check(api().GetTensorData(value, &data));
  if (bits_of(element) < 8) return unpacked_array(data, shape, count, element);
  return array_over(data, shape, element, owner);
}

nb::object to_python(const OrtValue* value, nb::handle owner) {
  int has_value = 1;
  check(api().HasValue(value, &has_value));
  if (!has_value) return nb::none();
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  check(api().GetValueType(value, &kind));
  if (kind == ONNX_TYPE_TENSOR) return to_array(value, owner);
  if (kind == ONNX_TYPE_SEQUENCE) return to_list(value);
  if (kind == ONNX_TYPE_MAP) return to_map(value);
  if (kind == ONNX_TYPE_SPARSETENSOR) {
    return nb::module_::import_("sardonyx.sparse").attr("SparseTensor")(owner);
  }
  throw nb::type_error("a value of this kind has no form in Python");
}

}  // namespace sardonyx::python

#pragma once

#include <cstdint>

/// Numbers of the fields of ONNX's protobuf messages.
/// Source   onnx.proto and onnx-data.proto of the onnx package, version 1.23.
namespace sardonyx::onnx {

namespace model_field {
enum Number : std::uint32_t {
  kIrVersion = 1,
  kProducerName = 2,
  kProducerVersion = 3,
  kDomain = 4,
  kModelVersion = 5,
  kDocString = 6,
  kGraph = 7,
  kOpsetImport = 8,
  kMetadata = 14,
  kFunctions = 25,
};
}

namespace opset_field {
enum Number : std::uint32_t { kDomain = 1, kVersion = 2 };
}

namespace entry_field {
enum Number : std::uint32_t { kKey = 1, kValue = 2 };
}

namespace graph_field {
enum Number : std::uint32_t {
  kNode = 1,
  kName = 2,
  kInitializer = 5,
  kDocString = 10,
  kInput = 11,
  kOutput = 12,
  kValueInfo = 13,
  kSparseInitializer = 15,
  kMetadata = 16,
};
}

namespace function_field {
enum Number : std::uint32_t {
  kName = 1,
  kInput = 4,
  kOutput = 5,
  kAttribute = 6,
  kNode = 7,
  kDocString = 8,
  kOpsetImport = 9,
  kDomain = 10,
  kAttributeProto = 11,
  kValueInfo = 12,
  kOverload = 13,
  kMetadata = 14,
};
}

namespace node_field {
enum Number : std::uint32_t {
  kInput = 1,
  kOutput = 2,
  kName = 3,
  kOpType = 4,
  kAttribute = 5,
  kDocString = 6,
  kDomain = 7,
  kOverload = 8,
  kMetadata = 9,
};
}

namespace attribute_field {
enum Number : std::uint32_t {
  kName = 1,
  kFloat = 2,
  kInt = 3,
  kString = 4,
  kTensor = 5,
  kGraph = 6,
  kFloats = 7,
  kInts = 8,
  kStrings = 9,
  kTensors = 10,
  kGraphs = 11,
  kTypeProto = 14,
  kTypeProtos = 15,
  kType = 20,
  kReference = 21,
  kSparseTensor = 22,
  kSparseTensors = 23,
};
}

/// AttributeProto.AttributeType.
enum class AttributeType : std::int32_t {
  Undefined = 0,
  Float = 1,
  Int = 2,
  String = 3,
  Tensor = 4,
  Graph = 5,
  Floats = 6,
  Ints = 7,
  Strings = 8,
  Tensors = 9,
  Graphs = 10,
  SparseTensor = 11,
  SparseTensors = 12,
  TypeProto = 13,
  TypeProtos = 14,
};

namespace value_info_field {
enum Number : std::uint32_t { kName = 1, kType = 2 };
}

namespace type_field {
enum Number : std::uint32_t {
  kTensor = 1,
  kSequence = 4,
  kMap = 5,
  kOpaque = 7,
  kSparseTensor = 8,
  kOptional = 9,
};
/// Of the messages inside: element or key type, and shape or value type.
enum Inner : std::uint32_t { kElement = 1, kSecond = 2 };
}  // namespace type_field

namespace shape_field {
enum Number : std::uint32_t { kDim = 1 };
enum Dimension : std::uint32_t { kValue = 1, kParameter = 2, kDenotation = 3 };
}  // namespace shape_field

namespace tensor_field {
enum Number : std::uint32_t {
  kDims = 1,
  kDataType = 2,
  kSegment = 3,
  kFloatData = 4,
  kInt32Data = 5,
  kStringData = 6,
  kInt64Data = 7,
  kName = 8,
  kRawData = 9,
  kDoubleData = 10,
  kUInt64Data = 11,
  kDocString = 12,
  kExternalData = 13,
  kDataLocation = 14,
};
}

namespace sparse_field {
enum Number : std::uint32_t { kValues = 1, kIndices = 2, kDims = 3 };
}

namespace sequence_field {
enum Number : std::uint32_t {
  kName = 1,
  kElementKind = 2,
  kTensors = 3,
  kSparseTensors = 4,
  kSequences = 5,
  kMaps = 6,
  kOptionals = 7,
};
}

namespace map_field {
enum Number : std::uint32_t { kName = 1, kKeyType = 2, kKeys = 3, kStringKeys = 4, kValues = 5 };
}

/// OptionalProto has the fields of SequenceProto, each at most once. Kinds of both:
enum class DataKind : std::int32_t {
  Undefined = 0,
  Tensor = 1,
  SparseTensor = 2,
  Sequence = 3,
  Map = 4,
  Optional = 5,
};

}  // namespace sardonyx::onnx

#include "ops/refused.h"

#include <algorithm>

namespace sardonyx {

namespace {

struct Refusal {
  std::string_view domain;
  std::string_view name;
  std::string_view reason;
};

constexpr std::string_view kGeneration =
    "it runs a whole generation loop; export the decoder alone and loop in the application";
constexpr std::string_view kTraining = "training is not supported";
constexpr std::string_view kTokenizer =
    "turning text into tokens belongs before the model; export it without its tokenizer";
constexpr std::string_view kOtherDevice = "it exists for other devices only";
constexpr std::string_view kOtherVendor = "it holds a model in another runtime's own format";
constexpr std::string_view kMask =
    "it needs a layout of sparse or packed batches; export without that optimisation";
constexpr std::string_view kRare =
    "it was made for single models; export with operators of the standard";

constexpr std::string_view kBeams =
    "its caches belong to a generation loop; export with MultiHeadAttention or "
    "GroupQueryAttention";
constexpr std::string_view kPacking =
    "its weights are packed for one runtime's kernels; MatMulNBits is known";

constexpr Refusal kRefusals[] = {
    {"com.microsoft", "DecoderMaskedMultiHeadAttention", kBeams},
    {"com.microsoft", "DecoderMaskedSelfAttention", kBeams},
    {"com.microsoft", "PagedAttention", kMask},
    {"com.microsoft", "MatMulFpQ4", kPacking},
    {"com.microsoft", "MatMulBnb4", kPacking},
    {"com.microsoft", "BeamSearch", kGeneration},
    {"com.microsoft", "GreedySearch", kGeneration},
    {"com.microsoft", "Sampling", kGeneration},
    {"com.microsoft", "WhisperBeamSearch", kGeneration},
    {"com.microsoft", "Tokenizer", kTokenizer},
    {"com.microsoft", "WordConvEmbedding", kRare},
    {"com.microsoft", "BifurcationDetector", kRare},
    {"com.microsoft", "NGramRepeatBlock", kGeneration},
    {"com.microsoft", "ConvTransposeWithDynamicPads", kRare},
    {"com.microsoft", "SampleOp", kRare},
    {"com.microsoft", "AttnLSTM", kRare},
    {"com.microsoft", "CDist", kRare},
    {"com.microsoft", "DynamicTimeWarping", kRare},
    {"com.microsoft", "UnfoldTensor", kRare},
    {"com.microsoft", "MurmurHash3", kRare},
    {"com.microsoft", "MaxpoolWithMask", kRare},
    {"com.microsoft", "GemmFloat8", kOtherDevice},
    {"com.microsoft", "GemmFastGelu", kOtherDevice},
    {"com.microsoft", "GemmaRotaryEmbedding", kOtherDevice},
    {"com.microsoft", "GroupNormalization", kOtherDevice},
    {"com.microsoft", "GatedRelativePositionBias", kOtherDevice},
    {"com.microsoft", "RelativePositionBias", kOtherDevice},
    {"com.microsoft", "DecoderAttention", kOtherDevice},
    {"com.microsoft", "LongformerAttention", kOtherDevice},
    {"com.microsoft", "QOrderedAttention", kOtherDevice},
    {"com.microsoft", "QOrderedGelu", kOtherDevice},
    {"com.microsoft", "QOrderedLayerNormalization", kOtherDevice},
    {"com.microsoft", "QOrderedLongformerAttention", kOtherDevice},
    {"com.microsoft", "QOrderedMatMul", kOtherDevice},
    {"com.microsoft", "TensorRTPluginOp", kOtherVendor},
    {"com.microsoft", "Snpe", kOtherVendor},
    {"com.microsoft", "RemovePadding", kMask},
    {"com.microsoft", "RestorePadding", kMask},
    {"com.microsoft", "PackedAttention", kMask},
    {"com.microsoft", "PackedMultiHeadAttention", kMask},
    {"com.microsoft", "SparseAttention", kMask},
    {"com.microsoft", "SparseToDenseMatMul", kMask},
    {"com.microsoft", "BitmaskDropout", kTraining},
    {"com.microsoft", "BitmaskBiasDropout", kTraining},
    {"ai.onnx.preview.training", "Adagrad", kTraining},
    {"ai.onnx.preview.training", "Adam", kTraining},
    {"ai.onnx.preview.training", "Gradient", kTraining},
    {"ai.onnx.preview.training", "Momentum", kTraining},
    {"ai.onnx.contrib", "SentencepieceTokenizer", kTokenizer},
    {"ai.onnx.contrib", "BertTokenizer", kTokenizer},
    {"ai.onnx.contrib", "GPT2Tokenizer", kTokenizer},
};

}  // namespace

std::string_view refusal_reason(std::string_view domain, std::string_view name) {
  const auto* found = std::find_if(
      std::begin(kRefusals), std::end(kRefusals),
      [&](const Refusal& refusal) { return refusal.domain == domain && refusal.name == name; });
  return found != std::end(kRefusals) ? found->reason : std::string_view();
}

}  // namespace sardonyx

// Operators of the library that run inside a custom kernel.
#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/kernel_info.h"
#include "capi/op_attr.h"
#include "capi/status.h"
#include "session/single_op.h"

struct OrtOp {
  std::unique_ptr<sardonyx::SingleOp> op;
  std::string name;
  int input_count = 0;
  int output_count = 0;
};

namespace sardonyx::capi {

namespace {

Status check_count(const OrtOp& op, const char* what, int expected, int found) {
  if (expected == found) return {};
  return failure(Code::InvalidArgument, "operator {} was created with {} {}, called with {}",
                 op.name, expected, what, found);
}

}  // namespace

// Element types follow from the operands, whatever the type constraints say.
OrtStatus* CreateOp(const OrtKernelInfo* info, const char* op_name, const char* domain, int version,
                    const char**, const ONNXTensorElementDataType*, int,
                    const OrtOpAttr* const* attr_values, int attr_count, int input_count,
                    int output_count, OrtOp** ort_op) noexcept {
  return guarded("CreateOp", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    SDX_TRY(require(op_name, "op_name"));
    SDX_TRY(require(ort_op, "ort_op"));
    if (input_count < 0 || output_count < 0 || attr_count < 0) {
      return failure(Code::InvalidArgument, "numbers of operands and attributes are at least 0");
    }
    Node node;
    node.op_type = op_name;
    node.domain = domain != nullptr ? domain : "";
    if (node.domain == "ai.onnx") node.domain.clear();
    node.opset = version;
    for (int i = 0; i < attr_count; ++i) {
      SDX_TRY(require(attr_values[i], "an attribute"));
      node.attributes.set(attr_values[i]->name, attr_values[i]->value());
    }
    auto made = std::make_unique<OrtOp>();
    made->name = op_name;
    made->input_count = input_count;
    made->output_count = output_count;
    SDX_ASSIGN(made->op, SingleOp::create(info->node->session->environment, std::move(node),
                                          static_cast<size_t>(output_count)));
    *ort_op = made.release();
    return {};
  });
}

void ReleaseOp(OrtOp* object) noexcept { delete object; }

OrtStatus* InvokeOp(const OrtKernelContext* context, const OrtOp* ort_op,
                    const OrtValue* const* input_values, int input_count,
                    OrtValue* const* output_values, int output_count) noexcept {
  return guarded("InvokeOp", [&]() -> Status {
    if (input_count != 0) SDX_TRY(require(input_values, "input_values"));
    SDX_TRY(require(context, "context"));
    SDX_TRY(require(ort_op, "ort_op"));
    SDX_TRY(check_count(*ort_op, "inputs", ort_op->input_count, input_count));
    SDX_TRY(check_count(*ort_op, "outputs", ort_op->output_count, output_count));
    if (context->state == nullptr) return failure(Code::Internal, "the kernel does not run");
    std::vector<Datum> inputs;
    for (int i = 0; i < input_count; ++i) {
      inputs.push_back(input_values[i] != nullptr ? input_values[i]->datum : Datum());
    }
    std::vector<Datum> outputs;
    for (int i = 0; i < output_count; ++i) {
      SDX_TRY(require(output_values[i], "an output"));
      outputs.push_back(output_values[i]->datum);
    }
    Status status = ort_op->op->run(inputs, outputs, *context->state);
    if (!status.ok()) return std::move(status).with("running operator " + ort_op->name);
    for (int i = 0; i < output_count; ++i) {
      OrtValue& given = *output_values[i];
      const Datum& result = outputs[static_cast<size_t>(i)];
      const Tensor* wanted = given.datum.tensor();
      const Tensor* made = result.tensor();
      if (wanted != nullptr && (made == nullptr || made->data() != wanted->data())) {
        return failure(Code::InvalidArgument,
                       "output {} of operator {} is {} of shape {}, but the given value is {} of "
                       "shape {}",
                       i, ort_op->name, result.type().to_string(),
                       made != nullptr ? made->shape().to_string() : "none",
                       given.datum.type().to_string(), wanted->shape().to_string());
      }
      given.datum = result;
    }
    return {};
  });
}

}  // namespace sardonyx::capi

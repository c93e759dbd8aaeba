#pragma once

#include "passes/pass.h"

namespace sardonyx {

/// One function per pass, each in the file of its name; pipeline.cpp has their order.

/// Removes nodes whose results nobody uses.
Status remove_dead_nodes(Graph& graph, const PassOptions& options);
/// Removes Identity, Dropout at inference, casts to the same type, transposes that do nothing, and
/// joins transposes that follow each other.
Status remove_no_ops(Graph& graph, const PassOptions& options);
/// Computes nodes whose inputs are constants, within the bound on bytes.
Status fold_constants(Graph& graph, const PassOptions& options);

/// Nodes on float16 and bfloat16 as nodes on float, with casts where the types meet: the processor
/// computes in floats, and a cast around every node would cost more than the node.
Status widen_floats(Graph& graph, const PassOptions& options);
/// x * Sigmoid(x) as one node.
Status fuse_silu(Graph& graph, const PassOptions& options);
/// Adds the sum with a tensor of the same shape and the activation after it to a convolution.
Status fuse_conv(Graph& graph, const PassOptions& options);
/// The same for quantised weights that no integer kernel took.
Status fold_weights(Graph& graph, const PassOptions& options);
/// Rows of a large weight that is widened are gathered first, then widened.
Status gather_first(Graph& graph, const PassOptions& options);
/// Scaling and shifting of channels after a convolution, batch normalisation above all, into its
/// weights and bias.
Status fold_channel_scale(Graph& graph, const PassOptions& options);
/// HardSwish and HardSigmoid written out with Clip as one node.
Status fuse_hard_swish(Graph& graph, const PassOptions& options);
/// Gelu written out with Erf, or its approximation with Tanh, as one node.
Status fuse_gelu(Graph& graph, const PassOptions& options);
/// Layer and root-mean-square normalisation written out as one node, where the scale cannot widen
/// the result.
Status fuse_norm(Graph& graph, const PassOptions& options);
/// MatMul with scaling, bias, sum and activation as one node.
Status fuse_matmul(Graph& graph, const PassOptions& options);
/// MatMulInteger with the scaling after it as one node.
Status fuse_integer_matmul(Graph& graph, const PassOptions& options);
/// Convolutions between DequantizeLinear and QuantizeLinear as convolutions of integers.
Status fuse_quantized_conv(Graph& graph, const PassOptions& options);
/// Products of matrices that DequantizeLinear makes as products of integers, scaled to floats.
Status fuse_quantized_matmul(Graph& graph, const PassOptions& options);
/// Sums between DequantizeLinear and QuantizeLinear as sums of integers.
Status fuse_quantized_add(Graph& graph, const PassOptions& options);
/// Puts channels last around 2-D convolutions, with transposes where the layouts meet.
Status use_channels_last(Graph& graph, const PassOptions& options);

}  // namespace sardonyx

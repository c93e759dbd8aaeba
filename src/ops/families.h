#pragma once

#include <span>

#include "ops/schema.h"

namespace sardonyx {

/// The rows of one family; each is defined in the file of that name.
std::span<const OpSchema> unary_schemas();
std::span<const OpSchema> activation_schemas();
std::span<const OpSchema> softmax_schemas();
std::span<const OpSchema> binary_schemas();
std::span<const OpSchema> variadic_schemas();
std::span<const OpSchema> shape_schemas();
std::span<const OpSchema> layout_schemas();
std::span<const OpSchema> pad_schemas();
std::span<const OpSchema> select_schemas();
std::span<const OpSchema> gather_schemas();
std::span<const OpSchema> sorting_schemas();
std::span<const OpSchema> control_schemas();
std::span<const OpSchema> matmul_schemas();
std::span<const OpSchema> conv_schemas();
std::span<const OpSchema> pool_schemas();
std::span<const OpSchema> norm_schemas();
std::span<const OpSchema> rnn_schemas();
std::span<const OpSchema> resize_schemas();
std::span<const OpSchema> where_schemas();
std::span<const OpSchema> cast_schemas();
std::span<const OpSchema> quantize_schemas();
std::span<const OpSchema> constant_schemas();
std::span<const OpSchema> reduce_schemas();
std::span<const OpSchema> detection_schemas();
std::span<const OpSchema> skip_norm_schemas();
std::span<const OpSchema> moe_schemas();
std::span<const OpSchema> group_query_attention_schemas();
std::span<const OpSchema> projected_attention_schemas();
std::span<const OpSchema> deform_conv_schemas();
std::span<const OpSchema> einsum_schemas();
std::span<const OpSchema> fourier_schemas();
std::span<const OpSchema> attention_schemas();
std::span<const OpSchema> flex_attention_schemas();
std::span<const OpSchema> rotary_schemas();
std::span<const OpSchema> linear_attention_schemas();
std::span<const OpSchema> nbits_schemas();
std::span<const OpSchema> quantized_matmul_schemas();
std::span<const OpSchema> channels_last_schemas();
std::span<const OpSchema> fused_matmul_schemas();
std::span<const OpSchema> quantized_conv_schemas();
std::span<const OpSchema> sequence_schemas();
std::span<const OpSchema> arg_reduce_schemas();
std::span<const OpSchema> cumulative_schemas();
std::span<const OpSchema> random_schemas();
std::span<const OpSchema> signal_window_schemas();
std::span<const OpSchema> loss_schemas();
std::span<const OpSchema> training_schemas();
std::span<const OpSchema> fused_elementwise_schemas();
std::span<const OpSchema> qlinear_schemas();
std::span<const OpSchema> sampling_schemas();
std::span<const OpSchema> text_schemas();
std::span<const OpSchema> tfidf_schemas();
std::span<const OpSchema> ml_model_schemas();
std::span<const OpSchema> ml_svm_schemas();
std::span<const OpSchema> ml_feature_schemas();
std::span<const OpSchema> ml_label_schemas();
std::span<const OpSchema> contrib_layout_schemas();
std::span<const OpSchema> image_decoder_schemas();
std::span<const OpSchema> ep_context_schemas();

/// Every family, in the order in which all_schemas() lists them.
inline constexpr std::span<const OpSchema> (*kFamilies[])() = {
    unary_schemas,
    activation_schemas,
    softmax_schemas,
    binary_schemas,
    variadic_schemas,
    shape_schemas,
    layout_schemas,
    pad_schemas,
    select_schemas,
    gather_schemas,
    sorting_schemas,
    control_schemas,
    matmul_schemas,
    conv_schemas,
    pool_schemas,
    norm_schemas,
    rnn_schemas,
    resize_schemas,
    where_schemas,
    cast_schemas,
    quantize_schemas,
    constant_schemas,
    reduce_schemas,
    detection_schemas,
    skip_norm_schemas,
    moe_schemas,
    group_query_attention_schemas,
    projected_attention_schemas,
    deform_conv_schemas,
    einsum_schemas,
    fourier_schemas,
    attention_schemas,
    flex_attention_schemas,
    rotary_schemas,
    linear_attention_schemas,
    nbits_schemas,
    quantized_matmul_schemas,
    channels_last_schemas,
    fused_matmul_schemas,
    quantized_conv_schemas,
    sequence_schemas,
    arg_reduce_schemas,
    cumulative_schemas,
    random_schemas,
    signal_window_schemas,
    loss_schemas,
    training_schemas,
    fused_elementwise_schemas,
    qlinear_schemas,
    sampling_schemas,
    text_schemas,
    tfidf_schemas,
    ml_model_schemas,
    ml_svm_schemas,
    ml_feature_schemas,
    ml_label_schemas,
    contrib_layout_schemas,
    image_decoder_schemas,
    ep_context_schemas,
};

}  // namespace sardonyx

#include "session/known_keys.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace sardonyx {

namespace {

constexpr std::string_view kKeys[] = {
    "ep.context_embed_mode",
    "ep.context_enable",
    "ep.context_file_path",
    "ep.context_model_external_initializers_file_name",
    "ep.context_node_name_prefix",
    "ep.context_source_model_path",
    "ep.enable_weightless",
    "ep.enable_weightless_ep_context_nodes",
    "ep.enable_weightless_mode",
    "ep.share_ep_contexts",
    "ep.stop_share_ep_contexts",
    "mlas.use_lut_gemm",
    "optimization.constant_folding_max_output_size_in_bytes",
    "optimization.disable_specified_optimizers",
    "optimization.enable_cast_chain_elimination",
    "optimization.enable_gelu_approximation",
    "optimization.minimal_build_optimizations",
    "sardonyx.cache_dir",
    "sardonyx.compile_cpu_parts",
    "sardonyx.context_ignore_stale_source",
    "sardonyx.placement",
    "session.allow_released_opsets_only",
    "session.collect_node_memory_stats_to_file",
    "session.compile_only",
    "session.debug_layout_transformation",
    "session.disable_aot_function_inlining",
    "session.disable_cpu_ep_fallback",
    "session.disable_double_qdq_remover",
    "session.disable_model_compile",
    "session.disable_prepacking",
    "session.disable_qdq_constant_folding",
    "session.disable_quant_qdq",
    "session.dynamic_block_base",
    "session.enable_cpu_mem_arena",
    "session.enable_dq_matmulnbits_fusion",
    "session.enable_mem_pattern",
    "session.enable_profiling",
    "session.enable_quant_qdq_cleanup",
    "session.enable_saved_runtime_optimizations",
    "session.execution_mode",
    "session.external_data_loader.chunk_bytes",
    "session.external_data_loader.min_size_bytes",
    "session.external_data_loader.pinned_memory_bytes",
    "session.external_data_loader.threads",
    "session.fail_on_suboptimal_compiled_model",
    "session.force_spinning_stop",
    "session.function_expansion_byte_limit",
    "session.function_expansion_node_limit",
    "session.gqa_value_layout",
    "session.graph_optimization_level",
    "session.graph_optimizations_loop_level",
    "session.inter_op.allow_spinning",
    "session.inter_op.spin_backoff_max",
    "session.inter_op.spin_duration_us",
    "session.inter_op_num_threads",
    "session.intra_op.allow_spinning",
    "session.intra_op.spin_backoff_max",
    "session.intra_op.spin_duration_us",
    "session.intra_op_num_threads",
    "session.intra_op_thread_affinities",
    "session.kernel_dispatch_policy",
    "session.layer_assignment_settings",
    "session.load_model_format",
    "session.log_id",
    "session.log_severity_level",
    "session.log_verbosity_level",
    "session.max_shape_override",
    "session.model_external_initializers_file_folder_path",
    "session.name_based_layer_assignment",
    "session.node_partition_config_file",
    "session.optimized_model_external_initializers_file_name",
    "session.optimized_model_external_initializers_min_size_in_bytes",
    "session.optimized_model_filepath",
    "session.prepack.enable_parallel",
    "session.qdq_matmulnbits_accuracy_level",
    "session.qdq_matmulnbits_block_size",
    "session.qdqisint8allowed",
    "session.record_ep_graph_assignment_info",
    "session.resource_cuda_partitioning_settings",
    "session.resource_partitioning_settings",
    "session.save_external_prepacked_constant_initializers",
    "session.save_model_format",
    "session.set_denormal_as_zero",
    "session.strict_shape_type_inference",
    "session.strict_workspace_verification",
    "session.use_deterministic_compute",
    "session.use_device_allocator_for_initializers",
    "session.use_env_allocators",
    "session.use_external_initializer_file_buffers_directly",
    "session.use_ort_model_bytes_directly",
    "session.use_ort_model_bytes_for_initializers",
    "session.use_per_session_threads",
    "session.x64quantprecision",
};

/// Those that are switches: "0" or "1".
constexpr std::string_view kSwitches[] = {
    "ep.context_embed_mode",
    "ep.context_enable",
    "ep.enable_weightless",
    "ep.enable_weightless_ep_context_nodes",
    "ep.share_ep_contexts",
    "ep.stop_share_ep_contexts",
    "optimization.enable_cast_chain_elimination",
    "optimization.enable_gelu_approximation",
    "session.allow_released_opsets_only",
    "session.compile_only",
    "session.debug_layout_transformation",
    "session.disable_aot_function_inlining",
    "session.disable_cpu_ep_fallback",
    "session.disable_double_qdq_remover",
    "session.disable_model_compile",
    "session.disable_prepacking",
    "session.disable_qdq_constant_folding",
    "session.disable_quant_qdq",
    "session.enable_dq_matmulnbits_fusion",
    "session.enable_quant_qdq_cleanup",
    "session.fail_on_suboptimal_compiled_model",
    "session.force_spinning_stop",
    "session.inter_op.allow_spinning",
    "session.intra_op.allow_spinning",
    "session.prepack.enable_parallel",
    "session.qdqisint8allowed",
    "session.record_ep_graph_assignment_info",
    "session.save_external_prepacked_constant_initializers",
    "session.set_denormal_as_zero",
    "session.strict_shape_type_inference",
    "session.strict_workspace_verification",
    "session.use_device_allocator_for_initializers",
    "session.use_env_allocators",
    "session.use_external_initializer_file_buffers_directly",
    "session.use_ort_model_bytes_directly",
    "session.use_ort_model_bytes_for_initializers",
    "session.x64quantprecision",
    "sardonyx.compile_cpu_parts",
    "sardonyx.context_ignore_stale_source",
};

/// Whether all but a few letters in one place are the same: programs have keys of their own, which
/// are longer than their difference from ours.
bool differs_little(std::string_view key, std::string_view known) {
  constexpr std::size_t kLettersMax = 3;
  const std::size_t shorter = std::min(key.size(), known.size());
  std::size_t same = 0;
  while (same < shorter && key[same] == known[same]) ++same;
  std::size_t same_at_end = 0;
  while (same + same_at_end < shorter &&
         key[key.size() - 1 - same_at_end] == known[known.size() - 1 - same_at_end]) {
    ++same_at_end;
  }
  return std::max(key.size(), known.size()) - same - same_at_end <= kLettersMax;
}

}  // namespace

std::string intended_session_key(std::string_view key) {
  if (std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys)) return "";
  std::vector<std::string> known;
  for (const std::string_view candidate : kKeys) {
    if (candidate.substr(candidate.find('.') + 1) == key) return std::string(candidate);
    known.emplace_back(candidate);
  }
  const std::string guess = nearest(key, known);
  return differs_little(key, guess) ? guess : "";
}

bool is_switch(std::string_view key) {
  return std::find(std::begin(kSwitches), std::end(kSwitches), key) != std::end(kSwitches);
}

}  // namespace sardonyx

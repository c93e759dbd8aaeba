// What to compile, into what, and how: the setters of OrtCompileApi.
#include "capi/compile_options.h"

#include <filesystem>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/status.h"

namespace sardonyx::capi::compile_api {

namespace {

namespace fs = std::filesystem;

Status refuse(const char* message) { return Status(Code::InvalidArgument, message); }

/// Errors   InvalidArgument for memory that the processor does not write.
Status check_allocator(OrtAllocator& allocator) {
  const OrtMemoryInfo* memory = allocator.Info == nullptr ? nullptr : allocator.Info(&allocator);
  if (memory == nullptr || memory->device_type == OrtMemoryInfoDeviceType_CPU ||
      memory->device_memory == OrtDeviceMemoryType_HOST_ACCESSIBLE) {
    return {};
  }
  return failure(Code::InvalidArgument,
                 "the allocator of an output buffer should be of memory that the processor "
                 "writes, found '{}'",
                 memory->name);
}

/// Errors   InvalidArgument when the model and its initializers would be told to one place.
Status check_distinct(const OrtModelCompilationOptions& options) {
  const auto* model = std::get_if<OutputBuffer>(&options.output);
  const auto* initializers = std::get_if<InitializerBuffer>(&options.initializers);
  if (model == nullptr || initializers == nullptr) return {};
  const OutputBuffer& other = initializers->buffer;
  if (model->data != other.data && model->size != other.size) return {};
  return refuse("Model and external initializer buffers require distinct output pointer locations");
}

}  // namespace

void ReleaseModelCompilationOptions(OrtModelCompilationOptions* object) noexcept { delete object; }

OrtStatus* CreateModelCompilationOptionsFromSessionOptions(
    const OrtEnv* env, const OrtSessionOptions* session_options,
    OrtModelCompilationOptions** out) noexcept {
  return guarded("CreateModelCompilationOptionsFromSessionOptions", [&]() -> Status {
    if (env == nullptr) return refuse("The env argument must be a non-null pointer");
    if (session_options == nullptr) {
      return refuse("The session_options argument must be a non-null pointer");
    }
    SDX_TRY(require(out, "out"));
    auto made = std::make_unique<OrtModelCompilationOptions>();
    made->environment = env->environment;
    made->process = env->process;
    made->session = *session_options;
    *out = made.release();
    return {};
  });
}

OrtStatus* ModelCompilationOptions_SetInputModelPath(OrtModelCompilationOptions* options,
                                                     const ORTCHAR_T* input_model_path) noexcept {
  return guarded("ModelCompilationOptions_SetInputModelPath", [&]() -> Status {
    SDX_TRY(require(options, "model_compile_options"));
    SDX_TRY(require(input_model_path, "input_model_path"));
    if (*input_model_path == '\0') return refuse("Invalid input model: path string is empty");
    options->input = std::string(input_model_path);
    return {};
  });
}

OrtStatus* ModelCompilationOptions_SetInputModelFromBuffer(OrtModelCompilationOptions* options,
                                                           const void* input_model_data,
                                                           size_t input_model_data_size) noexcept {
  return guarded("ModelCompilationOptions_SetInputModelFromBuffer", [&]() -> Status {
    SDX_TRY(require(options, "model_compile_options"));
    if (input_model_data == nullptr) return refuse("Invalid input model: data pointer is null");
    if (input_model_data_size == 0) return refuse("Invalid input model: data size is 0");
    options->input =
        std::span(static_cast<const std::byte*>(input_model_data), input_model_data_size);
    return {};
  });
}

OrtStatus* ModelCompilationOptions_SetInputModel(OrtModelCompilationOptions* options,
                                                 const OrtModel* model) noexcept {
  return guarded("ModelCompilationOptions_SetInputModel", [&]() -> Status {
    SDX_TRY(require(options, "model_compile_options"));
    if (model == nullptr) return refuse("Invalid input model: OrtModel pointer is null");
    options->input = model;
    return {};
  });
}

OrtStatus* ModelCompilationOptions_SetOutputModelPath(OrtModelCompilationOptions* options,
                                                      const ORTCHAR_T* output_model_path) noexcept {
  return guarded("ModelCompilationOptions_SetOutputModelPath", [&]() -> Status {
    SDX_TRY(require(options, "model_compile_options"));
    SDX_TRY(require(output_model_path, "output_model_path"));
    if (*output_model_path == '\0') return refuse("Invalid output model path: path is empty");
    options->output = std::string(output_model_path);
    return {};
  });
}

OrtStatus* ModelCompilationOptions_SetOutputModelBuffer(
    OrtModelCompilationOptions* options, OrtAllocator* allocator, void** output_model_buffer_ptr,
    size_t* output_model_buffer_size_ptr) noexcept {
  return guarded("ModelCompilationOptions_SetOutputModelBuffer", [&]() -> Status {
    SDX_TRY(require(options, "model_compile_options"));
    SDX_TRY(require(allocator, "allocator"));
    SDX_TRY(require(output_model_buffer_ptr, "output_model_buffer_ptr"));
    SDX_TRY(require(output_model_buffer_size_ptr, "output_model_buffer_size_ptr"));
    SDX_TRY(check_allocator(*allocator));
    options->output =
        OutputBuffer{allocator, output_model_buffer_ptr, output_model_buffer_size_ptr};
    return check_distinct(*options);
  });
}

OrtStatus* ModelCompilationOptions_SetOutputModelWriteFunc(OrtModelCompilationOptions* options,
                                                           OrtWriteBufferFunc write_func,
                                                           void* state) noexcept {
  return guarded("ModelCompilationOptions_SetOutputModelWriteFunc", [&]() -> Status {
    SDX_TRY(require(options, "model_compile_options"));
    if (write_func == nullptr) {
      return refuse("OrtWriteBufferFunc function for output model is null");
    }
    options->output = WriteFunction{write_func, state};
    return {};
  });
}

OrtStatus* ModelCompilationOptions_SetOutputModelExternalInitializersFile(
    OrtModelCompilationOptions* options, const ORTCHAR_T* external_initializers_file_path,
    size_t external_initializers_size_threshold) noexcept {
  return guarded("ModelCompilationOptions_SetOutputModelExternalInitializersFile", [&]() -> Status {
    SDX_TRY(require(options, "model_compile_options"));
    SDX_TRY(require(external_initializers_file_path, "external_initializers_file_path"));
    if (*external_initializers_file_path == '\0') {
      return refuse("Invalid external initializer file: path is empty");
    }
    options->initializers =
        InitializerFile{external_initializers_file_path, external_initializers_size_threshold};
    return {};
  });
}

OrtStatus* ModelCompilationOptions_SetOutputModelExternalInitializersBuffer(
    OrtModelCompilationOptions* options, const ORTCHAR_T* logical_name, size_t size_threshold,
    OrtAllocator* allocator, void** buffer, size_t* buffer_bytes) noexcept {
  return guarded(
      "ModelCompilationOptions_SetOutputModelExternalInitializersBuffer", [&]() -> Status {
        SDX_TRY(require(options, "options"));
        if (logical_name == nullptr) {
          return refuse("External initializer logical file name is null");
        }
        if (*logical_name == '\0' || fs::path(logical_name).is_absolute()) {
          return refuse("External initializer logical file name must be a non-empty relative path");
        }
        if (allocator == nullptr) return refuse("External initializer buffer allocator is null");
        if (buffer == nullptr) return refuse("External initializer output buffer pointer is null");
        if (buffer_bytes == nullptr) {
          return refuse("External initializer output buffer size pointer is null");
        }
        SDX_TRY(check_allocator(*allocator));
        options->initializers =
            InitializerBuffer{logical_name, size_threshold, {allocator, buffer, buffer_bytes}};
        return check_distinct(*options);
      });
}

OrtStatus* ModelCompilationOptions_SetOutputModelExternalInitializersAlignment(
    OrtModelCompilationOptions* options, size_t alignment, size_t minimum_bytes) noexcept {
  return guarded("ModelCompilationOptions_SetOutputModelExternalInitializersAlignment",
                 [&]() -> Status {
                   SDX_TRY(require(options, "options"));
                   if ((alignment & (alignment - 1)) != 0) {
                     return refuse("External initializer alignment must be zero or a power of two");
                   }
                   options->has_alignment = true;
                   options->alignment_bytes = alignment;
                   options->alignment_minimum_bytes = minimum_bytes;
                   return {};
                 });
}

OrtStatus* ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc(
    OrtModelCompilationOptions* options,
    OrtGetInitializerLocationFunc get_initializer_location_func, void* state) noexcept {
  return guarded(
      "ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc", [&]() -> Status {
        SDX_TRY(require(options, "model_compile_options"));
        if (get_initializer_location_func == nullptr) {
          return refuse("OrtGetInitializerLocationFunc function for output model is null");
        }
        options->initializers = InitializerLocator{get_initializer_location_func, state};
        return {};
      });
}

OrtStatus* ModelCompilationOptions_SetEpContextEmbedMode(OrtModelCompilationOptions* options,
                                                         bool embed_ep_context_in_model) noexcept {
  return guarded("ModelCompilationOptions_SetEpContextEmbedMode", [&]() -> Status {
    SDX_TRY(require(options, "model_compile_options"));
    options->embeds = embed_ep_context_in_model;
    return {};
  });
}

OrtStatus* ModelCompilationOptions_SetFlags(OrtModelCompilationOptions* options,
                                            uint32_t flags) noexcept {
  return guarded("ModelCompilationOptions_SetFlags", [&]() -> Status {
    SDX_TRY(require(options, "model_compile_options"));
    options->flags = flags;
    return {};
  });
}

OrtStatus* ModelCompilationOptions_SetEpContextBinaryInformation(
    OrtModelCompilationOptions* options, const ORTCHAR_T* output_directory,
    const ORTCHAR_T* model_name) noexcept {
  return guarded("ModelCompilationOptions_SetEpContextBinaryInformation", [&]() -> Status {
    SDX_TRY(require(options, "model_compile_options"));
    SDX_TRY(require(output_directory, "output_directory"));
    SDX_TRY(require(model_name, "model_name"));
    if (*output_directory == '\0') return refuse("Invalid output directory: path is empty");
    if (*model_name == '\0') return refuse("Invalid model name: string is empty");
    const fs::path folder(output_directory);
    if (folder.has_filename() && folder.extension().empty()) {
      return refuse("output_dir is not a valid directory.");
    }
    options->data_folder = output_directory;
    options->data_name = model_name;
    return {};
  });
}

OrtStatus* ModelCompilationOptions_SetGraphOptimizationLevel(
    OrtModelCompilationOptions* options, GraphOptimizationLevel graph_optimization_level) noexcept {
  return guarded("ModelCompilationOptions_SetGraphOptimizationLevel", [&]() -> Status {
    SDX_TRY(require(options, "model_compile_options"));
    const int level = static_cast<int>(graph_optimization_level);
    if (level != 99 && (level < 0 || level > 3)) {
      return failure(Code::InvalidArgument,
                     "graph_optimization_level with value {} is invalid. Valid values are: "
                     "ORT_DISABLE_ALL (0), ORT_ENABLE_BASIC (1), ORT_ENABLE_EXTENDED (2), "
                     "ORT_ENABLE_LAYOUT (3), and ORT_ENABLE_ALL (99).",
                     level);
    }
    options->optimization_level = level;
    return {};
  });
}

OrtStatus* ModelCompilationOptions_SetWeightlessEnabled(OrtModelCompilationOptions* options,
                                                        bool use_weightless) noexcept {
  return guarded("ModelCompilationOptions_SetWeightlessEnabled", [&]() -> Status {
    SDX_TRY(require(options, "model_compile_options"));
    options->session.options.entries["ep.enable_weightless"] = use_weightless ? "1" : "0";
    return {};
  });
}

OrtStatus* ModelCompilationOptions_SetWeightlessMode(OrtModelCompilationOptions* options,
                                                     OrtWeightlessSupport mode) noexcept {
  return guarded("ModelCompilationOptions_SetWeightlessMode", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    const int value = static_cast<int>(mode);
    if (value < 0 || value > 2) {
      return failure(Code::InvalidArgument,
                     "weightless_mode with value {} is invalid. Valid values are: "
                     "OrtWeightlessSupport_NONE (0), OrtWeightlessSupport_EXTERNAL_ONLY (1), and "
                     "OrtWeightlessSupport_ALL (2).",
                     value);
    }
    options->session.options.entries["ep.enable_weightless_mode"] = std::to_string(value);
    return {};
  });
}

OrtStatus* ModelCompilationOptions_SetEpContextDataWriteFunc(OrtModelCompilationOptions* options,
                                                             OrtWriteNamedBufferFunc write,
                                                             void* state) noexcept {
  return guarded("ModelCompilationOptions_SetEpContextDataWriteFunc", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->session.ep_context_data.write = write;
    options->session.ep_context_data.write_state = write != nullptr ? state : nullptr;
    return {};
  });
}

}  // namespace sardonyx::capi::compile_api

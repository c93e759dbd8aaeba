// The further tables that OrtApi hands out. Their functions say which of them are not there yet.
#include "capi/api_declarations.h"
#include "capi/api_tables.h"

namespace sardonyx::capi {

const OrtModelEditorApi* GetModelEditorApi() noexcept { return &ort_model_editor_api_table(); }
const OrtCompileApi* GetCompileApi() noexcept { return &ort_compile_api_table(); }
const OrtEpApi* GetEpApi() noexcept { return &ort_ep_api_table(); }
const OrtInteropApi* GetInteropApi() noexcept { return &ort_interop_api_table(); }
const OrtModelPackageApi* GetModelPackageApi() noexcept { return &ort_model_package_api_table(); }

}  // namespace sardonyx::capi

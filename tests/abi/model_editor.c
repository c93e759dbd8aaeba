// Builds models in memory through the C interface and runs them, adds to a model that exists, and
// misuses the editor. Runs on any library with the interface:
//   test_model_editor [LIBRARY]     default: the one that it is linked with
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sardonyx/c_api.h"

static const OrtApi* api;
static const OrtModelEditorApi* editor;
static OrtEnv* env;
static int failures = 0;
/// Other libraries may word, or allow, things in another way: then only what both promise is
/// checked.
static bool is_own = true;

static void check(bool good, const char* what) {
  if (good) return;
  fprintf(stderr, "FAILED: %s\n", what);
  ++failures;
}

static bool ok(OrtStatus* status, const char* what) {
  if (status == NULL) return true;
  fprintf(stderr, "FAILED: %s: %s\n", what, api->GetErrorMessage(status));
  api->ReleaseStatus(status);
  ++failures;
  return false;
}

/// The call must fail; our own message must name `named`.
static void refused(OrtStatus* status, const char* named, const char* what) {
  check(status != NULL, what);
  if (status == NULL) return;
  const char* message = api->GetErrorMessage(status);
  if (!is_own) {
    fprintf(stderr, "  %s: code %d: %s\n", what, (int)api->GetErrorCode(status), message);
  } else if (strstr(message, named) == NULL) {
    fprintf(stderr, "FAILED: %s: no '%s' in: %s\n", what, named, message);
    ++failures;
  }
  api->ReleaseStatus(status);
}

static OrtValueInfo* value_info(const char* name, ONNXTensorElementDataType type,
                                const int64_t* dims, size_t rank) {
  OrtTensorTypeAndShapeInfo* shape = NULL;
  OrtTypeInfo* type_info = NULL;
  OrtValueInfo* value = NULL;
  ok(api->CreateTensorTypeAndShapeInfo(&shape), "CreateTensorTypeAndShapeInfo");
  ok(api->SetTensorElementType(shape, type), "SetTensorElementType");
  ok(api->SetDimensions(shape, dims, rank), "SetDimensions");
  ok(editor->CreateTensorTypeInfo(shape, &type_info), "CreateTensorTypeInfo");
  ok(editor->CreateValueInfo(name, type_info, &value), "CreateValueInfo");
  api->ReleaseTypeInfo(type_info);
  api->ReleaseTensorTypeAndShapeInfo(shape);
  return value;
}

static OrtValue* floats(const int64_t* dims, size_t rank, float first) {
  OrtAllocator* allocator = NULL;
  OrtValue* value = NULL;
  void* data = NULL;
  size_t bytes = 0;
  ok(api->GetAllocatorWithDefaultOptions(&allocator), "GetAllocatorWithDefaultOptions");
  ok(api->CreateTensorAsOrtValue(allocator, dims, rank, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                                 &value),
     "CreateTensorAsOrtValue");
  ok(api->GetTensorMutableData(value, &data), "GetTensorMutableData");
  ok(api->GetTensorSizeInBytes(value, &bytes), "GetTensorSizeInBytes");
  for (size_t i = 0; i < bytes / sizeof(float); ++i) ((float*)data)[i] = first + (float)i;
  return value;
}

static OrtNode* node(const char* op, const char* domain, const char* name, const char* in0,
                     const char* in1, const char* out) {
  const char* inputs[] = {in0, in1};
  OrtNode* made = NULL;
  ok(editor->CreateNode(op, domain, name, inputs, in1 != NULL ? 2 : 1, &out, 1, NULL, 0, &made),
     "CreateNode");
  return made;
}

static OrtGraph* graph_of(OrtValueInfo* input, OrtValueInfo* output) {
  OrtGraph* graph = NULL;
  ok(editor->CreateGraph(&graph), "CreateGraph");
  if (input != NULL) {
    ok(editor->SetGraphInputs(graph, &input, 1), "SetGraphInputs");
    check(input == NULL, "an input that was taken is no longer the caller's");
  }
  if (output != NULL) ok(editor->SetGraphOutputs(graph, &output, 1), "SetGraphOutputs");
  return graph;
}

static OrtModel* model_of(OrtGraph* graph, const char* domain, int version) {
  OrtModel* model = NULL;
  ok(editor->CreateModel(&domain, &version, domain != NULL ? 1 : 0, &model), "CreateModel");
  if (graph != NULL) ok(editor->AddGraphToModel(model, graph), "AddGraphToModel");
  return model;
}

/// Runs on one input and gives element `index` of the only output.
static float run(OrtSession* session, const char* input, OrtValue* fed, const char* output,
                 size_t index) {
  OrtValue* result = NULL;
  void* data = NULL;
  const OrtValue* feeds[] = {fed};
  float found = NAN;
  if (ok(api->Run(session, NULL, &input, feeds, 1, &output, 1, &result), "Run")) {
    ok(api->GetTensorMutableData(result, &data), "GetTensorMutableData");
    found = ((float*)data)[index];
  }
  api->ReleaseValue(result);
  api->ReleaseValue(fed);
  return found;
}

static int freed = 0;
static const OrtMemoryInfo* memory_info = NULL;
static void ORT_API_CALL free_memory(OrtAllocator* allocator, void* memory) {
  (void)allocator;
  free(memory);
  ++freed;
}
static const OrtMemoryInfo* ORT_API_CALL info_of(const OrtAllocator* allocator) {
  (void)allocator;
  return memory_info;
}

static const int64_t kOne[] = {1};
static const int64_t kRow[] = {3, 4};
static const int64_t kWeight[] = {4, 8};
static const int64_t kResult[] = {3, 8};

/// Z = 2 * X Y, Y in memory that a deleter of ours frees.
static OrtModel* gemm_model(OrtAllocator* deleter) {
  OrtGraph* graph = graph_of(value_info("X", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kRow, 2),
                             value_info("Z", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kResult, 2));
  float alpha = 2.0f;
  OrtOpAttr* attribute = NULL;
  ok(api->CreateOpAttr("alpha", &alpha, 1, ORT_OP_ATTR_FLOAT, &attribute), "CreateOpAttr");
  const char* inputs[] = {"X", "Y"};
  const char* outputs[] = {"Z"};
  OrtNode* gemm = NULL;
  ok(editor->CreateNode("Gemm", "", "gemm", inputs, 2, outputs, 1, &attribute, 1, &gemm),
     "CreateNode");
  check(attribute == NULL, "an attribute that was taken is no longer the caller's");
  ok(editor->AddNodeToGraph(graph, gemm), "AddNodeToGraph");
  OrtValue* weight = NULL;
  if (deleter == NULL) {
    weight = floats(kWeight, 2, 1.0f);
  } else {
    float* memory = malloc(32 * sizeof(float));
    for (int i = 0; i < 32; ++i) memory[i] = 1.0f + (float)i;
    ok(api->CreateTensorWithDataAndDeleterAsOrtValue(deleter, memory, 32 * sizeof(float), kWeight,
                                                     2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                                                     &weight),
       "CreateTensorWithDataAndDeleterAsOrtValue");
  }
  ok(editor->AddInitializerToGraph(graph, "Y", weight, deleter != NULL), "AddInitializerToGraph");
  return model_of(graph, "", 18);
}

static void builds_and_runs(void) {
  OrtModel* model = gemm_model(NULL);
  for (int i = 0; i < 2; ++i) {
    OrtSession* session = NULL;
    if (!ok(editor->CreateSessionFromModel(env, model, NULL, &session), "CreateSessionFromModel")) {
      break;
    }
    // Row 0 of X is 0 1 2 3, column 0 of Y is 1 9 17 25.
    check(run(session, "X", floats(kRow, 2, 0.0f), "Z", 0) == 2.0f * (9 + 34 + 75),
          "a model that was built computes 2 X Y");
    api->ReleaseSession(session);
  }
  api->ReleaseModel(model);
}

static void honours_a_deleter(void) {
  OrtAllocator deleter;
  memset(&deleter, 0, sizeof(deleter));
  deleter.version = 22;
  deleter.Free = free_memory;
  deleter.Info = info_of;
  OrtMemoryInfo* info = NULL;
  ok(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &info), "CreateCpuMemoryInfo");
  memory_info = info;
  void* memory = malloc(sizeof(float));
  OrtValue* value = NULL;
  OrtStatus* status = api->CreateTensorWithDataAndDeleterAsOrtValue(
      &deleter, memory, sizeof(float), kOne, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value);
  const bool is_there = api->GetErrorCode(status) != ORT_NOT_IMPLEMENTED;
  api->ReleaseStatus(status);
  api->ReleaseValue(value);
  if (!is_there) {
    free(memory);
    api->ReleaseMemoryInfo(info);
    return;
  }
  check(freed == 1, "memory is given back with its value");
  freed = 0;
  OrtModel* model = gemm_model(&deleter);
  OrtSession* session = NULL;
  ok(editor->CreateSessionFromModel(env, model, NULL, &session), "CreateSessionFromModel");
  api->ReleaseModel(model);
  if (session != NULL) {
    check(run(session, "X", floats(kRow, 2, 0.0f), "Z", 0) == 236.0f, "it runs without the model");
  }
  api->ReleaseSession(session);
  check(freed == 1, "memory is given back once, when model and session are gone");
  api->ReleaseMemoryInfo(info);
}

/// A Relu from `input` to `output`, of which the graph declares Z.
static OrtModel* relu_model(const char* input, const char* output) {
  OrtGraph* graph = graph_of(value_info("X", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kRow, 2),
                             value_info("Z", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kRow, 2));
  ok(editor->AddNodeToGraph(graph, node("Relu", "", "relu", input, NULL, output)),
     "AddNodeToGraph");
  return model_of(graph, "", 18);
}

static void cannot_be_loaded(OrtModel* model, const char* named, const char* what) {
  OrtSession* session = NULL;
  refused(editor->CreateSessionFromModel(env, model, NULL, &session), named, what);
  api->ReleaseSession(session);
  api->ReleaseModel(model);
}

static void refuses_wrong_models(void) {
  cannot_be_loaded(relu_model("missing", "Z"), "missing", "an input that nothing makes");
  if (is_own) {
    cannot_be_loaded(relu_model("X", "other"), "Z", "an output that nothing makes");
    cannot_be_loaded(model_of(NULL, "", 18), "graph", "a model without a graph");
  }

  OrtGraph* graph = graph_of(value_info("X", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kRow, 2),
                             value_info("Z", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kRow, 2));
  ok(editor->AddNodeToGraph(graph, node("Add", "", "add", "X", "loop", "Z")), "AddNodeToGraph");
  ok(editor->AddNodeToGraph(graph, node("Relu", "", "relu", "Z", NULL, "loop")), "AddNodeToGraph");
  cannot_be_loaded(model_of(graph, "", 18), "cycle", "a cycle");

  graph = graph_of(value_info("X", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kRow, 2),
                   value_info("Z", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kRow, 2));
  ok(editor->AddNodeToGraph(graph, node("Relu", "", "one", "X", NULL, "Z")), "AddNodeToGraph");
  ok(editor->AddNodeToGraph(graph, node("Relu", "", "two", "X", NULL, "Z")), "AddNodeToGraph");
  cannot_be_loaded(model_of(graph, "", 18), "'Z' is made twice", "a value that is made twice");

  graph = graph_of(value_info("X", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kRow, 2),
                   value_info("Z", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kRow, 2));
  ok(editor->AddNodeToGraph(graph, node("Reluu", "", "relu", "X", NULL, "Z")), "AddNodeToGraph");
  cannot_be_loaded(model_of(graph, "", 18), "Relu", "an operator that is not known");

  graph = graph_of(value_info("X", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kRow, 2),
                   value_info("Z", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kRow, 2));
  ok(editor->AddNodeToGraph(graph, node("MatMul", "", "matmul", "X", "X", "Z")), "AddNodeToGraph");
  cannot_be_loaded(model_of(graph, "", 18), "matmul", "shapes that do not fit");

  graph = graph_of(value_info("X", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kRow, 2), NULL);
  ok(editor->AddNodeToGraph(graph, node("Relu", "", "relu", "X", NULL, "Z")), "AddNodeToGraph");
  if (is_own) cannot_be_loaded(model_of(graph, "", 18), "outputs", "a graph without outputs");

  graph = graph_of(value_info("X", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kRow, 2),
                   value_info("Z", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kRow, 2));
  ok(editor->AddNodeToGraph(graph, node("Relu", "", "relu", "X", NULL, "Z")), "AddNodeToGraph");
  cannot_be_loaded(model_of(graph, NULL, 0), "ai.onnx", "no version of the ONNX domain");
}

static void refuses_wrong_calls(void) {
  OrtGraph* graph = NULL;
  OrtNode* made = NULL;
  OrtValueInfo* value = value_info("X", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kRow, 2);
  OrtValueInfo* twice[] = {value, value};
  ok(editor->CreateGraph(&graph), "CreateGraph");
  refused(editor->SetGraphInputs(graph, twice, 2), "'X'", "one value twice");
  check(twice[0] == value, "after a failure the values are still the caller's");
  OrtValueInfo* none[] = {NULL};
  refused(editor->SetGraphOutputs(graph, none, 1), "null", "a null output");
  refused(editor->SetGraphInputs(NULL, &value, 1), "graph", "no graph");
  refused(editor->AddNodeToGraph(graph, NULL), "node", "no node");
  const OrtTypeInfo* type_info = NULL;
  ok(api->GetValueInfoTypeInfo(value, &type_info), "GetValueInfoTypeInfo");
  refused(editor->CreateValueInfo("", type_info, &twice[1]), "name", "a value without a name");
  refused(editor->CreateValueInfo("X", NULL, &twice[1]), "type_info", "a value without a type");
  const char* name = NULL;
  ok(api->GetValueInfoName(value, &name), "GetValueInfoName");
  check(name != NULL && strcmp(name, "X") == 0, "a value tells its name");

  OrtOpAttr* attributes[] = {NULL};
  const char* names[] = {"X"};
  if (is_own) {
    refused(editor->CreateNode("Relu", "", "relu", names, 1, names, 1, attributes, 1, &made),
            "attribute 0", "a null attribute");
    refused(editor->CreateNode(NULL, "", "relu", names, 1, names, 1, NULL, 0, &made),
            "operator_name", "no operator");
    refused(api->CreateOpAttr("a", NULL, 1, ORT_OP_ATTR_INT, &attributes[0]), "data", "no data");
  }
  refused(api->CreateOpAttr("a", names, 1, ORT_OP_ATTR_GRAPH, &attributes[0]), "graph",
          "a graph as attribute");

  OrtValue* tensor = floats(kRow, 2, 0.0f);
  refused(editor->AddInitializerToGraph(graph, "W", tensor, true), "128", "48 bytes of others");
  ok(editor->AddInitializerToGraph(graph, "W", tensor, false), "AddInitializerToGraph");
  tensor = floats(kRow, 2, 0.0f);
  refused(editor->AddInitializerToGraph(graph, "W", tensor, false), "'W'", "a name twice");
  api->ReleaseValue(tensor);

  made = node("Relu", "ai.onnx", "relu", "X", NULL, "Z");
  size_t count = 0;
  ok(api->Node_GetNumInputs(made, &count), "Node_GetNumInputs");
  check(count == 1, "a node counts its inputs");
  ok(api->Node_GetDomain(made, &name), "Node_GetDomain");
  if (is_own) check(strcmp(name, "") == 0, "ai.onnx is the domain without a name");
  ok(editor->AddNodeToGraph(graph, made), "AddNodeToGraph");
  refused(editor->AddNodeToGraph(graph, made), "before", "a node twice");

  OrtModel* model = model_of(graph, "", 18);
  refused(editor->AddGraphToModel(model, graph), "graph", "a graph twice");
  api->ReleaseModel(model);
  api->ReleaseValueInfo(value);
}

static void reads_attributes(void) {
  const int64_t ints[] = {3, -4};
  const char* texts[] = {"ab", "", "c"};
  OrtOpAttr* attribute = NULL;
  OrtOpAttrType type = ORT_OP_ATTR_UNDEFINED;
  int64_t read[2] = {0, 0};
  char text[8];
  size_t bytes = 0;
  ok(api->CreateOpAttr("axes", ints, 2, ORT_OP_ATTR_INTS, &attribute), "CreateOpAttr");
  ok(api->OpAttr_GetType(attribute, &type), "OpAttr_GetType");
  check(type == ORT_OP_ATTR_INTS, "an attribute tells its type");
  refused(api->ReadOpAttr(attribute, ORT_OP_ATTR_INTS, read, 8, &bytes), "axes", "too little room");
  check(bytes == 16, "the size that is needed is told");
  ok(api->ReadOpAttr(attribute, ORT_OP_ATTR_INTS, read, 16, &bytes), "ReadOpAttr");
  check(read[0] == 3 && read[1] == -4, "ints are read as they were");
  refused(api->ReadOpAttr(attribute, ORT_OP_ATTR_FLOAT, read, 16, &bytes), "axes", "another type");
  api->ReleaseOpAttr(attribute);
  ok(api->CreateOpAttr("names", texts, 3, ORT_OP_ATTR_STRINGS, &attribute), "CreateOpAttr");
  ok(api->ReadOpAttr(attribute, ORT_OP_ATTR_STRINGS, text, sizeof(text), &bytes), "ReadOpAttr");
  check(bytes == 6 && memcmp(text, "ab\0\0c", 6) == 0, "strings end with a zero each");
  api->ReleaseOpAttr(attribute);
  ok(api->CreateOpAttr("mode", "linear", 6, ORT_OP_ATTR_STRING, &attribute), "CreateOpAttr");
  ok(api->ReadOpAttr(attribute, ORT_OP_ATTR_STRING, text, sizeof(text), &bytes), "ReadOpAttr");
  check(bytes == 6 && memcmp(text, "linear", 6) == 0, "a string has no zero at its end");
  api->ReleaseOpAttr(attribute);
}

/// y = Relu(x) of one float, as a file would hold it.
static const unsigned char kReluModel[] = {
    0x08, 0x08, 0x3a, 0x2f, 0x0a, 0x0c, 0x0a, 0x01, 'x',  0x12, 0x01, 'y',  0x22, 0x04, 'R',
    'e',  'l',  'u',  0x12, 0x01, 'g',  0x5a, 0x0d, 0x0a, 0x01, 'x',  0x12, 0x08, 0x0a, 0x06,
    0x08, 0x01, 0x12, 0x02, 0x0a, 0x00, 0x62, 0x0d, 0x0a, 0x01, 'y',  0x12, 0x08, 0x0a, 0x06,
    0x08, 0x01, 0x12, 0x02, 0x0a, 0x00, 0x42, 0x04, 0x0a, 0x00, 0x10, 0x12};

static void adds_to_a_model(void) {
  OrtSession* session = NULL;
  if (!ok(editor->CreateModelEditorSessionFromArray(env, kReluModel, sizeof(kReluModel), NULL,
                                                    &session),
          "CreateModelEditorSessionFromArray")) {
    return;
  }
  int opset = 0;
  ok(editor->SessionGetOpsetForDomain(session, "", &opset), "SessionGetOpsetForDomain");
  check(opset == 18, "an open session tells its operator sets");
  refused(editor->SessionGetOpsetForDomain(session, "none", &opset), "'none'", "another domain");
  size_t count = 0;
  ok(api->SessionGetInputCount(session, &count), "SessionGetInputCount");
  check(count == 1, "an open session tells its inputs");

  // x = 0 - w, z = y + y around y = Relu(x).
  OrtGraph* graph = graph_of(value_info("w", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kOne, 1),
                             value_info("z", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kOne, 1));
  ok(editor->AddInitializerToGraph(graph, "zero", floats(kOne, 1, 0.0f), false),
     "AddInitializerToGraph");
  ok(editor->AddNodeToGraph(graph, node("Sub", "", "before", "zero", "w", "x")), "AddNodeToGraph");
  ok(editor->AddNodeToGraph(graph, node("Add", "", "after", "y", "y", "z")), "AddNodeToGraph");
  OrtModel* model = model_of(graph, NULL, 0);
  ok(editor->ApplyModelToModelEditorSession(session, model), "ApplyModelToModelEditorSession");
  api->ReleaseModel(model);
  ok(editor->FinalizeModelEditorSession(session, NULL, NULL), "FinalizeModelEditorSession");
  check(run(session, "w", floats(kOne, 1, -3.0f), "z", 0) == 6.0f, "the larger model runs");
  if (is_own) {
    refused(editor->FinalizeModelEditorSession(session, NULL, NULL), "ready", "finalizing twice");
  }
  api->ReleaseSession(session);
}

static void refuses_wrong_additions(void) {
  OrtSession* session = NULL;
  ok(editor->CreateModelEditorSessionFromArray(env, kReluModel, sizeof(kReluModel), NULL, &session),
     "CreateModelEditorSessionFromArray");
  OrtModel* model = model_of(graph_of(NULL, NULL), "", 19);
  refused(editor->ApplyModelToModelEditorSession(session, model), "18", "another opset version");
  api->ReleaseModel(model);
  if (!is_own) {
    api->ReleaseSession(session);
    return;
  }
  // x is no input any more, and nothing else makes it.
  model = model_of(graph_of(value_info("w", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kOne, 1), NULL),
                   NULL, 0);
  refused(editor->ApplyModelToModelEditorSession(session, model), "'x'", "an input that is gone");
  api->ReleaseModel(model);
  OrtGraph* graph = graph_of(NULL, NULL);
  ok(editor->AddNodeToGraph(graph, node("Relu", "", "again", "x", NULL, "y")), "AddNodeToGraph");
  model = model_of(graph, NULL, 0);
  refused(editor->ApplyModelToModelEditorSession(session, model), "'y' is made twice", "y again");
  api->ReleaseModel(model);

  const char* input = "x";
  const char* output = "y";
  OrtValue* fed = floats(kOne, 1, 1.0f);
  const OrtValue* feeds[] = {fed};
  OrtValue* result = NULL;
  refused(api->Run(session, NULL, &input, feeds, 1, &output, 1, &result), "open", "an early run");
  ok(editor->FinalizeModelEditorSession(session, NULL, NULL), "FinalizeModelEditorSession");
  check(run(session, "x", fed, "y", 0) == 1.0f, "failed additions leave the model as it was");
  api->ReleaseSession(session);
}

int main(int argc, char** argv) {
  const OrtApiBase* base = NULL;
  if (argc > 1) {
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    const OrtApiBase* (*get)(void) = NULL;
    *(void**)(&get) = dlsym(library, "OrtGetApiBase");
    base = get();
    is_own = dlsym(library, "SardonyxGetApi") != NULL;
  } else {
    base = OrtGetApiBase();
  }
  api = base->GetApi(ORT_API_VERSION);
  editor = api->GetModelEditorApi();
  ok(api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "test", &env), "CreateEnv");
  builds_and_runs();
  honours_a_deleter();
  refuses_wrong_models();
  refuses_wrong_calls();
  reads_attributes();
  adds_to_a_model();
  refuses_wrong_additions();
  api->ReleaseNode(NULL);
  api->ReleaseGraph(NULL);
  api->ReleaseModel(NULL);
  api->ReleaseValueInfo(NULL);
  api->ReleaseOpAttr(NULL);
  api->ReleaseEnv(env);
  if (failures == 0) fprintf(stderr, "ok\n");
  return failures != 0;
}

"""The manifest against the headers that packages ship, and programs compiled against those.

The Go module carries onnxruntime_c_api.h of API 24. The npm package carries API 29; it is 150 MB
and only looked at when SARDONYX_TEST_NPM_HEADERS is 1, or a folder that has its headers already.
"""

import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from interface import ROOT, default_library, model_bytes

GO_MODULE = "github.com/yalue/onnxruntime_go@v1.27.0"
NPM_PACKAGE = "com.github.asus4.onnxruntime@0.4.9"
NPM_HEADERS = (
    "package/Plugins/iOS~/onnxruntime.xcframework/ios-arm64_x86_64-simulator/"
    "onnxruntime.framework/Headers/"
)


def run(*command, **keywords):
    """Run a program; its output."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600, **keywords
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def need(program):
    """Skip where a program is not installed."""
    if shutil.which(program) is None:
        pytest.skip(f"not run: there is no {program}")


@pytest.fixture(scope="session")
def go_headers(tmp_path_factory):
    """Folder of the headers in the Go module."""
    need("go")
    folder = tmp_path_factory.mktemp("go")
    done = subprocess.run(
        ["go", "mod", "download", "-json", GO_MODULE],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=600,
    )
    if done.returncode != 0:
        pytest.skip(f"not run: the Go module could not be had: {done.stderr[-300:]}")
    return Path(json.loads(done.stdout)["Dir"])


@pytest.fixture(scope="session")
def npm_headers(tmp_path_factory):
    """Folder of the headers in the npm package."""
    given = os.environ.get("SARDONYX_TEST_NPM_HEADERS", "")
    if not given:
        pytest.skip("not run: SARDONYX_TEST_NPM_HEADERS is not set")
    if given != "1":
        return Path(given)
    need("npm")
    folder = tmp_path_factory.mktemp("npm")
    name = run("npm", "pack", "--silent", NPM_PACKAGE, cwd=folder).split()[-1]
    with tarfile.open(folder / name) as package:
        for member in package:
            if member.name.startswith(NPM_HEADERS) and member.isfile():
                target = folder / Path(member.name).name
                target.write_bytes(package.extractfile(member).read())
    return folder


def version_of(headers):
    """ORT_API_VERSION of a header."""
    text = (headers / "onnxruntime_c_api.h").read_text(encoding="utf-8")
    return int(re.search(r"#define ORT_API_VERSION (\d+)", text)[1])


def check_manifest(headers, folder):
    """Compile the comparison of every offset and signature with the header's own."""
    need("g++")
    source = folder / "check.cpp"
    version = version_of(headers)
    run(
        "python3",
        str(ROOT / "tools/gen_api.py"),
        str(ROOT / "src/capi/api.manifest"),
        "--check",
        str(source),
        "--headers",
        str(headers),
    )
    text = source.read_text(encoding="utf-8")
    assert text.count("offsetof(OrtApi,") >= {24: 415, 29: 425}[version]
    run("g++", "-std=c++20", "-fsyntax-only", "-w", f"-I{headers}", str(source))


# What a program of an older version does: it asks for its own version of the table and runs a model
# that it builds itself, or for API 24 and later looks at every slot that it knows.
PROGRAM = r"""
#include <onnxruntime_c_api.h>
#include <stdio.h>
#include <string.h>

static int good(const OrtApi* api, OrtStatus* status) {
  if (status == NULL) return 1;
  printf("%s\n", api->GetErrorMessage(status));
  api->ReleaseStatus(status);
  return 0;
}

int main(int count, char** arguments) {
  const OrtApi* api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  if (api == NULL || count != 2) return 1;
  for (size_t i = 0; i < sizeof(*api) / sizeof(void*); ++i) {
    if (((void* const*)api)[i] == NULL) return 2;
  }
  OrtEnv* env = NULL;
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  OrtMemoryInfo* memory = NULL;
  OrtValue* x = NULL;
  OrtValue* y = NULL;
  float data[2] = {1, 1};
  const int64_t shape[2] = {1, 2};
  const char* inputs[] = {"x"};
  const char* outputs[] = {"y"};
  float* result = NULL;
  int fine = good(api, api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "program", &env)) &&
      good(api, api->CreateSessionOptions(&options)) &&
      good(api, api->CreateSession(env, arguments[1], options, &session)) &&
      good(api, api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory)) &&
      good(api, api->CreateTensorWithDataAsOrtValue(memory, data, sizeof(data), shape, 2,
                                                    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &x)) &&
      good(api, api->Run(session, NULL, inputs, (const OrtValue* const*)&x, 1, outputs, 1, &y)) &&
      good(api, api->GetTensorMutableData(y, (void**)&result));
  if (fine) printf("%g %g\n", result[0], result[1]);
  api->ReleaseValue(y);
  api->ReleaseValue(x);
  api->ReleaseMemoryInfo(memory);
  api->ReleaseSession(session);
  api->ReleaseSessionOptions(options);
  api->ReleaseEnv(env);
  return fine ? 0 : 3;
}
"""


def run_program(headers, folder):
    """Compile the program against foreign headers, link it with our library and run it."""
    need("gcc")

    library = Path(default_library()).resolve()
    (folder / "program.c").write_text(PROGRAM, encoding="utf-8")
    (folder / "model.onnx").write_bytes(model_bytes())
    run(
        "gcc",
        "-w",
        f"-I{headers}",
        "program.c",
        str(library),
        f"-Wl,-rpath,{library.parent}",
        "-o",
        "program",
        cwd=folder,
    )
    assert run("./program", "model.onnx", cwd=folder) == "4 6\n"


def test_the_manifest_agrees_with_the_header_of_the_go_module(go_headers, tmp_path):
    assert version_of(go_headers) == 24
    check_manifest(go_headers, tmp_path)


def test_a_program_compiled_against_the_go_modules_header_runs(go_headers, tmp_path):
    run_program(go_headers, tmp_path)


def test_the_manifest_agrees_with_the_headers_of_the_npm_package(npm_headers, tmp_path):
    assert version_of(npm_headers) == 29
    check_manifest(npm_headers, tmp_path)


def test_a_program_compiled_against_the_npm_packages_header_runs(npm_headers, tmp_path):
    run_program(npm_headers, tmp_path)


def test_the_library_exports_its_three_functions_and_no_versions():
    need("nm")
    library = str(Path(default_library()).resolve())
    names = {line.split()[-1] for line in run("nm", "-D", "--defined-only", library).splitlines()}
    assert names == {
        "OrtGetApiBase",
        "OrtSessionOptionsAppendExecutionProvider_CPU",
        "SardonyxGetApi",
    }
    if shutil.which("readelf"):
        dynamic = run("readelf", "-d", library)
        assert "libonnxruntime.so.1" in dynamic and "VERDEF" not in dynamic

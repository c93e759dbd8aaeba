"""The clients: where each comes from, how it is built, and how it is pointed at a library."""

import os
import platform
import re
import sys
import zipfile
from dataclasses import dataclass

from work import HERE, REFERENCE, TRIES, Command, NotRun

GO_MODULE = "github.com/yalue/onnxruntime_go"
NPM_HEADERS = "com.github.asus4.onnxruntime@0.4.9"
WARNINGS = ("-O1", "-Wall", "-Wextra")


@dataclass
class Client:
    """A program or a library of another project, and how it is run."""

    title: str
    prepare: object
    """Takes the work, returns a function from a side to its Command."""
    is_suite: bool = False
    """A test suite of its own: what passes on ONNX Runtime has to pass on Sardonyx."""

    def expected(self, lines):
        """Lines of the reference that count."""
        if not self.is_suite:
            return lines
        return {name: words for name, words in lines.items() if words == ["PASS"]}


def arch():
    """The processor, as Java packages name it."""
    return {"x86_64": "x64", "aarch64": "aarch64"}.get(platform.machine(), platform.machine())


def go_headers(work):
    """Folder of the Go module, which has onnxruntime_c_api.h of API version 24."""
    go = work.tool("go")
    project = work.project("go")
    work.call([go, "mod", "download"], cwd=project, tries=TRIES)
    return work.call([go, "list", "-m", "-f", "{{.Dir}}", GO_MODULE], cwd=project).strip()


def npm_headers(work):
    """Folder of the C and C++ headers of API version 29 that an npm package carries."""
    npm = work.tool("npm")
    inside = "package/Plugins/iOS~/onnxruntime.xcframework/ios-arm64_x86_64-simulator/"
    inside += "onnxruntime.framework/Headers/*"

    def unpack(path):
        work.call([npm, "pack", NPM_HEADERS], cwd=path, tries=TRIES)
        archive = next(path.glob("*.tgz"))
        options = ["--strip-components=7", "--wildcards", inside]
        work.call(["tar", "xzf", archive, *options], cwd=path)
        archive.unlink()

    return work.once("headers-29", unpack)


def with_path(work, program):
    """Commands of a program that takes the path of the library and the folder of models."""

    def start(side):
        argv = [str(program), str(work.library(side)), str(work.models)]
        return Command(argv, work.environment(), work.folder("run"))

    return start


def c_program(work):
    """Compile the C program against the headers of the Go module."""
    program = work.folder("c") / "check"
    source = [HERE / "c/check.c", HERE / "c/sessions.c"]
    include = ["-isystem", go_headers(work)]
    libraries = ["-ldl", "-lpthread", "-lm"]
    work.call([work.tool("cc"), *WARNINGS, *include, "-o", program, *source, *libraries])
    return with_path(work, program)


def cpp_program(work):
    """Compile the C++ program against the headers of the npm package."""
    program = work.folder("cpp") / "check"
    source = HERE / "cpp/check.cpp"
    include = ["-isystem", npm_headers(work)]
    flags = [*WARNINGS, "-std=c++20", *include]
    work.call([work.tool("c++"), *flags, "-o", program, source, "-ldl", "-lpthread"])
    return with_path(work, program)


def go_program(work):
    """Build the program of the Go project."""
    go_headers(work)
    program = work.folder("go") / "check"
    work.call([work.tool("go"), "build", "-o", program, "."], cwd=work.folder("projects/go"))
    return with_path(work, program)


def go_suite(work):
    """Build the tests that the Go module itself has."""
    source = go_headers(work)
    program = work.folder("go") / "suite"
    work.call(
        [work.tool("go"), "test", "-c", "-o", program, GO_MODULE], cwd=work.folder("projects/go")
    )

    def verdicts(text):
        found = re.findall(r"^--- (PASS|FAIL): (\w+)", text, re.MULTILINE)
        return "\n".join(f"{name} = {verdict}" for verdict, name in found)

    def start(side):
        env = work.environment(ONNXRUNTIME_SHARED_LIBRARY_PATH=work.library(side))
        return Command([str(program), "-test.v"], env, source, verdicts, may_fail=True)

    return start


def rust_program(project):
    """A client that builds a project of ours with a version of ort."""

    def prepare(work):
        cargo = work.tool("cargo")
        source = work.project(project)
        target = work.folder(f"cargo/{project}")
        work.call([cargo, "fetch", "--locked"], cwd=source, tries=TRIES)
        build = ["build", "--locked", "--offline", "-j1", "--target-dir", target]
        work.call([cargo, *build], cwd=source)

        def start(side):
            env = work.environment(ORT_DYLIB_PATH=work.library(side))
            argv = [str(target / "debug/check"), str(work.models)]
            return Command(argv, env, work.folder("run"))

        return start

    return prepare


def node_program(work):
    """Install the npm package without its own download; its library is the reference."""
    node = work.tool("node")
    npm = work.tool("npm")
    project = work.project("node")
    modules = project / "node_modules/onnxruntime-node/bin"
    if not modules.exists():
        skip = {"ONNXRUNTIME_NODE_INSTALL": "skip"}
        install = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock"]
        work.call(install, cwd=project, env=skip, tries=TRIES)

    def start(side):
        # The binding finds the library beside itself, unless this comes first.
        path = {"LD_LIBRARY_PATH": work.library_folder(side)} if side == "sardonyx" else {}
        argv = [node, str(project / "check.js"), str(work.models)]
        return Command(argv, work.environment(**path), project)

    return start


def java_program(work):
    """Compile against the jar; its library is the reference."""
    java = work.tool("java")
    javac = work.tool("javac")
    name = "onnxruntime-1.29.0.jar"

    def fetch(path):
        coordinates = "com.microsoft.onnxruntime:onnxruntime:1.29.0"
        copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
        options = [f"-Dartifact={coordinates}", f"-DoutputDirectory={path}"]
        work.call([work.tool("mvn"), "-q", "-B", copy, *options], tries=TRIES)

    jar = work.once("java-1.29.0", fetch) / name
    classes = work.folder("java")
    source = HERE / "java/Check.java"
    encoding = ["-encoding", "UTF-8"]
    work.call([javac, *encoding, "-cp", jar, "-d", classes, source])

    def own_folder(side):
        # The property names a folder with both the library and the glue to Java.
        folder = work.folder(f"java-{side}")
        glue = "libonnxruntime4j_jni.so"
        with zipfile.ZipFile(jar) as archive:
            data = archive.read(f"ai/onnxruntime/native/linux-{arch()}/{glue}")
            (folder / glue).write_bytes(data)
        link = folder / "libonnxruntime.so"
        link.unlink(missing_ok=True)
        link.symlink_to(work.library(side))
        return folder

    def start(side):
        path = [f"-Donnxruntime.native.path={own_folder(side)}"] if side == "sardonyx" else []
        argv = [java, "-Dfile.encoding=UTF-8", *path, "-cp", f"{jar}:{classes}", "Check"]
        return Command([*argv, str(work.models)], work.environment(), work.folder("run"))

    return start


def genai_program(work):
    """A tiny model; the package looks for the folder capi of a package named onnxruntime."""
    package = work.wheel("onnxruntime-genai==0.18.0")
    model = work.folder("genai")
    work.call([sys.executable, HERE / "genai/make_model.py", model])

    def start(side):
        path = [package, work.wheel(REFERENCE)]
        if side == "sardonyx":
            path = [package, work.build / "mirror", work.build / "python"]
        env = work.environment(PYTHONPATH=os.pathsep.join(map(str, path)))
        argv = [sys.executable, str(HERE / "genai/check.py"), str(model)]
        return Command(argv, env, work.folder("run"))

    return start


def sherpa_program(work):
    """A tiny model; the package brings a library of its own, which LD_PRELOAD comes before."""
    package = work.wheel("sherpa-onnx==2.0.1", "sherpa-onnx-core==2.0.1")
    model = work.folder("sherpa") / "speakers.onnx"
    work.call([sys.executable, HERE / "sherpa/make_model.py", model])

    def start(side):
        preload = {"LD_PRELOAD": work.library(side)} if side == "sardonyx" else {}
        env = work.environment(PYTHONPATH=package, **preload)
        argv = [sys.executable, str(HERE / "sherpa/check.py"), str(model)]
        return Command(argv, env, work.folder("run"))

    return start


def csharp_program(work):
    """There is none."""
    work.tool("dotnet")
    raise NotRun("no program for it has been written")


CLIENTS = {
    "c": Client("C against the headers of the Go module (API 24)", c_program),
    "cpp": Client("C++ against onnxruntime_cxx_api.h of an npm package (API 29)", cpp_program),
    "rust-rc15": Client("the crate ort 2.0.0-rc.15", rust_program("rust_rc15")),
    "rust-rc10": Client("the crate ort 2.0.0-rc.10", rust_program("rust_rc10")),
    "go": Client("onnxruntime_go v1.27.0", go_program),
    "go-suite": Client("the tests of onnxruntime_go v1.27.0", go_suite, is_suite=True),
    "node": Client("onnxruntime-node 1.30.0", node_program),
    "java": Client("com.microsoft.onnxruntime 1.29.0", java_program),
    "genai": Client("onnxruntime-genai 0.18.0", genai_program),
    "sherpa": Client("sherpa-onnx 2.0.1", sherpa_program),
    "csharp": Client("Microsoft.ML.OnnxRuntime", csharp_program),
}

"""What `make install` puts in place can be used from CMake and by pkg-config, from any folder."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("SARDONYX_BUILD", HERE.parents[1] / "build/release"))
VERSION = "1.32.0"

CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(Sardonyx 0.1 REQUIRED)
add_executable(user program.c)
target_link_libraries(user PRIVATE Sardonyx::sardonyx)
"""


def run(*command, **options):
    """Standard output of a command that has to succeed."""
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """An installation that was moved after it was made."""
    first = tmp_path_factory.mktemp("install") / "first"
    run("cmake", "--install", BUILD, "--prefix", first)
    second = first.with_name("second")
    first.rename(second)
    return second


def test_a_cmake_project_finds_and_links_it(prefix, tmp_path):
    """find_package, the target Sardonyx::sardonyx, and a run."""
    (tmp_path / "CMakeLists.txt").write_text(CMAKE, encoding="utf-8")
    shutil.copy(HERE / "program.c", tmp_path)
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build/user").strip() == VERSION


def test_a_compiler_finds_it_by_pkg_config(prefix, tmp_path):
    """Flags of pkg-config, and a run with the library's folder in LD_LIBRARY_PATH."""
    environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "sardonyx", env=environment).split()
    program = tmp_path / "user"
    run("cc", HERE / "program.c", "-o", program, *flags)
    environment["LD_LIBRARY_PATH"] = str(prefix / "lib")
    assert run(program, env=environment).strip() == VERSION


def test_the_library_has_its_name_and_exports_nothing_else(prefix):
    """SONAME libonnxruntime.so.1 and the three entry points, without symbol versions."""
    library = prefix / "lib/libonnxruntime.so.1"
    assert "[libonnxruntime.so.1]" in run("readelf", "-d", library)
    names = {line.split()[-1] for line in run("nm", "-D", "--defined-only", library).splitlines()}
    assert names == {
        "OrtGetApiBase",
        "OrtSessionOptionsAppendExecutionProvider_CPU",
        "SardonyxGetApi",
    }


def test_the_example_plugin_builds_by_itself(prefix, tmp_path):
    """Against the installed header; the library is linked against no runtime."""
    source = HERE.parents[1] / "examples/plugin_ep"
    run("cmake", "-S", source, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path)
    needed = run("readelf", "-d", tmp_path / "libexample_plugin_ep.so")
    assert "onnxruntime" not in needed


def test_the_plugin_library_is_installed(prefix):
    """Beside the other library."""
    assert (prefix / "lib/libsardonyx_ep.so").is_file()

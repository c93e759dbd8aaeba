#!/usr/bin/env python3
"""Run the tests of the C interface on a library that is built with a sanitizer.

    sanitize.py address|thread [--build FOLDER] [ARGUMENTS FOR PYTEST]

The library is that of the preset asan or tsan, below build/. Whatever the sanitizer reports ends
the process that it happens in, and with it the test. What is suppressed, and why, stands in the
files beside this one: lsan.supp and tsan.supp.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RUNTIMES = {"address": ("libasan.so", "libubsan.so"), "thread": ("libtsan.so",)}
PRESETS = {"address": "asan", "thread": "tsan"}
OPTIONS = {
    "address": {
        # Contexts are short, so that a suppression names who allocates, not who is below it.
        "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1:malloc_context_size=4",
        "LSAN_OPTIONS": f"suppressions={HERE / 'lsan.supp'}:print_suppressions=0",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    },
    "thread": {
        "TSAN_OPTIONS": "halt_on_error=1:die_after_fork=0:ignore_noninstrumented_modules=1:"
        f"suppressions={HERE / 'tsan.supp'}:print_suppressions=0",
    },
}


def runtime(name, compiler):
    """Path of a sanitizer's library, which has to be loaded before all others."""
    found = subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip()
    return str(Path(found).resolve())


def main():
    """Run pytest with the sanitizer's library loaded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=sorted(RUNTIMES))
    parser.add_argument("--build", type=Path, help="build folder; default: that of the preset")
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"))
    arguments, for_pytest = parser.parse_known_args()
    build = (arguments.build or ROOT / "build" / PRESETS[arguments.kind]).resolve()
    preload = [runtime(name, arguments.compiler) for name in RUNTIMES[arguments.kind]]
    environment = {
        **os.environ,
        **OPTIONS[arguments.kind],
        "LD_PRELOAD": ":".join(preload),
        "PYTHONMALLOC": "malloc",
        "SARDONYX_BUILD": str(build),
        "SARDONYX_LIBRARY": str(build / "lib/libonnxruntime.so.1"),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not timed", "-p", "no:cacheprovider"]
    # What that one runs are compilers.
    left_out = ["--ignore", str(HERE / "test_headers.py")]
    tests = [] if any("test_" in argument for argument in for_pytest) else [str(HERE)]
    done = subprocess.run([*command, *left_out, *tests, *for_pytest], env=environment, check=False)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()

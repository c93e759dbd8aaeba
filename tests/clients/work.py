"""What the clients share: the cache folder, packages, the two libraries."""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
REFERENCE = "onnxruntime==1.32.0"
TRIES = 3
BUILD_TIMEOUT_S = 1800


class NotRun(Exception):
    """A client cannot run here, and why."""


@dataclass
class Command:
    """How a client is started on one of the libraries."""

    argv: list
    env: dict
    cwd: Path
    read: object = field(default=lambda text: text)
    """Turns what it prints into lines "what = words"."""
    may_fail: bool = False
    """Whether its exit status counts: not for suites, some tests of which fail everywhere."""


def last_line(text):
    """The last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


class Work:
    """The cache folder, and the libraries that are compared."""

    def __init__(self, cache, build):
        self.cache = cache
        self.build = build
        self.models = cache / "models"
        cache.mkdir(parents=True, exist_ok=True)

    def tool(self, name):
        """Path of a program, which has to be on PATH."""
        path = shutil.which(name)
        if path is None:
            raise NotRun(f"there is no {name} on PATH")
        return path

    def call(self, argv, cwd=None, env=None, tries=1):
        """Run a command that has to work; downloads are tried again."""
        for attempt in range(tries):
            done = subprocess.run(
                [str(word) for word in argv],
                cwd=cwd,
                env={**os.environ, **(env or {})},
                capture_output=True,
                text=True,
                timeout=BUILD_TIMEOUT_S,
                check=False,
            )
            if done.returncode == 0:
                return done.stdout
            if attempt + 1 < tries:
                time.sleep(5 * (attempt + 1))
        words = " ".join(Path(str(word)).name for word in argv[:3])
        log = self.cache / "failed.log"
        log.write_text(done.stdout + done.stderr)
        raise NotRun(f"'{words}' failed: {last_line(done.stderr or done.stdout)} (all in {log})")

    def folder(self, name):
        """A folder of the cache."""
        path = self.cache / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def once(self, name, make):
        """A folder of the cache that `make` fills, unless an earlier run did."""
        path = self.cache / name
        if path.exists():
            return path
        partial = path.with_name(path.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        make(partial)
        partial.rename(path)
        return path

    def wheel(self, *requirements):
        """Folder of Python packages from their index, without what they depend on."""
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target"]
        return self.once(
            f"python/{'+'.join(requirements)}",
            lambda path: self.call([*pip, path, *requirements], tries=TRIES),
        )

    def project(self, name):
        """A copy of a project of this folder in the cache, for tools that build into the source."""
        target = self.folder(f"projects/{name}")
        shutil.copytree(HERE / name, target, dirs_exist_ok=True)
        return target

    def library(self, side):
        """Path of the shared library of one side."""
        if side == "reference":
            capi = self.wheel(REFERENCE) / "onnxruntime/capi"
            return next(capi.glob("libonnxruntime.so.*"))
        path = self.build / "lib/libonnxruntime.so.1"
        if not path.exists():
            raise NotRun(f"there is no {path}")
        return path.resolve()

    def library_folder(self, side):
        """A folder that has the library of one side under both of its usual names."""
        folder = self.folder(f"libraries/{side}")
        for name in ("libonnxruntime.so", "libonnxruntime.so.1"):
            link = folder / name
            link.unlink(missing_ok=True)
            link.symlink_to(self.library(side))
        return folder

    def environment(self, **more):
        """Environment of a client: ours without what points at another library."""
        env = {k: v for k, v in os.environ.items() if k not in ("ORT_DYLIB_PATH", "LD_PRELOAD")}
        return {**env, "LC_ALL": "C.UTF-8", **{k: str(v) for k, v in more.items()}}

#!/usr/bin/env python3
"""Style and structure as a test: reads the tree and prints "path:line: rule: what to do instead".

    tidy.py [ROOT]          the exit status is 0 if nothing is wrong; warnings do not count

What is not checked here is not argued about in a review. Each rule has its own test in
tests/tools/test_tidy.py.
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

# Folder below src/ -> the folders that it may include, besides base and itself. This is the table
# of docs/architecture.md; a test compares the two.
MAY_INCLUDE = {
    "base": "",
    "ir": "",
    "kernels": "",
    "onnx": "ir",
    "ops": "ir",
    "passes": "ir ops",
    "plan": "ir",
    "weights": "ir",
    "ep": "ir weights",
    "exec": "ir plan ep",
    "context": "ir onnx weights ep",
    "cpu": "ir ops passes plan weights kernels ep exec",
    "placement": "ir plan ep",
    "session": "ir onnx ops passes plan weights ep exec context placement",
    "report": "ir plan placement context session",
    "capi": "ir ep session report",
    "plugin_host": "ir ep capi",
    "plugin": "ir ops passes weights ep exec context cpu",
    "lib": "session capi plugin_host cpu",
    "cli": "",
}

LINE_LENGTH = 100
FILE_LINES = 600
FUNCTION_LINES = 80
FILE_BYTES = 1 << 20

CPP = {".cpp", ".h", ".inc"}
CODE = CPP | {".py", ".cmake", ".sh"}
TEXT = CODE | {".md", ".txt", ".json", ".toml", ".yaml", ".yml", ".manifest", ""}
# Files that state the rules have to spell what they ban.
RULE_FILES = {"tools/tidy.py", "tests/tools/test_tidy.py"}


@dataclass(frozen=True)
class Ban:
    """A pattern that must not stand in C++ code.

    It may in files whose path starts with one of `allowed` (`*` stands for anything) and on lines
    that match `unless`.
    """

    pattern: re.Pattern
    advice: str
    allowed: tuple
    unless: re.Pattern


def ban(pattern, advice, *allowed, unless="$^"):
    """Row of BANS."""
    return Ban(re.compile(pattern), advice, allowed, re.compile(unless))


BANS = (
    ban(
        r"std::(cout|cerr|clog)\b|(?<![\w:.>])(std::)?f?(printf|puts|putchar)\s*\(",
        "only cli/ prints; use the log sink",
        "src/cli/",
        "src/base/log.",
    ),
    ban(r"(?<![\w.>])(std::)?(abort|terminate|_exit)\s*\(", "return a Status"),
    ban(r"(?<![\w.>:])(std::)?(quick_)?exit\s*\(", "return a Status", "src/cli/"),
    # protozero's way to stop reading; caught where the file is read
    ban(r"\bthrow\b", "return a Status", "src/onnx/wire.h"),
    # the pool carries them from its threads to the caller's
    ban(
        r"\bcatch\s*\(",
        "exceptions end in onnx/ and at the C boundary",
        "src/base/thread_pool.cpp",
        "src/onnx/",
        "src/capi/",
        "src/plugin/",
        "src/plugin_host/",
        "src/lib/",
        "src/cli/",
    ),
    ban(
        r"\bnew\s+[\w:]|\bdelete\s+[\w(*]|\bdelete\s*\[\]",
        "use values or std::make_unique; handles of the C boundary may be new",
        "src/capi/",
        "src/plugin/",
        "src/plugin_host/",
        "src/lib/",
        "src/ir/tensor.cpp",  # arrays of strings that may fail to be allocated
        "src/ops/schema.cpp",  # tables that are never destroyed
        "src/cpu/registry.cpp",
        "src/base/thread_pool.cpp",  # threads of a process that forked
        # Never destroyed, so that late threads may use it; or owned at once (private constructors).
        unless=r"\bstatic\b.*= \*?new\b|_ptr<.*>\s*\w*\(new\b",
    ),
    ban(r"\busing\s+namespace\s+std\b", "name what you use"),
    ban(r"#\s*include\s*<(iostream|regex)>", "too heavy a header; use fmt and the log sink"),
    ban(
        r"#\s*include\s*<(\w*intrin|arm_neon)\.h>",
        "intrinsics belong into kernels/ISA/",
        "src/kernels/avx2/",
        "src/kernels/avx512/",
        "src/kernels/neon/",
        "src/kernels/*_impl.h",  # included by the folders above
        unless="<emmintrin.h>",  # SSE2 is part of every x86-64
    ),
    ban(r"<emmintrin\.h>", "intrinsics belong into kernels/", "src/kernels/"),
    ban(r"#\s*include\s*[<\"]protozero/", "only onnx/ reads protobuf", "src/onnx/"),
)

# What speaks of one machine, or of unfinished work, has no place in any file.
EVERYWHERE = (
    (re.compile(r"\b(TODO|FIXME|XXX)\b"), "finish it, or file an issue"),
    (re.compile(r"(?<![\w.])/(work|root|home)/\w"), "a path of one machine"),
    (
        re.compile(r"pypi\.org|pythonhosted\.org|registry\.npmjs|deb\.debian\.org|proxy\.golang"),
        "let the package tools choose their registry",
    ),
)

INCLUDE = re.compile(r'#\s*include\s*"([\w./-]+)"')
STRING_OR_COMMENT = re.compile(
    r'R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
    r"|//[^\n]*|/\*.*?\*/",
    re.DOTALL,
)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def without_comments(text):
    """The text with comments and string contents blanked; lines keep their numbers."""

    def blank(match):
        """Spaces and newlines in place of a comment; an empty literal in place of a string."""
        found = match.group()
        newlines = "\n" * found.count("\n")
        return newlines + ("" if found.startswith("/") else '""')

    return STRING_OR_COMMENT.sub(blank, text)


def check_layers(path, text):
    """A folder of src/ includes only what its row allows."""
    parts = path.split("/")
    if parts[0] != "src" or len(parts) < 3:
        return
    folder = parts[1]
    if folder not in MAY_INCLUDE:
        yield 1, "layer", f"{folder}/ has no row in the table of tools/tidy.py"
        return
    allowed = {"base", folder, *MAY_INCLUDE[folder].split()}
    if folder == "cli":
        allowed = {"cli"}
    for number, line in enumerate(text.splitlines(), 1):
        if match := INCLUDE.match(line.strip()):
            target = match.group(1).split("/")[0]
            if target in MAY_INCLUDE and target not in allowed:
                yield number, "layer", f"{folder}/ may not include {target}/"


def check_bans(path, text):
    """No banned construct in the C++ of src/."""
    if not path.startswith("src/"):
        return
    raw = text.splitlines()
    for number, line in enumerate(without_comments(text).splitlines(), 1):
        raw_include = line.lstrip().startswith("#")
        source = raw[number - 1] if raw_include else line
        for row in BANS:
            if any(fnmatch(path, f"{start}*") for start in row.allowed):
                continue
            if row.unless.search(source):
                continue
            if row.pattern.search(source):
                yield number, "banned", row.advice


def check_header(path, text):
    """A header begins with #pragma once."""
    if path.endswith(".h"):
        lines = [line for line in without_comments(text).splitlines() if line.strip()]
        if not lines or lines[0].strip() != "#pragma once":
            yield 1, "header", "the first line of code must be #pragma once"


def check_lines(path, text):
    """Lines are short, without trailing blanks, and code has no tabs."""
    suffix = Path(path).suffix
    for number, line in enumerate(text.splitlines(), 1):
        if suffix in CODE and len(line) > LINE_LENGTH and " " in line.strip():
            yield number, "line", f"{len(line)} columns; {LINE_LENGTH} are allowed"
        if line != line.rstrip() and suffix != ".md":
            yield number, "line", "blanks at the end"
        if suffix in CODE and "\t" in line:
            yield number, "line", "a tab"
    if text and not text.endswith("\n"):
        yield text.count("\n") + 1, "line", "no newline at the end"


def check_everywhere(path, text):
    """Nothing unfinished and nothing about one machine, in any text."""
    if path in RULE_FILES:
        return
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, advice in EVERYWHERE:
            if pattern.search(line):
                yield number, "text", advice


def check_functions(path, text):
    """Functions fit on a screen. A function starts in column 0, as the formatter puts it."""
    if not path.startswith(("src/", "python/")):
        return
    start = None
    previous = ""
    for number, line in enumerate(without_comments(text).splitlines(), 1):
        opens = line.endswith(" {") and not line.endswith("= {") and line[0] not in " }"
        if opens and start is None and "(" in previous + line:
            start = number
        elif line.startswith("}") and start is not None:
            if number - start + 1 > FUNCTION_LINES:
                length = number - start + 1
                yield start, "function", f"{length} lines; {FUNCTION_LINES} are allowed"
            start = None
        previous = line


def check_links(path, text, root):
    """Links inside the tree lead somewhere."""
    if not path.endswith(".md"):
        return
    for number, line in enumerate(text.splitlines(), 1):
        for target in LINK.findall(line):
            if "://" in target or target.startswith("mailto:"):
                continue
            if not (root / path).parent.joinpath(target).exists():
                yield number, "link", f"{target} does not exist"


def check_file(root, path, text):
    """All findings of one file as (line, rule, advice)."""
    if Path(path).suffix in CPP:
        yield from check_layers(path, text)
        yield from check_bans(path, text)
        yield from check_header(path, text)
        yield from check_functions(path, text)
    yield from check_lines(path, text)
    yield from check_everywhere(path, text)
    yield from check_links(path, text, root)


def architecture_table(text):
    """Rows of the table "folder | what lives there | may include" in a markdown page."""
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 3 and re.fullmatch(r"`\w+/`", cells[0]):
            allowed = "" if cells[2] in ("–", "the public C API only") else cells[2]
            rows[cells[0].strip("`/")] = allowed
    return rows


def check_tree(root, texts):
    """Findings that need more than one file, as (path, line, rule, advice)."""
    page = "docs/architecture.md"
    if page in texts:
        rows = architecture_table(texts[page])
        for folder in sorted(set(rows) | set(MAY_INCLUDE)):
            if rows.get(folder) != MAY_INCLUDE.get(folder):
                yield page, 1, "table", f"the row of {folder}/ differs from tools/tidy.py"
    linked = set()
    for path, text in texts.items():
        if path.endswith(".md"):
            for target in LINK.findall(text):
                resolved = (root / path).parent.joinpath(target).resolve()
                if resolved.is_relative_to(root):
                    linked.add(resolved.relative_to(root).as_posix())
    for path in texts:
        parent = path.rsplit("/", 1)[0]
        if path.startswith("docs/") and path.endswith(".md") and not {path, parent} & linked:
            yield path, 1, "docs", "no other page links to this one"


def list_files(root):
    """Paths of the tree: what git tracks or would track, or everything outside a repository."""
    command = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode == 0:
        names = done.stdout.decode().split("\0")
        return sorted(name for name in names if name and (root / name).is_file())
    skipped = {".git", "build", ".venv", "models", "__pycache__"}
    files = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in files if not skipped & set(path.parts))


def run(root):
    """Findings of the whole tree: (errors, warnings), as printed lines."""
    errors = []
    warnings = []
    texts = {}
    for path in list_files(root):
        size = (root / path).stat().st_size
        if size > FILE_BYTES:
            errors.append(f"{path}:1: size: {size} bytes; data of this size is made or fetched")
        if Path(path).suffix not in TEXT:
            continue
        try:
            texts[path] = (root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for line, rule, advice in check_file(root, path, texts[path]):
            errors.append(f"{path}:{line}: {rule}: {advice}")
        lines = texts[path].count("\n")
        if Path(path).suffix in CPP | {".py"} and lines > FILE_LINES:
            warnings.append(f"{path}:1: warning: {lines} lines; aim at {FILE_LINES}")
    for path, line, rule, advice in check_tree(root, texts):
        errors.append(f"{path}:{line}: {rule}: {advice}")
    return errors, warnings


def main():
    """Check a tree and report."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    errors, warnings = run(root)
    for line in [*warnings, *errors]:
        print(line)
    print(f"tidy: {len(errors)} errors, {len(warnings)} warnings")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()

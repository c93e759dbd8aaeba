#!/usr/bin/env python3
"""Make the public C header, the function tables and their stubs from src/capi/api.manifest.

    gen_api.py MANIFEST OUTPUT_FOLDER    write include/sardonyx/c_api.h, capi/api_declarations.h,
                                         capi/api_tables.h, capi/api_tables.cpp
    gen_api.py MANIFEST --docs FILE      write the coverage page only
    gen_api.py MANIFEST --check FILE --headers FOLDER
                                         write a source file that compiles only if the manifest
                                         agrees with the onnxruntime_c_api.h in that folder

The manifest's head explains its grammar. Files are rewritten only when their text changes, so that
a row that becomes `implemented` does not compile the world again.
"""

import argparse
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

FUNCTION = re.compile(r"(?P<result>.+?[ *])(?P<name>\w+)\((?P<parameters>.*)\)")
FIELD = re.compile(r"(?P<type>.+?[ *])(?P<name>\w+)(?P<array>\[\d+\])?( = (?P<default>.+))?")
SINCE = re.compile(r" @(\d+)$")


class ManifestError(Exception):
    """A line of the manifest that cannot be understood."""


@dataclass
class Function:
    """Name and types of a C function."""

    name: str
    result: str
    parameters: str

    def pointer(self, name=None):
        """Declarator of a pointer to such a function."""
        return f"{self.result}(ORT_API_CALL* {name or self.name})({self.parameters})"

    def declaration(self):
        """Declaration without a semicolon."""
        return f"{self.result} {self.name}({self.parameters})"

    def unnamed(self):
        """Parameter types only, for a body that uses none."""
        if self.parameters == "void":
            return ""
        return ", ".join(re.sub(r"(?<=[ *])\w+$", "", p).strip() for p in self.split())

    def split(self):
        """The parameters one by one."""
        return [parameter.strip() for parameter in self.parameters.split(",")]


@dataclass
class Row:
    """One slot of a table."""

    slot: int
    since: int
    state: str
    function: Function
    reason: str = ""


@dataclass
class Table:
    """A struct of function pointers that the library hands out."""

    name: str
    namespace: str
    rows: list = field(default_factory=list)


@dataclass
class Struct:
    """A struct or union whose members both sides know."""

    keyword: str
    name: str
    members: list = field(default_factory=list)
    since: list = field(default_factory=list)


@dataclass
class Manifest:
    """Everything the file says."""

    numbers: dict = field(default_factory=dict)
    enums: dict = field(default_factory=dict)
    handles: list = field(default_factory=list)
    aliases: list = field(default_factory=list)
    callbacks: list = field(default_factory=list)
    structs: list = field(default_factory=list)
    tables: list = field(default_factory=list)
    exports: list = field(default_factory=list)


def parse_function(text):
    """Read RETURN NAME(PARAMETERS)."""
    match = FUNCTION.fullmatch(text)
    if not match:
        raise ManifestError(f"expected RETURN NAME(PARAMETERS), found '{text}'")
    return Function(match["name"], match["result"].strip(), match["parameters"])


def parse_top(manifest, text):
    """Read a line without indent; returns what its indented lines belong to."""
    word, _, rest = text.partition(" ")
    if word in ("api_version", "sardonyx_api_version", "release"):
        manifest.numbers[word] = rest
    elif word == "enum":
        return manifest.enums.setdefault(rest, [])
    elif word == "handle":
        manifest.handles.append(rest)
    elif word == "alias":
        manifest.aliases.append(FIELD.fullmatch(rest))
    elif word in ("callback", "export"):
        kept = manifest.callbacks if word == "callback" else manifest.exports
        kept.append(parse_function(rest))
    elif word in ("struct", "union"):
        manifest.structs.append(Struct(word, rest))
        return manifest.structs[-1]
    elif word == "table":
        manifest.tables.append(Table(*rest.split(" ")))
        return manifest.tables[-1]
    else:
        raise ManifestError(f"unknown item '{word}'")
    return None


def parse_row(table, text):
    """Read SLOT SINCE STATE FUNCTION into a table."""
    text, _, reason = text.partition(" -- ")
    slot, since, state, function = text.split(" ", 3)
    if int(slot) != len(table.rows):
        raise ManifestError(f"{table.name}: expected slot {len(table.rows)}, found {slot}")
    if state not in ("stub", "implemented"):
        raise ManifestError(f"{table.name}: a state is stub or implemented, found '{state}'")
    if reason and state != "stub":
        raise ManifestError(f"{table.name}: slot {slot} is implemented, but says why it is not")
    table.rows.append(Row(int(slot), int(since), state, parse_function(function), reason))


def parse(path):
    """Read a manifest."""
    manifest = Manifest()
    owner = None
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            if not line.startswith(" "):
                owner = parse_top(manifest, text)
            elif isinstance(owner, Table):
                parse_row(owner, text)
            elif isinstance(owner, Struct):
                since = SINCE.search(text)
                owner.members.append(SINCE.sub("", text))
                owner.since.append(int(since[1]) if since else 1)
            elif isinstance(owner, list):
                owner.append(tuple(text.split(" ")))
            else:
                raise ManifestError("an indented line that belongs to nothing")
        except (ManifestError, ValueError, TypeError) as error:
            sys.exit(f"{path}:{number}: {error}")
    return manifest


# --- the public header

HEADER_TOP = """\
// Generated from src/capi/api.manifest. The C interface of libonnxruntime.so.1 as Sardonyx serves
// it: the names and layouts of ONNX Runtime's C API, so that source code and binaries fit both.
#ifndef SARDONYX_C_API_H
#define SARDONYX_C_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORT_API_VERSION {api_version}
#define SARDONYX_API_VERSION {sardonyx_api_version}
#define SARDONYX_ORT_RELEASE "{release}"

#ifdef _WIN32
#define ORT_API_CALL __stdcall
#define ORT_EXPORT
#define ORT_MUST_USE_RESULT
#define ORTCHAR_T wchar_t
#define ORT_TSTR(text) L##text
#else
#define ORT_API_CALL
#define ORT_EXPORT __attribute__((visibility("default")))
#define ORT_MUST_USE_RESULT __attribute__((warn_unused_result))
#define ORTCHAR_T char
#define ORT_TSTR(text) text
#endif

#ifdef __cplusplus
#define NO_EXCEPTION noexcept
#define SARDONYX_DEFAULT(value) = value
extern "C" {{
#else
#define NO_EXCEPTION
#define SARDONYX_DEFAULT(value)
#endif
"""

HEADER_BOTTOM = """
#undef SARDONYX_DEFAULT
#ifdef __cplusplus
}
#endif
#endif
"""


def enum_text(name, rows):
    """An enumeration."""
    values = {value: "(-2147483647 - 1)" for _, value in rows if int(value) == -(2**31)}
    lines = [f"  {key} = {values.get(value, value)}" for key, value in rows]
    return f"typedef enum {name} {{\n" + ",\n".join(lines) + f"\n}} {name};\n"


def member_text(member):
    """One member of a struct."""
    if "(" in member:
        return f"  {parse_function(member).pointer()};"
    match = FIELD.fullmatch(member)
    default = f" SARDONYX_DEFAULT({match['default']})" if match["default"] else ""
    return f"  {match['type'].strip()} {match['name']}{match['array'] or ''}{default};"


def struct_text(struct):
    """A struct with its members."""
    lines = [member_text(member) for member in struct.members]
    return f"{struct.keyword} {struct.name} {{\n" + "\n".join(lines) + "\n};\n"


def table_text(table):
    """A table of function pointers, with slot and version of each."""
    lines = [
        f"  {row.function.pointer()} NO_EXCEPTION;  // {row.slot}, since {row.since}"
        for row in table.rows
    ]
    return f"struct {table.name} {{\n" + "\n".join(lines) + "\n};\n"


def header_text(manifest):
    """The public header."""
    parts = [HEADER_TOP.format(**manifest.numbers)]
    parts += [enum_text(name, rows) for name, rows in manifest.enums.items()]
    structs = [(struct.keyword, struct.name) for struct in manifest.structs]
    names = [("struct", name) for name in manifest.handles]
    names += structs + [("struct", table.name) for table in manifest.tables]
    parts.append("\n".join(f"typedef {keyword} {name} {name};" for keyword, name in names) + "\n")
    for alias in manifest.aliases:
        parts.append(f"typedef {alias['type'].strip()} {alias['name']};\n")
    parts += [f"typedef {callback.pointer()};\n" for callback in manifest.callbacks]
    parts += [struct_text(struct) for struct in manifest.structs]
    parts += [table_text(table) for table in manifest.tables]
    for export in manifest.exports:
        name = f"ORT_API_CALL {export.name}"
        text = f"ORT_EXPORT {export.result} {name}({export.parameters}) NO_EXCEPTION;\n"
        parts.append(text)
    return "\n".join(parts) + HEADER_BOTTOM


# --- the library's side


def in_namespaces(table, lines):
    """Lines inside the namespace of a table."""
    name = f"sardonyx::{table.namespace}"
    return f"namespace {name} {{\n" + "\n".join(lines) + f"\n}}  // namespace {name}\n"


def declarations_text(manifest):
    """Declarations of the functions that src/capi/ implements."""
    parts = [
        """\
// Generated from src/capi/api.manifest: the functions that are implemented. Their bodies are in
// src/capi/, in the namespaces used here.
#pragma once

#include "sardonyx/c_api.h"
"""
    ]
    for table in manifest.tables:
        rows = [row for row in table.rows if row.state == "implemented"]
        lines = [f"{row.function.declaration()} noexcept;" for row in rows]
        if lines:
            parts.append(in_namespaces(table, lines))
    return "\n".join(parts)


def variable_name(table):
    """Name of the function that hands out a table: OrtEpApi -> ep_api_table."""
    words = re.findall("[A-Z][a-z]+", table.name)
    return "_".join(word.lower() for word in words) + "_table"


def tables_header_text(manifest):
    """How the rest of the library reaches the tables."""
    lines = [
        f"/// The one {table.name} of this library: {len(table.rows)} functions, none null.\n"
        f"const ::{table.name}& {variable_name(table)}();"
        for table in manifest.tables
    ]
    top = (
        '// Generated from src/capi/api.manifest.\n#pragma once\n\n#include "sardonyx/c_api.h"\n\n'
    )
    text = "namespace sardonyx::capi {\n\n" + "\n\n".join(lines)
    return top + text + "\n\n}  // namespace sardonyx::capi\n"


def stub_text(table, row):
    """A body for a function that is not implemented."""
    function = row.function
    if function.result == "OrtStatus*":
        body = f'return not_implemented("{table.name}::{function.name}");'
    elif function.result == "void":
        body = ""
    else:
        body = f"return {function.result}{{}};" if "*" not in function.result else "return nullptr;"
    return f"{function.result} {function.name}({function.unnamed()}) noexcept {{ {body} }}"


def table_definition_text(table):
    """Stubs, the table and the checks of its layout."""
    stubs = [stub_text(table, row) for row in table.rows if row.state == "stub"]
    inner = f"sardonyx::{table.namespace}"
    rows = [
        f"    {inner}::{'stubs::' if row.state == 'stub' else ''}{row.function.name},"
        for row in table.rows
    ]
    checks = [
        f"static_assert(offsetof({table.name}, {row.function.name}) == {row.slot} * sizeof(void*));"
        for row in table.rows
    ]
    size = f"static_assert(sizeof({table.name}) == {len(table.rows)} * sizeof(void*));"
    parts = []
    if stubs:
        name = f"{inner}::stubs"
        text = "\nusing capi::not_implemented;\n" + "\n".join(stubs)
        parts.append(f"namespace {name} {{\nnamespace {{{text}\n}}  // namespace\n}}\n")
    variable = variable_name(table)
    parts.append(
        f"const ::{table.name}& sardonyx::capi::{variable}() {{\n"
        f"  static constexpr ::{table.name} kTable = {{\n" + "\n".join(rows) + "\n  };\n"
        "  return kTable;\n}\n"
    )
    return "\n".join(parts) + "\n" + "\n".join([*checks, size]) + "\n"


def tables_text(manifest):
    """The source file with all tables."""
    parts = [
        """\
// Generated from src/capi/api.manifest.
#include "capi/api_tables.h"

#include <cstddef>

#include "capi/api_declarations.h"
#include "capi/status.h"
"""
    ]
    parts += [table_definition_text(table) for table in manifest.tables]
    return "\n".join(parts)


# --- a check of the manifest against ONNX Runtime's own header, when a package provides one

CHECK_TOP = """\
// Generated from src/capi/api.manifest: compiles if and only if the manifest agrees with the
// onnxruntime_c_api.h on the include path, as far as that header's version goes.
#include <onnxruntime_c_api.h>

#include <cstddef>
#include <type_traits>

using OrtParallelForBody = void(void*, size_t);

template <typename T>
struct Plain {
  using type = T;
};
template <typename R, typename... A>
struct Plain<R (*)(A...) noexcept> {
  using type = R (*)(A...);
};
template <typename T, typename Expected>
inline constexpr bool same = std::is_same_v<typename Plain<T>::type, Expected>;
"""


def check_function(owner, function, types):
    """Assertion that a member has the type that the manifest gives it."""
    text = f"{function.result}(*)({function.parameters})"
    text = re.sub(r"\bOrtParallelForBody\b", "OrtParallelForBody*", text)
    if any(name in text for name in types):
        return None
    return f"static_assert(same<decltype({owner}::{function.name}), {text}>);"


def check_struct(struct, known, types):
    """Assertions on those members of a struct that the header knows."""
    for member in struct.members:
        is_function = "(" in member
        name = parse_function(member).name if is_function else FIELD.fullmatch(member)["name"]
        if name not in known:
            continue
        if is_function:
            yield check_function(struct.name, parse_function(member), types) or ""
        else:
            yield f"static_assert(offsetof({struct.name}, {name}) < 4096);"


def check_text(manifest, headers):
    """Source of the check against the headers in a folder; what is newer than they is left out."""
    text = "".join(
        path.read_text(encoding="utf-8", errors="replace") for path in headers.glob("*.h")
    )
    version = int(re.search(r"#define ORT_API_VERSION (\d+)", text)[1])
    known = set(re.findall(r"\w+", re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)))
    new = {callback.name for callback in manifest.callbacks} - known
    new |= set(manifest.handles) - known
    lines = [CHECK_TOP]
    for name, rows in manifest.enums.items():
        lines += [
            f"static_assert(static_cast<long long>({key}) == {value});"
            for key, value in rows
            if key in known
        ]
        if name in known:
            lines.append(f"static_assert(sizeof({name}) == 4);")
    for struct in manifest.structs:
        if struct.name in known and not struct.name.startswith("OrtResourceCount"):
            lines += check_struct(struct, known, new)
    for table in manifest.tables:
        for row in table.rows if table.name in known else ():
            name = row.function.name
            # A macro of the header makes the names of functions that release handles.
            if row.since > version or not (name in known or name.startswith("Release")):
                continue
            lines.append(f"static_assert(offsetof({table.name}, {name}) == {row.slot} * 8);")
            lines.append(check_function(table.name, row.function, new) or "")
    return "\n".join(lines) + "\n"


# --- the coverage page


# What calls the interface, and the tests that run it; a file of the tests stands for itself.
CALLERS = {
    "tests": None,
    "examples/plugin_ep": "tests/python/test_compiler_plugins.py",
    "src/plugin": "tests/python/test_own_plugin.py",
    "python/src": "tests/python",
    "src/cli": "tests/cli",
}
# It calls every function.
NULLS = "tests/abi/test_nulls.py"
TESTS_SHOWN = 2


def callers(root):
    """Pairs of a test and the words in the file that it runs, the tests' own files first."""
    found = []
    for folder, test in CALLERS.items():
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in {".c", ".cpp", ".h", ".py", ".go", ".rs", ".java", ".js"}:
                continue
            name = test or path.relative_to(root).as_posix()
            if name != NULLS:
                found.append((name, set(re.findall(r"\w+", path.read_text(encoding="utf-8")))))
    return found


def tests_text(function, found):
    """The tests that call a function, as words of a table."""
    names = list(dict.fromkeys(test for test, words in found if function in words))
    names = names[:TESTS_SHOWN] or [NULLS]
    return ", ".join(name.removeprefix("tests/") for name in names)


def docs_text(manifest, root):
    """What is implemented, as Markdown, and which tests below the root call it."""
    found = callers(root)
    summary = (
        "# The binary interface\n\n"
        "Generated: `tools/gen_api.py src/capi/api.manifest --docs docs/abi.md`.\n\n"
        f"The library is `libonnxruntime.so.1`. `GetVersionString` answers "
        f"`{manifest.numbers['release']}`; `GetApi` serves versions 1 to "
        f"{manifest.numbers['api_version']} with one table. No slot is null: a function that is "
        "not implemented returns `ORT_NOT_IMPLEMENTED` with its own name, one without a status "
        "does nothing or returns null.\n\n"
        f"Tests are below `tests/`, at most {TESTS_SHOWN} are named; `{NULLS}` calls every "
        "function with wrong arguments. `make test-clients` and `make test-plugins` have real "
        "programs and plugins call most of them.\n\n"
        "| table | functions | implemented |\n|---|---|---|"
    )
    for table in manifest.tables:
        done = sum(row.state == "implemented" for row in table.rows)
        summary += f"\n| [{table.name}](#{table.name.lower()}) | {len(table.rows)} | {done} |"
    parts = [summary]
    for table in manifest.tables:
        lines = [
            f"\n## {table.name}\n",
            "| slot | since | function | implemented | tested by |",
            "|---|---|---|---|---|",
        ]
        for row in table.rows:
            mark = "yes" if row.state == "implemented" else f"stub: {row.reason or 'not yet'}"
            tests = tests_text(row.function.name, found)
            lines.append(f"| {row.slot} | {row.since} | `{row.function.name}` | {mark} | {tests} |")
        parts.append("\n".join(lines))
    return "\n".join(parts) + "\n"


def write(path, text):
    """Write a file unless it holds that text already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main():
    """Command line of the script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("manifest")
    parser.add_argument("output", nargs="?", type=Path, help="folder for the generated files")
    parser.add_argument("--check", type=Path, help="write a check against ONNX Runtime's header")
    parser.add_argument("--headers", type=Path, help="folder of the header to check against")
    parser.add_argument("--docs", type=Path, help="write the coverage page to this file only")
    arguments = parser.parse_args()
    manifest = parse(arguments.manifest)
    if arguments.docs:
        write(arguments.docs, docs_text(manifest, Path(__file__).resolve().parents[1]))
        return
    if arguments.check:
        if not arguments.headers:
            parser.error("--check needs --headers FOLDER")
        write(arguments.check, check_text(manifest, arguments.headers))
        return
    if not arguments.output:
        parser.error("name an output folder, or --docs FILE, or --check FILE")
    write(arguments.output / "include/sardonyx/c_api.h", header_text(manifest))
    write(arguments.output / "capi/api_declarations.h", declarations_text(manifest))
    write(arguments.output / "capi/api_tables.h", tables_header_text(manifest))
    write(arguments.output / "capi/api_tables.cpp", tables_text(manifest))


if __name__ == "__main__":
    main()

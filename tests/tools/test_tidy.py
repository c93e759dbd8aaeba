"""Every rule of tools/tidy.py finds what it bans and nothing in good code."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import tidy


def findings(tmp_path, path, text):
    """Rules that the text breaks as the file `path` of an otherwise empty tree."""
    target = tmp_path / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    errors, _ = tidy.run(tmp_path)
    return [line.removeprefix(f"{path}:") for line in errors]


LAYERS = [
    ("src/kernels/a.cpp", '#include "session/a.h"', "1: layer: kernels/ may not include session/"),
    ("src/base/a.cpp", '#include "ir/a.h"', "1: layer: base/ may not include ir/"),
    ("src/placement/a.h", '#pragma once\n#include "cpu/a.h"', "2: layer: placement/ may not"),
    ("src/cli/a.cpp", '#include "base/status.h"', "1: layer: cli/ may not include base/"),
    ("src/novel/a.cpp", "int x;", "1: layer: novel/ has no row"),
]


@pytest.mark.parametrize(("path", "text", "expected"), LAYERS)
def test_a_folder_includes_only_what_its_row_names(tmp_path, path, text, expected):
    """The line names both folders."""
    found = findings(tmp_path, path, text + "\n")
    assert any(line.startswith(expected) for line in found), found


def test_allowed_includes_are_quiet(tmp_path):
    """Base, the folder itself, the row's folders and other libraries."""
    text = '#include "cpu/a.h"\n#include "base/a.h"\n#include "ir/b.h"\n#include <vector>\n'
    assert findings(tmp_path, "src/cpu/a.cpp", text) == []


BANNED = [
    ("src/ir/a.cpp", 'void f() { printf("x"); }'),
    ("src/ir/a.cpp", 'void f() { std::fprintf(stderr, "x"); }'),
    ("src/ir/a.cpp", "void f() { std::cout << 1; }"),
    ("src/ir/a.cpp", "void f() { abort(); }"),
    ("src/ir/a.cpp", "void f() { std::terminate(); }"),
    ("src/ir/a.cpp", "void f() { std::exit(1); }"),
    ("src/ir/a.cpp", "void f() { throw 1; }"),
    ("src/onnx/a.cpp", "void f() { throw std::bad_alloc(); }"),
    ("src/ir/a.cpp", "void f() { try { g(); } catch (...) {} }"),
    ("src/ir/a.cpp", "int* f() { return new int; }"),
    ("src/ir/a.cpp", "void f(int* p) { delete p; }"),
    ("src/ir/a.cpp", "using namespace std;"),
    ("src/ir/a.cpp", "#include <iostream>"),
    ("src/kernels/a.cpp", "#include <immintrin.h>"),
    ("src/cpu/a.cpp", "#include <xmmintrin.h>"),
    ("src/cpu/a.cpp", "#include <emmintrin.h>"),
    ("src/ir/a.cpp", "#include <protozero/pbf_reader.hpp>"),
]


@pytest.mark.parametrize(("path", "text"), BANNED)
def test_banned_constructs_are_found(tmp_path, path, text):
    """One finding with the rule's name and the line's number."""
    found = findings(tmp_path, path, "// a file\n" + text + "\n")
    assert [line.split(":")[:2] for line in found] == [["2", " banned"]], found


ALLOWED = [
    ("src/cli/a.cpp", 'void f() { std::printf("x"); std::exit(2); }'),
    ("src/base/log.cpp", 'void f() { std::fprintf(stderr, "x"); }'),
    ("src/ir/a.cpp", 'int f() { return std::snprintf(b, n, "x"); }'),
    ("src/ir/a.cpp", "// we never throw, abort() or print with printf(x)"),
    ("src/ir/a.cpp", 'const char* s = "throw new exit(1) // catch (";'),
    ("src/ir/a.cpp", 'const char* s = R"(throw "x" abort())";'),
    ("src/ir/a.cpp", "struct A { A(const A&) = delete; int thrown = 0; };"),
    ("src/ir/a.cpp", "auto* f(void* p) { return new (p) int; }"),
    ("src/ir/a.cpp", "Holder& f() { static Holder* h = new Holder; return *h; }"),
    ("src/ir/a.cpp", "std::unique_ptr<A> a(new A); auto b = std::unique_ptr<A>(new A);"),
    ("src/ir/a.cpp", "void f(Loop& loop) { loop.exit(); loop->abort(); }"),
    ("src/onnx/a.cpp", "#include <protozero/pbf_reader.hpp>"),
    ("src/onnx/a.cpp", "void f() { try { g(); } catch (const protozero::exception&) {} }"),
    ("src/kernels/avx2/a.cpp", "#include <immintrin.h>"),
    ("src/kernels/a_impl.h", "#pragma once\n#include <immintrin.h>"),
    ("src/kernels/a.cpp", "#include <emmintrin.h>"),
    ("src/ir/a.cpp", "const int n = 1'000'000; const char q = '\"'; int newest = n;"),
]


@pytest.mark.parametrize(("path", "text"), ALLOWED)
def test_what_only_looks_banned_is_quiet(tmp_path, path, text):
    """Allowed places, comments, strings and similar names."""
    assert findings(tmp_path, path, text + "\n") == []


TEXTS = [
    ("src/ir/a.h", "int x;\n", "1: header"),
    ("src/ir/a.cpp", "// " + "x" * 98 + "\n", "1: line: 101 columns"),
    ("src/ir/a.cpp", "int x; \n", "1: line: blanks"),
    ("src/ir/a.cpp", "\tint x;\n", "1: line: a tab"),
    ("src/ir/a.cpp", "int x;", "1: line: no newline"),
    ("README.md", "see TODO\n", "1: text: finish it"),
    ("tests/a.py", "path = '/home/someone/x'\n", "1: text: a path of one machine"),
    ("a.txt", "https://" + "pypi" + ".org/simple\n", "1: text: let the package tools"),
    ("README.md", "[page](docs/none.md)\n", "1: link: docs/none.md does not exist"),
    ("docs/lonely.md", "# A page\n", "1: docs: no other page links to this one"),
    ("src/ir/a.cpp", "void f() {\n" + "  g();\n" * 79 + "}\n", "1: function: 81 lines"),
]


@pytest.mark.parametrize(("path", "text", "expected"), TEXTS)
def test_text_rules(tmp_path, path, text, expected):
    """Each rule gives exactly one finding."""
    found = findings(tmp_path, path, text)
    assert len(found) == 1, found
    assert found[0].startswith(expected)


def test_a_long_table_is_no_long_function(tmp_path):
    """Tables may be as long as they are."""
    text = "int f();\nconstexpr int kTable[] = {\n" + "  1,\n" * 200 + "};\n"
    assert findings(tmp_path, "src/ir/a.cpp", text) == []


def test_a_long_file_is_a_warning_only(tmp_path):
    """Length of files is advice."""
    (tmp_path / "src/ir").mkdir(parents=True)
    (tmp_path / "src/ir/a.cpp").write_text("int x;\n" * 601, encoding="utf-8")
    errors, warnings = tidy.run(tmp_path)
    assert errors == []
    assert warnings == ["src/ir/a.cpp:1: warning: 601 lines; aim at 600"]


def test_the_table_of_the_docs_is_the_table_of_the_tool():
    """docs/architecture.md and MAY_INCLUDE say the same."""
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert tidy.architecture_table(page) == tidy.MAY_INCLUDE


def test_a_differing_table_is_found(tmp_path):
    """Both directions: a wrong row and a missing one."""
    rows = "\n".join(
        f"| `{name}/` | x | {allowed or '–'} |"
        for name, allowed in tidy.MAY_INCLUDE.items()
        if name != "plan"
    ).replace("| `onnx/` | x | ir |", "| `onnx/` | x | ops |")
    (tmp_path / "README.md").write_text("[a](docs/architecture.md)\n", encoding="utf-8")
    found = findings(tmp_path, "docs/architecture.md", rows + "\n")
    assert [line for line in found if "row of onnx/" in line]
    assert [line for line in found if "row of plan/" in line]
    assert len(found) == 2, found


def test_the_table_has_no_cycle():
    """Every folder can be ordered after the ones that it includes."""
    done = set()
    left = {name: set(allowed.split()) for name, allowed in tidy.MAY_INCLUDE.items()}
    while left:
        ready = [name for name, allowed in left.items() if allowed <= done]
        assert ready, f"cycle among {sorted(left)}"
        for name in ready:
            done.add(name)
            del left[name]

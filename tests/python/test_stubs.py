"""The type stubs say what the package has."""

import ast
from pathlib import Path

import sardonyx

STUB = Path(sardonyx.__file__).with_name("__init__.pyi")


def declared():
    """Names that the stub declares, with the members of classes."""
    names = {}
    for item in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(item, ast.ClassDef):
            names[item.name] = {
                member.name if isinstance(member, ast.FunctionDef) else member.target.id
                for member in item.body
                if isinstance(member, (ast.FunctionDef, ast.AnnAssign))
            }
        elif isinstance(item, ast.FunctionDef):
            names[item.name] = set()
        elif isinstance(item, ast.ImportFrom):
            names.update({name.asname: set() for name in item.names if name.asname})
        elif isinstance(item, ast.Assign):
            names[item.targets[0].id] = set()
    return names


def test_every_public_name_is_declared_and_exists():
    names = declared()
    assert set(sardonyx.__all__) - set(names) == set()
    assert {name for name in names if not hasattr(sardonyx, name)} == set()


def test_every_declared_member_exists():
    objects = {"SessionOptions": sardonyx.SessionOptions(), "OrtArenaCfg": sardonyx.OrtArenaCfg()}
    objects["OrtEpContextDataBuffer"] = sardonyx.OrtEpContextDataBuffer()
    objects["RunOptions"] = sardonyx.RunOptions()
    objects["OrtExternalInitializerInfo"] = sardonyx.OrtExternalInitializerInfo("f", 0, 1)
    missing = [
        f"{name}.{member}"
        for name, members in declared().items()
        for member in members
        if not hasattr(objects.get(name, getattr(sardonyx, name)), member)
    ]
    assert missing == []


def test_everything_public_has_a_docstring():
    bare = [
        name
        for name in sardonyx.__all__
        if callable(getattr(sardonyx, name)) and not getattr(sardonyx, name).__doc__
    ]
    assert bare == []

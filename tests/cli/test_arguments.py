"""Arguments of the command: help, version, suggestions, exit status."""

import re

import pytest

COMMANDS = ("run", "inspect", "bench", "verify")


def test_the_version(sardonyx):
    """Name, version and the release whose interface it has."""
    done = sardonyx("--version")
    assert done.returncode == 0
    pattern = r"sardonyx \d+\.\d+\.\d+ \(interface of ONNX Runtime 1\.32\.0, \w+\)\n"
    assert re.fullmatch(pattern, done.stdout)


@pytest.mark.parametrize("command", [*COMMANDS, "compile", "cache"])
def test_help_shows_an_example_of_every_option(sardonyx, command):
    """Each long or short name of an option stands in the examples too."""
    done = sardonyx(command, "--help")
    assert done.returncode == 0
    options, examples = done.stdout.split("Examples:")
    for names in re.findall(r"^ +(-[-\w,]+)", options, re.MULTILINE):
        if "--help" in names:
            continue
        used = [name for name in names.split(",") if re.search(rf"{name}\b", examples)]
        assert used, f"{command}: no example of {names}"
    assert "Exit status" in re.sub(r"\s+", " ", examples)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rnu", "m.onnx"], "unknown command 'rnu'; did you mean 'run'?"),
        (["inpsect", "m.onnx"], "did you mean 'inspect'?"),
        (["run", "m.onnx", "--trheads", "2"], "option '--trheads'; did you mean '--threads'?"),
        (["bench", "m.onnx", "--sedonds=1"], "did you mean '--seconds'?"),
        (["run", "m.onnx", "-d", "batch"], "expected NAME=SIZE"),
        (["run", "m.onnx", "-i", "x.npy"], "expected NAME=FILE"),
        (["run", "m.onnx", "--threads", "none"], "--threads"),
        (["bench", "m.onnx", "-n", "5", "--seconds", "1"], "--seconds"),
        (["compile", "m.onnx"], "--output"),
        (["compile", "m.onnx", "-o", "d", "--level", "most"], "--level"),
        (["compile", "m.onnx", "-o", "d", "--weightless=some"], "--weightless"),
        (["compile", "m.onnx", "-o", "d", "-C", "key"], "expected KEY=VALUE"),
        (["compile", "m.onnx", "-o", "d", "--plugin", "lib.so"], "expected KEY=VALUE"),
        (["verify"], "MODEL"),
        (["cache"], "subcommand"),
        (["run"], "MODEL"),
        ([], "subcommand"),
    ],
)
def test_wrong_arguments_are_explained(sardonyx, arguments, message):
    """Status 2, a message with a suggestion, and where help is."""
    done = sardonyx(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "--help" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_models_that_cannot_be_read_are_named(sardonyx, tmp_path, command):
    """Status 1 for a missing file and for one that is no model."""
    (tmp_path / "text.onnx").write_text("this is no model")
    for name in ("missing.onnx", "text.onnx"):
        done = sardonyx(command, name)
        assert done.returncode == 1
        assert name in done.stderr

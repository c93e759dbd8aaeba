"""Compiled models whose sources or data changed: refused with the reason or compiled again.

Nothing here may give a wrong result: a session either says what is wrong, or gives what the source
gives as it is now.
"""

import os
import random
import re
import subprocess
import sys

import numpy as np
import onnx
import pytest
import sardonyx as sx
from onnx import TensorProto, helper, numpy_helper

WIDTH = 96
LAYERS = 4
X = np.random.default_rng(1).standard_normal((2, WIDTH)).astype(np.float32)
CONTAINER = "sardonyx_weights.bin"


def weight(seed, layer):
    """The first layer is that of all seeds."""
    chance = np.random.default_rng(1000 * seed * min(layer, 1) + layer)
    return chance.standard_normal((WIDTH, WIDTH)).astype(np.float32) / WIDTH**0.5


def write_model(path, seed, external=None):
    """A chain of products."""
    nodes, weights, last = [], [], "x"
    for i in range(LAYERS):
        weights.append(numpy_helper.from_array(weight(seed, i), f"w{i}"))
        nodes.append(helper.make_node("MatMul", [last, f"w{i}"], [f"y{i}"]))
        last = f"y{i}"
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", WIDTH]) for name in ("x", last)
    ]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = {"save_as_external_data": True, "location": external} if external else {}
    onnx.save(model, path, **options)


def options_of(**entries):
    """Session options with entries; a dot is written as two underscores."""
    options = sx.SessionOptions()
    for key, value in entries.items():
        options.add_session_config_entry(key.replace("__", "."), value)
    return options


def result(path, **entries):
    """The output of a model."""
    return sx.InferenceSession(str(path), options_of(**entries)).run(None, {"x": X})[0]


def is_close(first, second):
    """Packed and plain weights are added in other orders."""
    return first.shape == second.shape and np.allclose(first, second, rtol=1e-4, atol=1e-4)


class Place:
    """A source and how it is run compiled: from files of its own, or from a cache."""

    def __init__(self, folder, way, external):
        self.folder = folder
        self.way = way
        self.source = folder / "m.onnx"
        self.data = folder / "m.data" if external else None
        self.weights = self.data or self.source
        self.external = external
        write_model(self.source, 1, "m.data" if external else None)
        self.expected = result(self.source)
        self.out = folder / "out"
        self.out.mkdir()
        self.container = self.out / CONTAINER
        self.compile()

    def compile(self):
        """Make the compiled model for the first time."""
        if self.way == "cache":
            assert is_close(self.run(), self.expected)
            return
        options = options_of()
        if self.way == "weightless":
            options.add_session_config_entry("ep.enable_weightless_mode", "2")
        sx.ModelCompiler(options, str(self.source)).compile_to_file(str(self.out / "m_ctx.onnx"))
        assert is_close(self.run(), self.expected)

    def run(self):
        """What a session of the compiled model gives."""
        if self.way == "cache":
            return result(self.source, sardonyx__cache_dir=str(self.out))
        return result(self.out / "m_ctx.onnx")

    def outcome(self):
        """The result, or the message of an error."""
        try:
            return self.run()
        except sx.errors.Error as error:
            return str(error)


def keep_times(path, change):
    """Change a file, and give it its times back."""
    before = path.stat()
    change(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def change_a_weight(path):
    """A row of zeros, in place: the size stays."""
    row = weight(1, 2)[WIDTH // 2].tobytes()
    position = path.read_bytes().index(row)
    with open(path, "r+b") as file:
        file.seek(position)
        file.write(bytes(len(row)))


def same_size_and_time(place):
    """Times and size tell nothing."""
    keep_times(place.weights, change_a_weight)


def new_time(place):
    """As a trainer writes it."""
    change_a_weight(place.weights)
    os.utime(place.weights)


def swapped(place):
    """Weights of another model of the same shape under this one's name, with its times."""
    write_model(place.folder / "n.onnx", 2, "n.data" if place.external else None)
    other = place.folder / ("n.data" if place.external else "n.onnx")
    before = place.weights.stat()
    spare = place.folder / "spare"
    os.rename(place.weights, spare)
    os.rename(other, place.weights)
    os.rename(spare, other)
    os.utime(place.weights, ns=(before.st_atime_ns, before.st_mtime_ns))


def cut_short(place):
    """Half of the weights are gone."""
    os.truncate(place.weights, place.weights.stat().st_size // 2)


def touched(place):
    """The same bytes in another state."""
    place.weights.write_bytes(place.weights.read_bytes())


CHANGES = (same_size_and_time, new_time, swapped, cut_short, touched)


@pytest.mark.parametrize("external", [False, True], ids=["inside", "external"])
@pytest.mark.parametrize("way", ["packed", "weightless", "cache"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_source_that_changed_is_noticed(change, way, external, tmp_path):
    place = Place(tmp_path, way, external)
    change(place)
    outcome = place.outcome()
    if change is touched:
        assert is_close(outcome, place.expected)
    elif change is cut_short:
        assert isinstance(outcome, str)
        assert re.search("stale|bytes|damaged|ends|cut|parse", outcome), outcome
    elif way == "cache":
        now = result(place.source)
        assert not is_close(now, place.expected)
        assert is_close(outcome, now)
    else:
        assert isinstance(outcome, str), "a stale model was used"
        assert place.weights.name in outcome
        assert "stale" in outcome or "is not the one" in outcome


@pytest.mark.parametrize("external", [False, True], ids=["inside", "external"])
@pytest.mark.parametrize("way", ["packed", "weightless"])
def test_a_source_is_missed_where_it_is_needed(way, external, tmp_path):
    place = Place(tmp_path, way, external)
    for path in filter(None, (place.source, place.data)):
        path.unlink()
    outcome = place.outcome()
    if way == "packed":
        assert is_close(outcome, place.expected)
    else:
        assert place.weights.name in outcome


@pytest.mark.parametrize("external", [False, True], ids=["inside", "external"])
@pytest.mark.parametrize("way", ["0", "2"], ids=["packed", "weightless"])
@pytest.mark.parametrize(
    "change", (same_size_and_time, swapped, cut_short), ids=lambda change: change.__name__
)
@pytest.mark.parametrize("stage", ["check", "compile", "write"])
def test_a_source_that_changes_while_it_is_compiled_is_an_error(
    stage, change, way, external, tmp_path
):
    place = Place(tmp_path, "packed", external)
    target = tmp_path / "late" / "m_ctx.onnx"
    target.parent.mkdir()
    changed = []

    def report(now, *_):
        if now == stage and not changed:
            changed.append(now)
            change(place)

    options = options_of(ep__enable_weightless_mode=way)
    options.set_progress_function(report)
    try:
        sx.ModelCompiler(options, str(place.source)).compile_to_file(str(target))
    except sx.errors.Error as error:
        assert re.search("changed while|cut short|too few|bytes", str(error)), str(error)
        assert not list(target.parent.iterdir())
        return
    # Too early or too late to matter: the compiled model is that of the source, or stale.
    try:
        outcome = result(target)
    except sx.errors.Error as error:
        assert re.search("stale|is not the one|cut|bytes", str(error)), str(error)
    else:
        assert is_close(outcome, result(place.source))


CUT_WHILE_MAPPED = """
import os, sys
import numpy as np
import sardonyx as sx

session = sx.InferenceSession(sys.argv[1])
feed = {"x": np.ones((2, int(sys.argv[3])), np.float32)}
session.run(None, feed)
os.truncate(sys.argv[2], os.path.getsize(sys.argv[2]) // 2 // 4096 * 4096)
for turn in range(2):
    try:
        session.run(None, feed)
        print("ran")
    except sx.errors.Error as error:
        print("refused:", str(error).splitlines()[0])
try:
    sx.InferenceSession(sys.argv[1])
    print("opened")
except sx.errors.Error as error:
    print("not opened:", str(error).splitlines()[0])
print("alive")
"""


@pytest.mark.parametrize("external", [False, True], ids=["inside", "external"])
@pytest.mark.parametrize("way", ["packed", "weightless"])
def test_what_is_cut_while_it_is_mapped_is_an_error(way, external, tmp_path):
    place = Place(tmp_path, way, external)
    cut = place.container if way == "packed" else place.weights
    done = subprocess.run(
        [sys.executable, "-c", CUT_WHILE_MAPPED, str(place.out / "m_ctx.onnx"), str(cut),
         str(WIDTH)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for line in lines[:2]:
        assert line.startswith("refused:")
        assert cut.name in line
    assert lines[2].startswith("not opened:")
    assert lines[3:] == ["alive"]


def flip(content, count, chance):
    """Bytes with that many bits flipped."""
    changed = bytearray(content)
    for _ in range(count):
        position = chance.randrange(len(changed) * 8)
        changed[position // 8] ^= 1 << (position % 8)
    return bytes(changed)


@pytest.mark.parametrize("count", [1, 64])
@pytest.mark.parametrize("way", ["packed", "weightless", "cache"])
def test_flipped_bits_of_a_container_are_found_wherever_they_are(way, count, tmp_path):
    place = Place(tmp_path, way, True)
    whole = place.container.read_bytes()
    chance = random.Random(count)
    # The header and the index are small: many of the flips go there.
    begin_of_index = LAYERS * WIDTH * WIDTH * 4 if way != "weightless" else 4096
    regions = [(0, 4096), (0, len(whole)), (begin_of_index, len(whole))]
    refused = 0
    for round_number in range(60):
        begin, end = regions[round_number % len(regions)]
        middle = flip(whole[begin:end], count, chance)

        def damage(path, content=whole[:begin] + middle + whole[end:]):
            with open(path, "r+b") as file:
                file.write(content)
                file.truncate()

        keep_times(place.container, damage)
        outcome = place.outcome()
        if isinstance(outcome, str):
            assert way != "cache", outcome
            assert CONTAINER in outcome
            assert re.search("damaged|version|does not begin|cut short", outcome), outcome
            refused += 1
        else:
            assert is_close(outcome, place.expected)
    if way != "cache":
        # Others fell into padding, or into the half of the header that does not count.
        assert refused > (15 if count == 1 else 35)


def test_flipped_bits_of_embedded_data_are_found(tmp_path):
    write_model(tmp_path / "m.onnx", 1)
    compiler = sx.ModelCompiler(
        options_of(), str(tmp_path / "m.onnx"), embed_compiled_data_into_model=True
    )
    whole = compiler.compile_to_bytes()
    begin = whole.index(b"\x89SDXCTX\n")
    expected = sx.InferenceSession(whole).run(None, {"x": X})[0]
    chance = random.Random(3)
    refused = 0
    for _ in range(60):
        position = chance.randrange(begin, len(whole) - 2000)
        damaged = bytearray(whole)
        damaged[position] ^= 1 << chance.randrange(8)
        try:
            outcome = sx.InferenceSession(bytes(damaged)).run(None, {"x": X})[0]
        except sx.errors.Error:
            refused += 1
        else:
            assert is_close(outcome, expected)
    assert refused > 30


def another_version(place):
    """A number that follows the magic."""
    with open(place.container, "r+b") as file:
        file.seek(8)
        file.write((2).to_bytes(4, "little"))


def emptied(place):
    """As a disk that was full leaves it."""
    place.container.write_bytes(b"")


def of_another_model(place):
    """The container of another folder."""
    other = place.folder / "other"
    other.mkdir()
    write_model(other / "n.onnx", 2)
    sx.ModelCompiler(options_of(), str(other / "n.onnx")).compile_to_file(str(other / "n_ctx.onnx"))
    os.replace(other / CONTAINER, place.container)


def a_text(place):
    """No container at all."""
    place.container.write_text("weights, honestly\n" * 1000)


def gone(place):
    """Somebody cleaned up."""
    place.container.unlink()


def a_folder(place):
    """Somebody was clever."""
    place.container.unlink()
    place.container.mkdir()


REPLACED = (
    (another_version, "its format has version 2, this build reads version 1"),
    (emptied, "cut short"),
    (of_another_model, "has no graph"),
    (a_text, "does not begin as a container"),
    (gone, "No such file"),
    (a_folder, "is a folder, not a regular file"),
)


@pytest.mark.parametrize("way", ["packed", "weightless", "cache"])
@pytest.mark.parametrize("replace, message", REPLACED, ids=lambda it: getattr(it, "__name__", ""))
def test_what_is_not_the_container_is_refused_or_made_again(replace, message, way, tmp_path):
    place = Place(tmp_path, way, False)
    replace(place)
    outcome = place.outcome()
    if way == "cache" and replace is not a_folder:
        assert is_close(outcome, place.expected)
        assert is_close(place.run(), place.expected)
        return
    if way == "cache" and not isinstance(outcome, str):
        assert is_close(outcome, place.expected)
        return
    assert CONTAINER in outcome
    assert message in outcome or way == "cache"


RUN = """
import sys
import numpy as np
import sardonyx as sx

try:
    y = sx.InferenceSession(sys.argv[1]).run(None, {"x": np.load(sys.argv[2])})[0]
    np.save(sys.argv[3], y)
except sx.errors.Error as error:
    sys.exit(str(error))
"""


def run_as(isa, place):
    """The result in a process with another instruction set, or the message."""
    np.save(place.folder / "x.npy", X)
    target = place.folder / "y.npy"
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(place.out / "m_ctx.onnx"), str(place.folder / "x.npy"),
         str(target)],
        env={**os.environ, "SARDONYX_ISA": isa},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )  # fmt: skip
    return np.load(target) if done.returncode == 0 else done.stderr


@pytest.mark.parametrize("way", ["packed", "weightless"])
def test_a_container_for_another_instruction_set_is_refused(way, tmp_path):
    place = Place(tmp_path, way, True)
    outcome = run_as("generic", place)
    assert "for the instruction set" in outcome or "Compiled model is not supported" in outcome
    assert "but this process uses generic" in outcome or "isa=" in outcome

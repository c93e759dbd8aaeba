"""External data stay inside the model's folder, and linked model caches work."""

import os

import numpy as np
import onnx
import pytest

from common import TensorProto, error_of, make_model, make_node, make_session, value

NUMBERS = np.arange(4, dtype=np.float32)


def model_bytes(location, offset="0", length="16"):
    """Model x + w whose weight w lies at an external location."""
    weight = onnx.TensorProto(
        name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL
    )
    for key, text in (("location", location), ("offset", offset), ("length", length)):
        if text is not None:
            entry = weight.external_data.add()
            entry.key, entry.value = key, text
    model = make_model(
        [make_node("Add", ["x", "w"], ["y"])],
        [value("x", TensorProto.FLOAT, [4])],
        [value("y", TensorProto.FLOAT, [4])],
        [weight],
    )
    return model.SerializeToString()


def load(source):
    """The weight that a model adds."""
    return make_session(source).run(None, {"x": np.zeros(4, np.float32)})[0]


@pytest.fixture
def home(tmp_path):
    """A model folder beside a secret, with links to inside and outside."""
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    secret = tmp_path / "secret.bin"
    for path in (secret, folder / "good.bin", folder / "sub/deep.bin"):
        path.write_bytes(NUMBERS.tobytes())
    (folder / "out.bin").symlink_to(secret)
    (folder / "in.bin").symlink_to("sub/deep.bin")
    (folder / "outside").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    return folder


@pytest.mark.parametrize("location", ["good.bin", "sub/deep.bin", "in.bin", "./good.bin"])
def test_what_stays_inside_loads(home, location):
    """Plain files, folders below and links that do not leave."""
    (home / "m.onnx").write_bytes(model_bytes(location))
    np.testing.assert_array_equal(load(str(home / "m.onnx")), NUMBERS)


OUTSIDE = [
    "../secret.bin",
    "out.bin",
    "outside/secret.bin",
    "sub/../../secret.bin",
    "none/../../secret.bin",
    "/proc/self/environ",
    "../" * 16 + "dev/zero",
    "/dev/zero",
    "pipe",
    "",
    ".",
    "sub",
    "missing.bin",
    "good.bin\0.txt",
]


@pytest.mark.parametrize("location", OUTSIDE)
def test_what_leads_out_is_refused(home, location):
    """By parents, links, absolute paths, and what is no plain file; quickly, with a reason."""
    (home / "m.onnx").write_bytes(model_bytes(location))
    error = error_of(lambda: load(str(home / "m.onnx")))
    assert error is not None
    assert "w" in error


def test_an_absolute_path_is_refused(home):
    """Even if it leads into the model's own folder."""
    (home / "m.onnx").write_bytes(model_bytes(str(home / "good.bin")))
    assert error_of(lambda: load(str(home / "m.onnx"))) is not None


RANGES = [
    ("8", "16"),
    ("17", "16"),
    ("0", "17"),
    ("0", "12"),
    ("-4", "16"),
    ("18446744073709551612", "16"),
    ("9223372036854775807", "16"),
    ("0", "99999999999999999999"),
    ("zero", "16"),
    ("0", "-1"),
]


@pytest.mark.parametrize(("offset", "length"), RANGES)
def test_ranges_beyond_the_file_are_refused(home, offset, length):
    """Too long, too short, negative, overflowing, and no number at all."""
    (home / "m.onnx").write_bytes(model_bytes("good.bin", offset, length))
    assert error_of(lambda: load(str(home / "m.onnx"))) is not None


def test_offset_and_length_may_be_left_out(home):
    """Then the whole file is meant."""
    (home / "m.onnx").write_bytes(model_bytes("good.bin", None, None))
    np.testing.assert_array_equal(load(str(home / "m.onnx")), NUMBERS)


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/hostname"])
def test_a_model_from_bytes_does_not_climb_out(home, monkeypatch, location):
    """Its folder is the current one."""
    monkeypatch.chdir(home)
    assert error_of(lambda: load(model_bytes(location))) is not None


def linked_cache(folder):
    """A cache of links: snapshots/a/m.onnx -> ../../blobs/aaa, and its data likewise."""
    blobs = folder / "blobs"
    snapshot = folder / "snapshots" / "a"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    (blobs / "aaa").write_bytes(model_bytes("m.data"))
    (blobs / "bbb").write_bytes(NUMBERS.tobytes())
    (snapshot / "m.onnx").symlink_to("../../blobs/aaa")
    (snapshot / "m.data").symlink_to("../../blobs/bbb")
    return snapshot


def test_a_cache_of_links_loads(tmp_path):
    """As download tools of model hubs lay it out."""
    snapshot = linked_cache(tmp_path)
    np.testing.assert_array_equal(load(str(snapshot / "m.onnx")), NUMBERS)


def test_a_link_out_of_the_cache_is_refused(tmp_path):
    """Data that lead elsewhere than into the folder of blobs."""
    snapshot = linked_cache(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "bbb").write_bytes(NUMBERS.tobytes())
    (snapshot / "m.data").unlink()
    (snapshot / "m.data").symlink_to(elsewhere / "bbb")
    assert error_of(lambda: load(str(snapshot / "m.onnx"))) is not None

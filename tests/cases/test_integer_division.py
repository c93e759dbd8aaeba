"""Integer division and remainder never end the process."""

import json

import numpy as np
import pytest

from common import (
    INTEGER_TYPES,
    initializer,
    last_line,
    make_model,
    make_node,
    onnx_type,
    run_child,
    run_model,
    value,
)

CODE = """
import json, sys
import numpy as np
from common import error_of, initializer, make_model, make_node, onnx_type, run_model, value

report = []
generator = np.random.default_rng(int(sys.argv[2]))
dtype = np.dtype(sys.argv[1])
element = onnx_type(dtype)
info = np.iinfo(dtype)
special = [0, 1, info.min, info.max] + ([-1] if info.min else [])
for op in ("Div", "Mod"):
    for constant in ("none", "a", "b", "both"):
        for length in (1, 2, 3, 7, 8, 16, 33, 100):
            a = generator.choice(special, (2, length)).astype(dtype)
            b = generator.choice(special, length if generator.random() < 0.7 else 1).astype(dtype)
            arrays = {"a": a, "b": b}
            fixed = {"none": "", "both": "ab"}.get(constant, constant)
            inputs = [value(n, element, list(x.shape)) for n, x in arrays.items() if n not in fixed]
            weights = [initializer(n, arrays[n]) for n in fixed]
            node = make_node(op, ["a", "b"], ["y"])
            model = make_model([node], inputs, [value("y", element, None)], weights)
            feed = {n: x for n, x in arrays.items() if n not in fixed}
            report.append(error_of(lambda: run_model(model, feed)))
print(json.dumps(report))
"""


@pytest.mark.parametrize("dtype", INTEGER_TYPES)
def test_zero_and_minus_one_give_a_value_or_an_error(dtype):
    """For feeds and constants of all lengths, broadcast or not."""
    status, output, errors = run_child(CODE, np.dtype(dtype).name, 10)
    assert status == 0, errors[-300:]
    assert len(json.loads(last_line(output))) == 64


@pytest.mark.parametrize("dtype", INTEGER_TYPES)
def test_ordinary_division_is_that_of_the_specification(dtype):
    """Div truncates; Mod has the divisor's sign, with fmod the dividend's."""
    generator = np.random.default_rng(11)
    info = np.iinfo(dtype)
    low, high = max(info.min, -1000), min(info.max, 1000)
    element = onnx_type(dtype)
    for shape in ((1,), (5,), (3, 17), (2, 3, 33)):
        a = generator.integers(low, high, shape, endpoint=True).astype(dtype)
        b = generator.integers(1, high, shape[-1:], endpoint=True).astype(dtype)
        if info.min:
            b = b * generator.choice([-1, 1], b.shape).astype(dtype)
        wide_a, wide_b = a.astype(np.int64), b.astype(np.int64)
        expected = {
            "Div": np.trunc(wide_a / wide_b),
            "Mod": wide_a % wide_b,
            "fmod": np.fmod(wide_a, wide_b),
        }
        for op, result in expected.items():
            attributes = {"fmod": 1} if op == "fmod" else {}
            node = make_node("Mod" if op == "fmod" else op, ["a", "b"], ["y"], **attributes)
            inputs = [value("a", element, list(shape)), value("b", element, list(b.shape))]
            model = make_model([node], inputs, [value("y", element, None)])
            np.testing.assert_array_equal(run_model(model, {"a": a, "b": b})[0], result)
            folded = make_model(
                [node],
                inputs[:1],
                [value("y", element, None)],
                [initializer("b", b)],
            )
            np.testing.assert_array_equal(run_model(folded, {"a": a})[0], result)

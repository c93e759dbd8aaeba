"""Weights are mapped, and shared by the sessions of a model."""

import json
import os

import numpy as np
import pytest

from common import last_line, make_session, memory, mlp_model, run_child, save_external

pytestmark = pytest.mark.timed

CODE = """
import json, os, sys
import numpy as np
from common import make_session, runtime

path, data, size = sys.argv[1], os.path.realpath(sys.argv[2]), int(sys.argv[3])
KINDS = ("Rss", "Pss", "Anonymous", "Private_Hugetlb", "Shared_Hugetlb")


def sizes():
    # MiB of this process; "outside" is all but clean pages of the data file
    total = dict.fromkeys(KINDS, 0.0)
    clean = 0.0
    for line in open("/proc/self/smaps"):
        words = line.split()
        kind = words[0].rstrip(":")
        if not words[0].endswith(":"):
            of_data = line.rstrip().endswith(data)
        elif kind in KINDS:
            mib = int(words[1]) / 1024
            total[kind] += mib
            if of_data and kind in ("Rss", "Anonymous"):
                clean += mib if kind == "Rss" else -mib
    outside = total["Rss"] - clean + total["Private_Hugetlb"] + total["Shared_Hugetlb"]
    return {"resident": total["Rss"], "proportional": total["Pss"], "outside": outside}


runtime()
before = sizes()
session = make_session(path, threads=1)
loaded = sizes()
session.run(None, {"x": np.ones((1, size), np.float32)})
ran = sizes()
print(json.dumps([{key: now[key] - before[key] for key in now} for now in (loaded, ran)]))
"""


@pytest.mark.parametrize(("size", "count"), [(4096, 8), (2048, 5), (1024, 8)])
def test_a_further_session_of_a_model_needs_little(tmp_path, size, count):
    """Less than an eighth of the weights of 4 x size x size bytes, and less than 8 MiB."""
    path = save_external(mlp_model(size, 1), tmp_path)
    x = np.ones((1, size), np.float32)
    sessions = []
    resident = []
    for _ in range(count):
        session = make_session(path, threads=1)
        session.run(None, {"x": x})
        sessions.append(session)
        resident.append(memory()["Rss"])
    growth = (resident[-1] - resident[0]) / (count - 1)
    assert growth < max(size * size * 4 / 2**20 / 8, 1)
    assert growth < 8


@pytest.mark.parametrize(("size", "layers"), [(4096, 8), (2048, 16), (1024, 40)])
def test_external_data_are_mapped(tmp_path, size, layers):
    """Memory grows by at most 1.15 times the file; outside of its clean pages by 0.15 times."""
    path = save_external(mlp_model(size, layers), tmp_path)
    data = os.path.join(tmp_path, "m.data")
    weights = os.path.getsize(data) / 2**20
    status, output, errors = run_child(CODE, path, data, size)
    assert status == 0, errors[-300:]
    limits = {
        "resident": 1.15 * weights + 16,
        "proportional": 1.15 * weights + 16,
        "outside": 0.15 * weights + 16,
    }
    for moment in json.loads(last_line(output)):
        assert {key: mib for key, mib in moment.items() if mib > limits[key]} == {}, weights

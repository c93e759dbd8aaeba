"""Common parts of the tests of the Python package."""

import pytest
import sardonyx


@pytest.fixture
def session_of():
    """Make a session on the CPU from the bytes of a model."""

    def make(model, options=None):
        return sardonyx.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    return make

"""CTranslate2 models: what was written is read, and a damaged file is refused."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models import makers
from oyez.errors import ModelError
from oyez.models.ct2 import Ct2Weights

VARIABLES = {
    "matrix": np.arange(12, dtype=np.float16).reshape(4, 3),
    "cube": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    "count": np.asarray(np.int16(6)),
    "flag": np.asarray(np.int8(1)),
}
same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "model.bin"
    file.write_bytes(makers.ct2_bytes(VARIABLES))
    return file


@pytest.mark.parametrize("name", VARIABLES)
def test_a_variable_is_read_with_its_shape_and_type(path, name):
    with Ct2Weights(path) as weights:
        array = weights.read(name)
    assert array.dtype == VARIABLES[name].dtype
    np.testing.assert_array_equal(array, VARIABLES[name])


@given(first=st.integers(0, 3), rows=st.integers(0, 3))
@same_folder
def test_rows_are_read_alone(path, first, rows):
    rows = min(rows, 4 - first)
    with Ct2Weights(path) as weights:
        np.testing.assert_array_equal(
            weights.read("matrix", first, rows), VARIABLES["matrix"][first : first + rows]
        )


def test_rows_to_the_end_are_read_when_no_number_is_given(path):
    with Ct2Weights(path) as weights:
        np.testing.assert_array_equal(weights.read("matrix", 2), VARIABLES["matrix"][2:])


def test_a_variable_that_is_not_there_is_named(path):
    with Ct2Weights(path) as weights, pytest.raises(ModelError, match="no variable decoder/x"):
        weights.read("decoder/x")


@given(st.data())
@same_folder
def test_a_model_that_is_cut_anywhere_is_refused(path, data):
    whole = makers.ct2_bytes(VARIABLES)
    no_aliases = 4
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - no_aliases - 1))])
    with pytest.raises(ModelError, match="no CTranslate2 model"):
        Ct2Weights(path)


@given(st.binary(max_size=200))
@same_folder
def test_bytes_that_mean_nothing_raise_nothing_but_a_model_error(path, noise):
    path.write_bytes(b"\x06\x00\x00\x00" + noise)
    with suppress(ModelError), Ct2Weights(path) as weights:
        assert weights.variables is not None


@pytest.mark.parametrize("version", [5, 7])
def test_another_version_of_the_format_is_refused(path, version):
    path.write_bytes(makers.ct2_bytes(VARIABLES, version=version))
    with pytest.raises(ModelError):
        Ct2Weights(path)


def test_a_size_that_does_not_fit_the_shape_is_refused(path):
    whole = makers.ct2_bytes({"x": np.zeros(3, np.float32)})
    path.write_bytes(whole.replace(b"\x00\x0c\x00\x00\x00", b"\x00\x08\x00\x00\x00"))
    with pytest.raises(ModelError):
        Ct2Weights(path)

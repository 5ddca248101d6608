"""The names, parameters and defaults of PyFlink 2.3, as its classes have them (pyflink_signatures.txt)."""

import inspect
import re
from pathlib import Path

import pytest

from firesteel import datastream
from firesteel.common import watermark_strategy
from firesteel.datastream import data_stream, functions, output_tag, state, timerservice

MODULES = (data_stream, functions, state, output_tag, timerservice, watermark_strategy)
SIGNATURES = (Path(__file__).parent / "pyflink_signatures.txt").read_text().splitlines()


def find(path):
    top, *rest = path.split(".")
    found = next(getattr(module, top) for module in MODULES if hasattr(module, top))
    for name in rest:
        found = getattr(found, name)
    return found


@pytest.mark.parametrize("signature", SIGNATURES)
def test_what_pyflink_has_is_here_with_its_parameters(signature):
    path, parameters = re.fullmatch(r"([\w.]+)\((.*)\)", signature).groups()
    theirs = [parameter.partition("=") for parameter in parameters.split()]
    ours = [parameter for name, parameter in inspect.signature(find(path)).parameters.items() if name != "self"]
    assert [name.lstrip("*") for name, _, _ in theirs] == [parameter.name for parameter in ours[: len(theirs)]]
    assert all(
        parameter.kind is parameter.VAR_POSITIONAL for parameter in ours[len(theirs) :]
    )  # Flink 1.x's more fields
    for (_, has_default, default), parameter in zip(theirs, ours, strict=False):
        if has_default:
            assert repr(parameter.default) == default


@pytest.mark.parametrize("name", datastream.__all__)
def test_everything_exported_exists(name):
    assert getattr(datastream, name) is not None

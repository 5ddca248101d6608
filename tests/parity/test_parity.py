"""Our public API against PyFlink's: everything is there under the same name and signature, or docs/parity.md says why not."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from firesteel.datastream import connectors, window
from tests.parity import flink_api
from tests.parity.flink_api import HOME, VERSION, FlinkClass, public_classes

ROOT = Path(__file__).parents[2]


def left_out() -> dict[str, str]:
    """`Class` or `Class.method` -> why it is left out or different, from the tables of docs/parity.md."""
    rows = re.findall(r"^\| (`.+?`) \| (.+?) \|$", (ROOT / "docs" / "parity.md").read_text(), re.MULTILINE)
    return {name: why for names, why in rows for name in re.findall(r"`([^`]+)`", names)}


@pytest.fixture(scope="module")
def flink() -> dict[str, FlinkClass]:
    if not (HOME / "pyflink").is_dir():
        pytest.fail(f"apache-flink {VERSION} is not in {HOME}; `make setup` puts it there (its sources only, no JVM)")
    return public_classes()


def ours(described: FlinkClass) -> Any:
    module = importlib.import_module(described.package.replace("pyflink", "firesteel"))
    return getattr(module, described.name, None)


def differences(described: FlinkClass) -> list[tuple[str, str]]:
    """(`Class` or `Class.method`, what is different)."""
    mine = ours(described)
    if mine is None:
        return [(described.name, "is missing")]
    found = []
    for name, parameters in described.methods.items():
        member = f"{described.name}.{name}"
        if not hasattr(mine, name) and name not in getattr(mine, "__annotations__", ()):
            found.append((member, "is missing"))
        elif parameters is not None and callable(getattr(mine, name, None)):
            problem = _signature_problem(
                [p.name for p in parameters], [p.required for p in parameters], getattr(mine, name)
            )
            if problem:
                found.append((member, problem))
    return found


def _signature_problem(names: list[str], required: list[bool], function: Any) -> str | None:
    try:
        signature = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    if signature and signature[0].name in ("self", "cls"):
        signature = signature[1:]
    mine = [("*" + p.name if p.kind is p.VAR_POSITIONAL else p.name) for p in signature if p.kind is not p.VAR_KEYWORD]
    if mine[: len(names)] != names:
        return f"takes ({', '.join(mine)}) and not ({', '.join(names)})"
    for parameter, must in zip(signature, required, strict=False):
        if not must and parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL:
            return f"requires {parameter.name!r}, which PyFlink does not"
    more = [
        p.name
        for p in signature[len(names) :]
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    return f"requires {more} on top of PyFlink's parameters" if more else None


def test_every_public_name_of_pyflink_is_here_or_its_absence_is_explained(flink: dict[str, FlinkClass]) -> None:
    known = left_out()
    unexplained = [
        f"{member} {problem}"
        for described in flink.values()
        for member, problem in differences(described)
        if member not in known and described.name not in known
    ]
    assert not unexplained, "\n".join(unexplained)


def unimportable() -> dict[str, set[str]]:
    """Modules of PyFlink that are not here, and names that ours do not have: each with how docs/parity.md may call it."""
    found: dict[str, set[str]] = {}
    for path, names in flink_api.public_names().items():
        try:
            module = importlib.import_module(path.replace("pyflink", "firesteel", 1))
        except ModuleNotFoundError:
            found |= {f"{path}.{name}": {path, f"{path}.{name}", name} for name in names}
        else:
            found |= {f"{path}.{name}": {f"{path}.{name}", name} for name in names if not hasattr(module, name)}
    return found


def test_every_name_can_be_imported_from_where_pyflink_has_it_or_its_absence_is_explained(
    flink: dict[str, FlinkClass],
) -> None:
    known = set(left_out())
    assert sorted(name for name, called in unimportable().items() if not called & known) == []


def test_a_class_is_the_same_one_wherever_it_is_imported_from(flink: dict[str, FlinkClass]) -> None:
    absent = unimportable()
    for path, names in flink_api.public_names().items():
        here = path.replace("pyflink", "firesteel", 1)
        for name in names & flink.keys() - {name.rpartition(".")[2] for name in absent}:
            assert getattr(importlib.import_module(here), name) is ours(flink[name]), f"{here}.{name}"


def test_connectors_can_be_imported_from_their_package_as_in_flink_1(flink: dict[str, FlinkClass]) -> None:
    absent = unimportable()
    old = flink_api.old_connector_names()
    here = {
        name: module for name, module in old.items() if f"{module}.{name}" not in absent and module not in left_out()
    }
    assert {"FlinkKafkaConsumer", "FlinkKafkaProducer", "KafkaSource", "JdbcSink", "FileSink"} <= here.keys()
    for name, module in here.items():
        new = importlib.import_module(module.replace("pyflink", "firesteel", 1))
        assert getattr(connectors, name) is getattr(new, name)


def test_everything_about_windows_is_here(flink: dict[str, FlinkClass]) -> None:
    theirs = flink_api.exports(HOME / "pyflink" / "datastream" / "window.py")
    assert sorted(theirs - set(window.__all__)) == []


def test_nothing_is_listed_as_left_out_that_is_there(flink: dict[str, FlinkClass]) -> None:
    different = {member for described in flink.values() for member, _ in differences(described)}
    different |= {called for names in unimportable().values() for called in names}
    assert sorted(name for name in left_out() if name not in different) == []

"""Writes docs/api.md from the docstrings: python docs/build_api.py"""

from __future__ import annotations

import enum
import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

MODULES = (
    "firesteel.datastream",
    "firesteel.datastream.connectors",
    "firesteel.datastream.connectors.base",
    "firesteel.datastream.connectors.kafka",
    "firesteel.datastream.connectors.jdbc",
    "firesteel.common",
    "firesteel.metrics",
    "firesteel.state",
    "firesteel.testing",
)
TARGET = Path(__file__).with_name("api.md")

HEAD = """\
# API

Made from the docstrings by `python docs/build_api.py`. Methods are listed with the first sentences of what they say about
themselves; `help(name)` in Python has the rest. Names, parameters and defaults are PyFlink's, apart from what
[parity.md](parity.md) says.
"""


def public_classes() -> dict[type, str]:
    """Every public class, with the module that it is described under: the first that exports it."""
    found: dict[type, str] = {}
    for name in MODULES:
        module = import_module(name)
        for exported in sorted(module.__all__):
            value = getattr(module, exported)
            if inspect.isclass(value):
                found.setdefault(value, name)
    return found


def public_functions(module: ModuleType) -> dict[str, Any]:
    return {name: value for name in sorted(module.__all__) if inspect.isfunction(value := getattr(module, name))}


def members(kind: type, public: dict[type, str]) -> Iterator[tuple[str, Any]]:
    """Its methods and properties, those of bases included that have no description of their own."""
    seen: set[str] = set()
    for base in kind.__mro__:
        if (base is not kind and base in public) or not base.__module__.startswith("firesteel"):
            continue
        for name, value in vars(base).items():
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            if isinstance(value, (property, staticmethod, classmethod)) or inspect.isfunction(value):
                yield name, value


def doc_of(kind: type, name: str) -> str:
    """What a method says about itself, or a method says about itself that it overrides."""
    return inspect.getdoc(getattr(kind, name)) or ""


def summary(doc: str) -> str:
    """The first paragraph, in one line."""
    return " ".join(doc.split("\n\n")[0].split()) if not doc.startswith(":param") else ""


def build() -> str:
    public = public_classes()
    lines = [HEAD]
    for name in MODULES:
        module = import_module(name)
        lines += [f"## {name}", "", summary(module.__doc__ or ""), ""]
        for function_name, function in public_functions(module).items():
            lines += [f"### {function_name}", "", f"`{function_name}{_signature(function)}`", ""]
            lines += [summary(inspect.getdoc(function) or ""), ""]
        for kind, home in public.items():
            if home == name:
                lines += _class_lines(kind, public)
    return "\n".join(lines).rstrip() + "\n"


def _class_lines(kind: type, public: dict[type, str]) -> list[str]:
    lines = [f"### {kind.__name__}", ""]
    bases = [base.__name__ for base in kind.__mro__[1:] if base in public]
    if bases:
        lines += ["Has also what " + " and ".join(f"[{base}](#{base.lower()})" for base in bases[:1]) + " has.", ""]
    lines += [summary(inspect.getdoc(kind) or ""), ""]
    if issubclass(kind, enum.Enum):
        return [*lines, ", ".join(f"`{each.name}`" for each in kind), ""]
    rows = []
    for name, value in members(kind, public):
        call = f"{name}" if isinstance(value, property) else f"{name}{_signature(getattr(kind, name))}"
        rows.append(f"- `{call}`" + (f"  \n  {text}" if (text := summary(doc_of(kind, name))) else ""))
    return [*lines, *rows, ""] if rows else lines


def _signature(function: Any) -> str:
    """Without self and without annotations: types are in the code, and lines stay readable."""
    parameters = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in inspect.signature(function).parameters.values()
        if each.name not in ("self", "cls")
    ]
    return re.sub(r"<[^<>]* at 0x[0-9a-f]+>", "...", str(inspect.Signature(parameters)))


if __name__ == "__main__":
    sys.path.insert(0, str(TARGET.parents[1]))
    TARGET.write_text(build())

"""PyFlink's public API, read from the source of an installed apache-flink without importing it (it needs a JVM)."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeGuard

VERSION = "2.3.0"
HOME = Path(sys.prefix) / "flink"  # `make setup` puts it there
MODULES = ("pyflink/common", "pyflink/datastream", "pyflink/metrics")


@dataclass(frozen=True)
class Parameter:
    name: str
    required: bool


@dataclass
class FlinkClass:
    """A public class and the methods it defines itself; a value of None is a property or attribute."""

    name: str
    package: str
    methods: dict[str, tuple[Parameter, ...] | None] = field(default_factory=dict)


def public_classes(home: Path = HOME) -> dict[str, FlinkClass]:
    """The classes that `pyflink.common`, `pyflink.datastream` and `pyflink.metrics` export."""
    found: dict[str, FlinkClass] = {}
    for package in MODULES:
        exported = exports(home / package / "__init__.py")
        for file in sorted((home / package).glob("*.py")):
            for node in ast.parse(file.read_text()).body:
                if isinstance(node, ast.ClassDef) and node.name in exported:
                    found[node.name] = _class(node, package.replace("/", "."))
    return found


def public_names(home: Path = HOME) -> dict[str, set[str]]:
    """Each module of these packages, with the names that a program can import from it."""
    found: dict[str, set[str]] = {}
    for package in MODULES:
        for file in sorted((home / package).rglob("*.py")):
            path = file.relative_to(home).with_suffix("")
            if "tests" not in path.parts and path.name != "__init__":
                found[".".join(path.parts)] = _defined(file)
        found[package.replace("/", ".")] = exports(home / package / "__init__.py")
    connectors = home / "pyflink" / "datastream" / "connectors"
    found["pyflink.datastream.connectors"] = exports(connectors / "__init__.py")
    return found


def old_connector_names(home: Path = HOME) -> dict[str, str]:
    """What `pyflink.datastream.connectors` has besides its `__all__`, for programs of Flink 1.x -> its module today."""
    package = "pyflink/datastream/connectors"
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse((home / package / "__init__.py").read_text())):
        match node:
            case ast.Call(ast.Name("setattr"), [_, ast.Constant(str(name)), ast.Attribute(ast.Name(module))]):
                found[name] = f"{package}/{module}".replace("/", ".")
    return found


def _defined(file: Path) -> set[str]:
    """What a module's `__all__` lists, else what it defines: classes, functions and constants."""
    try:
        return exports(file)
    except AssertionError:
        body = ast.parse(file.read_text()).body
    names = {node.name for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    names |= {
        target.id for node in body if isinstance(node, ast.Assign) for target in node.targets if _constant(target)
    }
    return {name for name in names if not name.startswith("_")}


def _constant(target: ast.expr) -> TypeGuard[ast.Name]:
    return isinstance(target, ast.Name) and target.id.isupper()


def exports(init: Path) -> set[str]:
    """What a module's `__all__` lists."""
    for node in ast.parse(init.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return set(ast.literal_eval(node.value))
    raise AssertionError(f"{init} has no __all__")


def _class(node: ast.ClassDef, package: str) -> FlinkClass:
    described = FlinkClass(node.name, package)
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
            described.methods[member.name] = _parameters(member)
        elif isinstance(member, ast.ClassDef) and not member.name.startswith("_"):
            described.methods[member.name] = None
    return described


def _parameters(function: ast.FunctionDef) -> tuple[Parameter, ...] | None:
    decorators = {getattr(d, "id", getattr(d, "attr", "")) for d in function.decorator_list}
    if "property" in decorators:
        return None
    arguments = function.args.posonlyargs + function.args.args
    required = len(arguments) - len(function.args.defaults)
    named = [Parameter(argument.arg, index < required) for index, argument in enumerate(arguments)]
    named += [
        Parameter(a.arg, default is None)
        for a, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    ]
    if function.args.vararg:
        named.append(Parameter("*" + function.args.vararg.arg, False))
    if "staticmethod" not in decorators:
        named = named[1:]  # self or cls
    return tuple(named)

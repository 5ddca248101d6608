"""`firesteel config`: every setting, the value in effect, and where it comes from."""

from __future__ import annotations

import argparse
import json
from typing import Any

from firesteel.cli.output import table, write
from firesteel.cli.settings import add_definitions, check_settings, definitions
from firesteel.common.config_files import Setting
from firesteel.datastream.configured import Layer, hand_over, settings_in_effect
from firesteel.datastream.option_table import OPTIONS, SECTIONS

_SECRET = (
    "password", "secret", "fs.azure.account.key", "apikey", "api-key", "access.key", "auth-params", "service-key", "token",
    "basic-auth", "jaas.config", "http-headers",
)  # fmt: skip
"""Parts of keys whose values are nobody's business: Flink's list, and one of Spark's."""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "config",
        help="show the settings in effect",
        description="Show every setting, the value in effect, and where it comes from. A program may set others itself.",
    )
    add_definitions(parser)
    parser.add_argument("--set", action="store_true", dest="only_set", help="only those that are set somewhere")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--markdown", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(command=config)


def config(given: argparse.Namespace) -> int:
    if given.markdown:
        write(reference())
        return 0
    hand_over(definitions(given))
    effective = settings_in_effect()
    check_settings()
    everything = effective if given.only_set else {**_defaults(), **effective}
    shown = {key: Setting(_shown(key, one.value), one.source) for key, one in everything.items()}
    if given.json:
        rows = [{"key": key, "value": one.value or None, "source": one.source} for key, one in shown.items()]
        write(json.dumps(rows, indent=1))
    elif shown:
        write(table(("KEY", "VALUE", "FROM"), [(key, one.value or "-", one.source) for key, one in shown.items()]))
    else:
        write("nothing is set")
    return 0


def _defaults() -> Layer:
    return {option.key: Setting(option.default, "default") for option in OPTIONS.values() if not option.flinks}


def _shown(key: str, value: str) -> str:
    return "******" if value and any(part in key.lower() for part in _SECRET) else value


def reference() -> str:
    """The settings as docs/configuration.md shows them."""
    lines = []
    for title, options in SECTIONS.items():
        lines += [f"### {title}", "", "| key | values | default | what it is |", "| --- | --- | --- | --- |"]
        for option in options:
            older = f" Once `{'`, `'.join(option.older)}`." if option.older else ""
            default = f"`{option.default}`" if option.default else ""
            lines.append(f"| `{option.key}` | {option.kind.name} | {default} | {option.description}{older} |")
        lines.append("")
    return "\n".join(lines).rstrip()

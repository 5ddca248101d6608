"""`firesteel inspect`: what is in a checkpoint or savepoint. Its metadata and the indexes of its files are read, no state."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from datetime import datetime
from typing import Any

from firesteel.cli.output import table, write
from firesteel.common.sizes import show_size
from firesteel.coordinator.completed import Completed
from firesteel.coordinator.inspecting import StateCounts, open_states
from firesteel.errors import ConfigurationError
from firesteel.state.files import NO_GROUP

_HEADER = ("UID", "STATE", "KIND", "ENTRIES", "SIZE", "FILES")
_GROUPS_HEADER = ("UID", "STATE", "KEY GROUPS", "ENTRIES", "SIZE")


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "inspect",
        help="show what is in a checkpoint or savepoint",
        description="Show the operators of a checkpoint or savepoint and their states: kinds, sizes, numbers of entries. "
        "Nothing of the state itself is read, so the program's classes are not needed.",
    )
    parser.add_argument("path", help="its directory or its _metadata file")
    parser.add_argument(
        "--key-groups", type=int, nargs="?", const=16, metavar="n", help="also by so many ranges of key groups (16)"
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(command=inspect)


def inspect(given: argparse.Namespace) -> int:
    if given.key_groups is not None and given.key_groups < 1:
        raise ConfigurationError(f"--key-groups {given.key_groups}: it is a number of ranges, 1 or more")
    opened = open_states(given.path)
    found, states = opened.checkpoint, opened.counts()
    if given.json:
        write(json.dumps(_document(found, states), indent=1))
        return 0
    write("\n".join(_head(found)))
    write("\n" + table(("UID", "OPERATOR", "PARALLELISM", "MAXIMUM", "KEYED", "POSITION"), _operators(found), (2, 3)))
    if states:
        write("\n" + table(_HEADER, [_row(state) for state in states], (3, 4, 5)))
        if not all(state.exact for state in states):
            write("<=: keys that are in several files are counted in each of them")
    if given.key_groups is not None:
        rows = [row for state in states for row in _ranges(found, state, given.key_groups)]
        write("\n" + table(_GROUPS_HEADER, rows, (3, 4)))
    return 0


def _head(found: Completed) -> list[str]:
    metadata = found.metadata
    owed = sum(map(len, metadata.committables.values()))
    kind = "savepoint at checkpoint" if metadata.savepoint else "checkpoint"
    lines = [
        f"{found.path}",
        f"job {metadata.job_name!r}, id {metadata.job_id}",
        f"{kind} {metadata.checkpoint} of incarnation {metadata.incarnation}, "
        f"{datetime.fromtimestamp(metadata.created_ms / 1000):%Y-%m-%d %H:%M:%S}"
        + (", at the end of the input" if metadata.final else ""),
        f"{show_size(metadata.size())} in {len(metadata.files())} state files of {len(metadata.state)} slots",
    ]
    if owed:
        confirmed = "committed" if found.confirmed else "not committed yet"
        lines.append(f"{owed} pieces of output, {confirmed}")
    return lines


def _operators(found: Completed) -> list[tuple[str, ...]]:
    metadata = found.metadata
    return [
        (
            uid,
            info.name,
            str(info.parallelism),
            str(info.max_parallelism),
            "yes" if info.keyed else "no",
            f"{json.dumps(metadata.positions[uid]):.60}" if uid in metadata.positions else "",
        )
        for uid, info in metadata.operators.items()
    ]


def _row(counts: StateCounts) -> tuple[str, ...]:
    return (*counts.state.table, _shown(counts, counts.entries), show_size(counts.size), str(counts.files))


def _shown(counts: StateCounts, entries: int) -> str:
    return f"{'' if counts.exact else '<= '}{entries:,}"


def _ranges(found: Completed, counts: StateCounts, number: int) -> list[tuple[str, ...]]:
    """Of the keyed part of a state, in equal ranges of its operator's key groups."""
    info = found.metadata.operators.get(counts.state.uid)
    keyed = {group: counted for group, counted in counts.groups.items() if group != NO_GROUP}
    if info is None or not keyed:
        return []
    number = min(number, info.max_parallelism)
    rows: list[tuple[str, ...]] = []
    for index in range(number):
        first, end = index * info.max_parallelism // number, (index + 1) * info.max_parallelism // number
        entries = sum(keyed[group].entries for group in range(first, end) if group in keyed)
        size = sum(keyed[group].size for group in range(first, end) if group in keyed)
        rows.append(
            (counts.state.uid, counts.state.name, f"{first}-{end - 1}", _shown(counts, entries), show_size(size))
        )
    return rows


def _document(found: Completed, states: list[StateCounts]) -> dict[str, Any]:
    metadata = found.metadata
    return {
        "path": found.path,
        "job_id": metadata.job_id,
        "job_name": metadata.job_name,
        "savepoint": metadata.savepoint,
        "checkpoint": metadata.checkpoint,
        "incarnation": metadata.incarnation,
        "created_ms": metadata.created_ms,
        "final": metadata.final,
        "confirmed": found.confirmed,
        "size": metadata.size(),
        "operators": {uid: asdict(info) for uid, info in metadata.operators.items()},
        "positions": dict(metadata.positions),
        "states": [
            {
                "uid": uid, "name": name, "kind": kind, "entries": counts.entries, "exact": counts.exact,
                "size": counts.size, "files": counts.files,
                "key_groups": {str(group): asdict(counted) for group, counted in sorted(counts.groups.items())},
            }
            for counts in states
            for uid, name, kind in [counts.state.table]
        ],
    }  # fmt: skip

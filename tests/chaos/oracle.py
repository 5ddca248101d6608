"""What a chaos job must have left, worked out from its input alone. Imports nothing of firesteel.

The input is the numbers first, first+1, ..., last-1, in one sequence or spread over partitions: of P, partition p has the
numbers p, p+P, p+2P, ... Three kinds of output can be there:

* `numbers`: every number once;
* `windows`: a number's time is so many times `TICK_MS`, and for every key and window of `WINDOW_MS` there is a row (key, start,
  count, total) of all its numbers. No number is late, so a window that is there at all is complete;
* `sums`: for every number a line `key,count,total`. A rollback may change the order in which a key's numbers come, so it is
  not fixed; what is: a key's counts are 1, 2, 3, ... without gap or repeat, and the steps from one total to the next are
  that key's numbers, each once. A lost, repeated or half applied record breaks one of these, wherever it happens.

A checkpoint says how far in each partition it got, and its state files, read as docs/formats.md describes them, must say for
each key what counting and adding all numbers before gives.
"""

from __future__ import annotations

import json
import pickle
import re
import struct
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rocksdict import AccessType, Options, Rdict

Lines = list[tuple[str, str]]  # file, line
Values = dict[str, dict[int, int]]  # state -> key -> value
Window = tuple[int, int, int, int]  # key, start, count, total
TICK_MS, WINDOW_MS = 10, 1000


class ViolationError(AssertionError):
    """Something is not as it would be without faults."""


# ---- output


def visible(directory: Path) -> Lines:
    """What a reader of the directory sees: all files but hidden ones."""
    lines: Lines = []
    for path in sorted(directory.iterdir()) if directory.is_dir() else []:
        if path.name.startswith("."):
            continue
        text = path.read_text()
        if text and not text.endswith("\n"):
            raise ViolationError(f"{path} is torn: its last line has no end")
        lines += [(path.name, line) for line in text.splitlines()]
    return lines


def _some(counter: Counter[int]) -> str:
    return f"{sum(counter.values())}, such as {sorted(counter)[:5]}"


def check_numbers(lines: Lines, first: int, last: int, *, complete: bool) -> None:
    found, expected = Counter(int(line) for _, line in lines), Counter(range(first, last))
    if found - expected:
        raise ViolationError(f"numbers repeated or made up: {_some(found - expected)}")
    if complete and expected - found:
        raise ViolationError(f"numbers lost: {_some(expected - found)}")


def check_sums(lines: Lines, first: int, last: int, keys: int, *, complete: bool) -> None:
    before = final_state(first, keys)
    by_key: dict[int, dict[int, int]] = defaultdict(dict)
    last_in_file: dict[tuple[str, int], int] = {}
    for file, line in lines:
        key, count, total = map(int, line.split(","))
        if count in by_key[key]:
            raise ViolationError(f"key {key} has record {count} twice, the second time in {file}")
        if last_in_file.get((file, key), count - 1) != count - 1:
            raise ViolationError(f"key {key} in {file}: record {count} follows {last_in_file[file, key]}")
        by_key[key][count] = total
        last_in_file[file, key] = count
    for key in range(keys):
        done, start = before.get(key, (0, 0))
        totals = by_key.pop(key, {})
        numbers = Counter(range(first + (key - first) % keys, last, keys))
        if sorted(totals) != list(range(done + 1, done + 1 + len(totals))):
            raise ViolationError(f"key {key} has a gap: {len(totals)} records, up to record {max(totals)}")
        steps = Counter(totals[count] - totals.get(count - 1, start) for count in totals)
        if steps - numbers:
            raise ViolationError(f"key {key} added what is not its input, or twice: {_some(steps - numbers)}")
        if complete and numbers - steps:
            raise ViolationError(f"key {key} lost {_some(numbers - steps)}")
    if by_key:
        raise ViolationError(f"keys that are not in the input: {sorted(by_key)[:5]}")


def check_windows(rows: Iterable[Window], last: int, keys: int, *, complete: bool) -> None:
    expected: dict[tuple[int, int], tuple[int, int]] = {}
    for number in range(last):
        place = number % keys, number * TICK_MS // WINDOW_MS * WINDOW_MS
        count, total = expected.get(place, (0, 0))
        expected[place] = count + 1, total + number
    found: set[tuple[int, int]] = set()
    for key, start, count, total in rows:
        if (key, start) in found:
            raise ViolationError(f"the window of key {key} at {start} is there twice")
        if expected.get((key, start)) != (count, total):
            raise ViolationError(
                f"the window of key {key} at {start} has {(count, total)} and not {expected.get((key, start))}"
            )
        found.add((key, start))
    if complete and (lost := expected.keys() - found):
        raise ViolationError(f"{len(lost)} windows lost, such as {sorted(lost)[:5]}")


# ---- state


def final_state(last: int, keys: int) -> dict[int, tuple[int, int]]:
    """Key -> (count, total) after all numbers below `last`."""
    return state_at([last], keys)


def state_at(positions: Sequence[int], keys: int) -> dict[int, tuple[int, int]]:
    """Key -> (count, total) after so many numbers of each partition."""
    state: dict[int, tuple[int, int]] = {}
    for partition, end in enumerate(positions):
        for number in range(partition, partition + end * len(positions), len(positions)):
            count, total = state.get(number % keys, (0, 0))
            state[number % keys] = count + 1, total + number
    return state


def checkpoints(job: Path) -> list[Path]:
    """Completed checkpoints, oldest first."""
    found = []
    for path in job.glob("inc-*/chk-*/_metadata"):
        match = re.fullmatch(r".*/inc-(\d+)/chk-(\d+)/_metadata", str(path))
        if match:
            found.append((int(match[1]), int(match[2]), path.parent))
    return [path for _, _, path in sorted(found)]


def metadata(checkpoint: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((checkpoint / "_metadata").read_bytes().split(b"\n", 1)[1])
    return content


def positions(checkpoint: Path) -> list[int]:
    """How far it got, in each partition."""
    (source,) = metadata(checkpoint)["positions"].values()
    if "partitions" not in source:
        return [int(source["position"])]
    return [int(position) for _, _, position, _ in sorted(source["partitions"])]


def position(checkpoint: Path) -> int:
    """How many numbers it has read."""
    return sum(positions(checkpoint))


def state_of(job: Path, checkpoint: Path) -> dict[int, tuple[int, int]]:
    """Key -> (count, total), from the checkpoint's state files."""
    values: Values = {"count": {}, "total": {}}
    for chain in metadata(checkpoint)["state"]:
        database: dict[str, bytes] = {}
        part = None
        for handle in chain:
            data = (job / handle["file"]).read_bytes()
            if len(data) != handle["size"]:
                raise ViolationError(f"{handle['file']} has {len(data)} bytes, and {checkpoint} says {handle['size']}")
            if handle.get("kind") == "rocksdb":
                database[handle["name"]], part = data, handle.get("part")
            else:
                _apply(data, values, handle.get("part"))
        if database:
            _apply_database(database, values, part)
    if values["count"].keys() != values["total"].keys():
        raise ViolationError(f"{checkpoint}: counts and totals are not of the same keys")
    return {key: (values["count"][key], values["total"][key]) for key in values["count"]}


def _apply_database(files: dict[str, bytes], values: Values, part: dict[str, Any] | None) -> None:
    with tempfile.TemporaryDirectory(prefix="fschaos-oracle-") as directory:
        for name, data in files.items():
            (Path(directory) / name).write_bytes(data)
        (manifest,) = (name for name in files if name.startswith("MANIFEST"))
        (Path(directory) / "CURRENT").write_text(f"{manifest}\n")
        options = Options(raw_mode=True)
        options.create_if_missing(False)
        database = Rdict(directory, options, access_type=AccessType.read_only(False))
        rows = list(database.items())
        database.close()
    tables = {row[5:7]: json.loads(content) for row, content in rows if row[:5] == b"\0\0\0\0t"}
    for row, content in rows:
        uid, name, _ = tables.get(row[:2], ("", "", ""))
        if name in values and _belongs(uid, int.from_bytes(row[2:4], "big"), part):
            values[name][int.from_bytes(row[9:], "big", signed=True)] = pickle.loads(content)


def _belongs(uid: str, group: int, part: dict[str, Any] | None) -> bool:
    return part is None or group in range(*part["groups"].get(uid, (0, 0)))


def _apply(data: bytes, values: Values, part: dict[str, Any] | None) -> None:
    offset, length, _, magic = struct.unpack(">QLQ8s", data[-28:])
    if data[:8] != b"FSTATE\r\n" or magic != b"FSTATEND":
        raise ViolationError("a state file does not begin and end like one")
    for state in json.loads(data[offset : offset + length])["states"]:
        if state["name"] not in values:
            continue
        for group, codec, start, size, _, _ in state["blocks"]:
            if not _belongs(state["uid"], group, part):
                continue
            if codec != "plain":
                raise ViolationError(f"state {state['name']} of integers is stored as {codec}")
            (keys, puts), deleted = pickle.loads(data[start : start + size])
            values[state["name"]].update(zip(keys, puts, strict=True))
            for key in deleted:
                values[state["name"]].pop(key, None)


def check_checkpoint(job: Path, checkpoint: Path, keys: int) -> None:
    """The checkpoint's state is that of its position."""
    reached = positions(checkpoint)
    found, expected = state_of(job, checkpoint), state_at(reached, keys)
    if found != expected:
        wrong = [key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key)]
        raise ViolationError(
            f"{checkpoint} is at {reached}, but key {wrong[0]} has {found.get(wrong[0])} and not {expected.get(wrong[0])}"
        )


# ---- what must not be left


def leftovers(*directories: Path) -> list[Path]:
    """Hidden files in places of output."""
    return sorted(path for one in directories if one.is_dir() for path in one.rglob(".*") if path.is_file())


def in_doubt(job: Path, store: Path) -> list[Path]:
    """Transactions, logs and checkpoints that are neither committed nor thrown away."""
    found = [path for path in job.glob("sinks/*/*") if path.suffix in (".json", ".wal")]
    found += job.glob("inc-*/pending/*")
    found += (store / "open").glob("*") if store.is_dir() else []
    return sorted(found)

"""State files: what goes in comes out, and any damage is noticed."""

from __future__ import annotations

import datetime
import os
import pickle
import struct
import time
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.storage import LocalStorage
from firesteel.errors import CheckpointError, RestoreError
from firesteel.state.compaction import Compaction, compact
from firesteel.state.files import MAGIC, NO_GROUP, Delta, StateFile, StateFileWriter

DELTAS = [
    Delta("op", "last", "value", 3, ["a", "b"], [1.5, 2.5], []),
    Delta("op", "last", "value", 7, ["c"], [None], ["d"]),
    Delta("other", "seen", "value", 3, [("t", 1)], [datetime.date(2026, 1, 1)], []),
]


def write(path: Path, deltas: list[Delta], checkpoint: int = 1) -> dict[str, Any]:
    writer = StateFileWriter(slot=0, checkpoint=checkpoint)
    for delta in deltas:
        writer.add(delta)
    data, checksum = writer.finish()
    path.write_bytes(data)
    return {"file": path.name, "size": len(data), "checksum": checksum}


def test_deltas_come_back_as_they_went_in(tmp_path: Path) -> None:
    handle = write(tmp_path / "f", DELTAS)
    with StateFile(str(tmp_path / "f"), handle["checksum"]) as file:
        assert list(file.deltas()) == DELTAS
        assert list(file.deltas(lambda uid, group: group == 7)) == [DELTAS[1]]


def test_only_blocks_of_plain_values_are_plain(tmp_path: Path) -> None:
    write(tmp_path / "f", DELTAS)
    with StateFile(str(tmp_path / "f")) as file:
        codecs = {(s["uid"], block[0]): block[1] for s in file.footer["states"] for block in s["blocks"]}
    assert codecs == {("op", 3): "plain", ("op", 7): "plain", ("other", 3): "pickle"}


@pytest.mark.parametrize(
    ("keys", "values", "deleted", "codec"),
    [
        ([("a", 1), ("b", None)], [(1.5, 7), None], [("c", (1, b"x"))], "plain"),
        ([("a", (1, ("b", ()))), "c"], [1, 2], [], "plain"),
        ([("a", datetime.date(2026, 1, 1))], [1], [], "pickle"),
        (["a"], [("x", ("y", [1]))], [], "pickle"),
        (["a"], [1], [("a", frozenset())], "pickle"),
        (["a"], [time.struct_time(range(9))], [], "pickle"),  # a tuple, but of a class of its own
    ],
)
def test_tuples_are_as_plain_as_what_is_in_them(
    tmp_path: Path, keys: list[Any], values: list[Any], deleted: list[Any], codec: str
) -> None:
    delta = Delta("op", "m", "map", 3, keys, values, deleted)
    write(tmp_path / "f", [delta])
    with StateFile(str(tmp_path / "f")) as file:
        assert file.footer["states"][0]["blocks"][0][1] == codec
        assert list(file.deltas()) == [delta]


def test_what_belongs_to_a_subtask_is_found_beside_any_key_groups(tmp_path: Path) -> None:
    of_subtask = Delta("op", "/time", "subtask", NO_GROUP, ["watermark"], [5], [])
    write(tmp_path / "f", [*DELTAS, of_subtask])
    with StateFile(str(tmp_path / "f")) as file:
        assert list(file.deltas(lambda uid, group: group == NO_GROUP)) == [of_subtask]
        assert list(file.deltas(lambda uid, group: group in (7, NO_GROUP))) == [DELTAS[1], of_subtask]
        assert list(file.deltas(lambda uid, group: group >= 0)) == DELTAS


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    handle = write(tmp_path / "f", DELTAS)
    good = (tmp_path / "f").read_bytes()
    for position in range(len(good)):
        bad = bytearray(good)
        bad[position] ^= 1 << (position % 8)
        (tmp_path / "bad").write_bytes(bad)
        with pytest.raises(RestoreError, match="bad"), StateFile(str(tmp_path / "bad"), handle["checksum"]) as file:
            file.verify()


def test_every_torn_length_is_noticed(tmp_path: Path) -> None:
    handle = write(tmp_path / "f", DELTAS)
    good = (tmp_path / "f").read_bytes()
    for length in range(len(good)):
        (tmp_path / "torn").write_bytes(good[:length])
        with pytest.raises(RestoreError, match="torn"), StateFile(str(tmp_path / "torn"), handle["checksum"]) as file:
            file.verify()


def test_a_newer_format_is_refused_with_the_way_out(tmp_path: Path) -> None:
    write(tmp_path / "f", DELTAS)
    data = (tmp_path / "f").read_bytes()
    (tmp_path / "f").write_bytes(MAGIC + struct.pack(">H", 99) + data[len(MAGIC) + 2 :])
    with pytest.raises(RestoreError, match=r"format 99, newer than 1.*install the firesteel that wrote it"):
        StateFile(str(tmp_path / "f"))


def test_another_file_in_the_place_of_the_recorded_one_is_noticed(tmp_path: Path) -> None:
    handle = write(tmp_path / "f", DELTAS)
    write(tmp_path / "f", DELTAS[:1])
    with pytest.raises(RestoreError, match="which the checkpoint recorded"):
        StateFile(str(tmp_path / "f"), handle["checksum"])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RestoreError, match=r"gone.state cannot be opened: No such file"):
        StateFile(str(tmp_path / "gone.state"))


def test_a_plain_block_that_names_a_class_is_refused(tmp_path: Path) -> None:
    """Plain blocks are data, whoever wrote them: reading them never runs code."""
    writer = StateFileWriter(0, 1)
    writer.add(Delta("op", "last", "value", 3, [os.system], [], []))
    writer._footer["states"][0]["blocks"][0][1] = "plain"
    (tmp_path / "f").write_bytes(writer.finish()[0])
    with pytest.raises(RestoreError, match="tampered"), StateFile(str(tmp_path / "f")) as file:
        list(file.deltas())


def test_compacting_a_chain_keeps_the_latest_of_every_key(tmp_path: Path) -> None:
    chain = [
        write(tmp_path / "base", [Delta("op", "last", "value", 1, ["a", "b", "c"], [1, 2, 3], [])]),
        write(tmp_path / "d1", [Delta("op", "last", "value", 1, ["a"], [10], ["b"])], checkpoint=2),
        write(tmp_path / "d2", [Delta("op", "last", "value", 1, ["b", "d"], [20, 40], ["c"])], checkpoint=3),
    ]
    handle = compact(LocalStorage(str(tmp_path)), "merged", chain)
    with StateFile(str(tmp_path / "merged"), handle["checksum"]) as file:
        (delta,) = file.deltas()
    assert dict(zip(delta.keys, delta.values, strict=True)) == {"a": 10, "b": 20, "d": 40}
    assert delta.deleted == []
    assert file.footer["checkpoint"] == 3


def test_compacting_merges_what_is_in_lists_and_maps_and_timers(tmp_path: Path) -> None:
    def op(name: str, kind: str, keys: list[Any], changes: list[Any], deleted: list[Any]) -> Delta:
        return Delta("op", name, kind, 1, keys, changes, deleted)

    chain = [
        write(
            tmp_path / "base",
            [
                op("l", "list", ["k", "j"], [(0, (1, 2, 3)), (0, (1,))], []),
                op("m", "map+ttl", ["k", "j"], [(("a", "b"), (1, None), ()), (("a",), (1,), ())], []),
                op("t", "timers", ["k", "j"], [((5, 6), ()), ((7,), ())], []),
            ],
        ),
        write(tmp_path / "d1", [op("l", "list", ["k"], [(1, (9,))], ["j"])], checkpoint=2),
        write(tmp_path / "d2", [op("l", "list", ["k"], [(2, (8, 7))], [])], checkpoint=3),
        write(tmp_path / "d3", [op("m", "map+ttl", ["k", "j"], [(("c",), (3,), ("a",)), ((), (), ("a",))], [])]),
        write(tmp_path / "d4", [op("t", "timers", ["k", "j"], [((4,), (5,)), ((), (7, 8))], [])]),
        write(tmp_path / "d5", [Delta("op", "/time", "subtask", NO_GROUP, ["w"], [5], ["x"])], checkpoint=4),
    ]
    handle = compact(LocalStorage(str(tmp_path)), "merged", chain)
    with StateFile(str(tmp_path / "merged"), handle["checksum"]) as file:
        assert list(file.deltas()) == [
            op("l", "list", ["k"], [(0, (1, 9, 8, 7))], []),
            op("m", "map+ttl", ["k"], [(("b", "c"), (None, 3), ())], []),
            op("t", "timers", ["k"], [((6, 4), ())], []),
            Delta("op", "/time", "subtask", NO_GROUP, ["w"], [5], []),
        ]


def test_a_compaction_runs_in_its_own_process_and_says_why_it_failed(tmp_path: Path) -> None:
    chain = [write(tmp_path / "base", DELTAS[:1])]
    compaction = Compaction(LocalStorage(str(tmp_path)), "merged", chain, pickle.dumps({}))
    assert compaction.result()["file"] == "merged"
    broken = Compaction(LocalStorage(str(tmp_path)), "merged2", [{**chain[0], "checksum": "0" * 16}], pickle.dumps({}))
    with pytest.raises(CheckpointError, match="which the checkpoint recorded"):
        broken.result()

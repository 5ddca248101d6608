"""Examples that come with PyFlink, on a real Spark, with only their imports changed: they print what PyFlink 2.3 prints.

PyFlink's output was recorded with apache-flink 2.3.0. Records of different keys may come in another order here.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from examples.flink.run import source_of
from tests.examples.running import Runner, of


def lines(spark: Runner, example: str, *arguments: str) -> list[str]:
    """What it prints, without what firesteel logs: some of the examples send their log to standard output."""
    printed = spark.run("flink/run.py", example, *arguments)
    return [line for line in printed if not line.startswith(("job '", "runtime mode BATCH"))]


def test_basic_operations(spark: Runner) -> None:
    printed = lines(spark, "basic_operations")
    flink = """(1, '{"name": "Flink", "tel": 124, "addr": {"country": "Germany", "city": "Berlin"}}')"""
    assert printed == [  # with one subtask the order is defined
        flink,
        """(2, '{"name": "hello", "tel": 136, "addr": {"country": "China", "city": "Shanghai"}}')""",
        """(3, '{"name": "world", "tel": 125, "addr": {"country": "USA", "city": "NewYork"}}')""",
        """(4, '{"name": "PyFlink", "tel": 33, "addr": {"country": "China", "city": "Hangzhou"}}')""",
        flink,
        "('Germany', 123)",
        "('China', 135)",
        "('USA', 124)",
        "('China', 167)",
    ]


def test_state_access(spark: Runner) -> None:
    printed = lines(spark, "state_access")
    alice = ("110.0999984741211", "130.0999984741211", "143.19999885559082", "163.29999923706055")
    bob = ("30.200000762939453", "83.29999923706055", "86.39999914169312", "102.49999952316284")
    assert of("Alice", printed) == [f"('Alice', {total})" for total in alice]
    assert of("Bob", printed) == [f"('Bob', {total})" for total in bob]
    assert len(printed) == 8


def test_event_time_timer(spark: Runner) -> None:
    printed = lines(spark, "event_time_timer")
    assert of("Alice", printed) == ["('Alice', 163.29999923706055)"] * 4
    assert of("Bob", printed) == ["('Bob', 102.49999952316284)"] * 4
    assert len(printed) == 8


def test_process_json_data(spark: Runner) -> None:
    assert sorted(lines(spark, "process_json_data")) == [
        "(2, {'name': 'hello', 'tel': 136, 'addr': {'country': 'China', 'city': 'Shanghai'}})",
        "(4, {'name': 'PyFlink', 'tel': 33, 'addr': {'country': 'China', 'city': 'Hangzhou'}})",
    ]


def words_of(example: str) -> list[str]:
    """The words that the example counts by itself, in their order."""
    (assigned,) = [
        node
        for node in ast.walk(ast.parse(source_of(example)))
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "word_count_data"
    ]
    return [word for line in ast.literal_eval(assigned.value) for word in line.split()]


def counted(words: list[str]) -> list[str]:
    """Every update, as a stream has them: PyFlink's BATCH mode shows the last one of each word only."""
    seen: Counter[str] = Counter()
    updates = []
    for word in words:
        seen[word] += 1
        updates.append(f"({word},{seen[word]})")
    return updates


def test_word_count_to_standard_output(spark: Runner) -> None:
    printed = lines(spark, "word_count")
    assert printed[:3] == [
        "Executing word_count example with default input data set.",
        "Use --input to specify file input.",
        "Printing result to stdout. Use --output to specify output path.",
    ]
    assert printed[3:] == counted(words_of("word_count"))


def test_word_count_from_a_file_to_files(spark: Runner, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("hadoop hadoop\nhadoop\nhive hadoop\n")
    output = tmp_path / "out"
    assert lines(spark, "word_count", "--input", str(tmp_path / "in.txt"), "--output", str(output)) == []
    (written,) = output.iterdir()  # one subtask, one file, nothing in progress
    assert written.name.startswith("prefix-") and written.suffix == ".ext"
    updates = written.read_text().splitlines()
    assert updates == counted(["hadoop", "hadoop", "hadoop", "hive", "hadoop"])


def test_word_count_of_its_own_text_to_files(spark: Runner, tmp_path: Path) -> None:
    lines(spark, "word_count", "--output", str(tmp_path / "out"))
    (written,) = (tmp_path / "out").iterdir()
    assert written.read_text().splitlines() == counted(words_of("word_count"))


WINDOWING = {
    "tumbling_time_window": ["(hi,0,5,4)", "(hi,5,10,3)", "(hi,15,20,1)"],
    "sliding_time_window": [
        "(hi,-2,3,2)",
        "(hi,0,5,4)",
        "(hi,2,7,4)",
        "(hi,4,9,3)",
        "(hi,6,11,2)",
        "(hi,8,13,2)",
        "(hi,12,17,1)",
        "(hi,14,19,1)",
    ],
    "session_with_gap_window": ["(hi,1,14,6)", "(hi,15,20,1)"],
    "session_with_dynamic_gap_window": ["(hi,1,30,7)"],
    "tumbling_count_window": ["(hi,4)", "(hello,6)", "(hello,12)"],
}


@pytest.mark.parametrize("example", WINDOWING)
def test_windowing(spark: Runner, example: str) -> None:
    printed = lines(spark, f"windowing/{example}")
    assert printed[0] == "Printing result to stdout. Use --output to specify output path."
    for key in ("(hi,", "(hello,"):
        assert of(key, printed) == of(key, WINDOWING[example])

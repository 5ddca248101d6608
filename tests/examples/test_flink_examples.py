"""Examples that come with PyFlink, on a real Spark, with only their imports changed: they print what PyFlink 2.3 prints.

PyFlink's output was recorded with apache-flink 2.3.0. Records of different keys may come in another order here.
"""

from __future__ import annotations

from tests.examples.running import Runner, of


def lines(spark: Runner, example: str) -> list[str]:
    """What it prints, without what firesteel logs: two of the examples send their log to standard output."""
    return [line for line in spark.run("flink/run.py", example) if not line.startswith("job '")]


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

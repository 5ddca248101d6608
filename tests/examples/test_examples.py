"""What every example prints, run as a program but without Spark; test_examples_on_spark.py runs some of them on one."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.examples.running import EXAMPLES, REPOSITORY, Runner, of

ALL = sorted(path.name for path in EXAMPLES.glob("*.py"))
OTHERS = {"custom_source.py", "custom_sink.py", "unit_testing.py"}  # longer, and about more than a function
NO_GUARD = {"sensor_alert.py"}  # as short as the README needs it


def test_word_count_emits_one_update_per_word(local: Runner) -> None:
    lines = local.run("word_count.py")
    assert of("hadoop", lines) == [f"('hadoop', {count})" for count in (1, 2, 3, 4)]
    assert of("hive", lines) == ["('hive', 1)"]
    assert len(lines) == 5


def test_running_average_is_kept_in_value_state(local: Runner) -> None:
    assert local.run("running_average.py") == [f"key 1: average {average}" for average in (4.0, 5.0, 4.75, 4.2)]


def test_the_average_of_three_is_the_same_by_list_state_and_by_map_state(local: Runner) -> None:
    lines = local.run("average_of_three.py")
    assert sorted(lines) == ["list> (1,5.0)", "list> (2,4.0)", "map> (1,5.0)", "map> (2,4.0)"]


def test_reducing_state_has_the_average_after_each_value(local: Runner) -> None:
    lines = local.run("reducing_state.py")
    assert of("(1,", lines) == ["(1,3.0)", "(1,4.0)", "(1,5.0)"]
    assert of("(2,", lines) == ["(2,4.0)", "(2,3.0)", "(2,4.0)"]


def test_aggregating_state_turns_numbers_into_a_text(local: Runner) -> None:
    lines = local.run("aggregating_state.py")
    assert of("(1,", lines) == ["(1,Contains-3.0)", "(1,Contains-3.0-5.0)", "(1,Contains-3.0-5.0-7.0)"]
    assert of("(2,", lines) == ["(2,Contains-4.0)", "(2,Contains-4.0-2.0)", "(2,Contains-4.0-2.0-6.0)"]


def test_windows_count_and_compare(local: Runner) -> None:
    lines = local.run("windows.py")
    ann = ["ann: 2 until 5 s", "ann: 3 until 10 s", "ann: 1 until 15 s", "ann: 1 until 70 s", "ann: 1 until 75 s"]
    assert of("counts> ann", lines) == [f"counts> {line}" for line in ann]
    bob = ["bob: 1 until 5 s", "bob: 1 until 10 s", "bob: 1 until 15 s", "bob: 1 until 20 s"]
    assert of("counts> bob", lines) == [f"counts> {line}" for line in bob]
    assert of("slowest", lines) == ["slowest of three> ('ann', 30, 4)"]


def test_percentiles_are_those_of_an_hour(local: Runner) -> None:
    def nearest_rank(percent: int, numbers: list[int]) -> int:
        return next(n for n in sorted(numbers) if sum(m <= n for m in numbers) * 100 >= percent * len(numbers))

    lines = local.run("percentiles.py")
    hours = [[20 + number * 37 % 100 for number in range(hour * 120, hour * 120 + 120)] for hour in (0, 1)]
    hours[0] += [900, 950]
    assert of("/cart", lines) == [
        f"/cart in hour {hour}: p75 {nearest_rank(75, took)} ms, p99 {nearest_rank(99, took)} ms of {len(took)}"
        for hour, took in enumerate(hours)
    ]
    assert of("/help", lines) == ["/help in hour 1: p75 5 ms, p99 5 ms of 1"]


def test_late_windows_are_corrected_and_what_is_too_late_goes_to_a_side_output(local: Runner) -> None:
    lines = local.run("late_windows.py")
    assert of("too late> ", lines) == ["too late> (oven,50)"]
    counts = ["minute 0: 2", "minute 0: 3", "minute 1: 2", "minute 2: 1"]
    assert of("count> ", lines) == [f"count> oven, {count}" for count in counts]


def test_visits_are_sessions_and_pages_are_ranked(local: Runner) -> None:
    lines = local.run("visits.py")
    visits = ["ann: home-cart-home in 3 min", "ann: help-cart in 1 min", "bob: home-help in 7 min"]
    assert sorted(of("visit>", lines)) == sorted(f"visit> {line}" for line in visits)
    assert of("top", lines) == [
        "top> until minute 10: [('home', 3), ('cart', 1)]",
        "top> until minute 50: [('cart', 1), ('help', 1)]",
    ]
    assert of("slowest", lines) == ["slowest of five> ('ann', 'help', 90, 45)"]
    assert of("average", lines) == ["average of three> 30.0"]


def test_sensor_alert_compares_readings_of_one_sensor_only(local: Runner) -> None:
    assert local.run("sensor_alert.py") == ["oven went from 24.5 to 61.0"]


def test_temperature_alert_does_not_alert_on_first_readings(local: Runner) -> None:
    alerts = ["('oven', 24.5, 61.0)", "('cellar', 12.5, 1.0)"]
    lines = local.run("temperature_alert.py")
    assert sorted(lines) == sorted(f"{how}> {alert}" for how in ("class", "function") for alert in alerts)


def test_buffering_sink_prints_two_records_together(local: Runner) -> None:
    assert local.run("buffering_sink.py") == ["to and be", "or and not", "to and be", "that and is"]


def test_rising_temperature_alerts_for_the_sensor_that_rose_long_enough(local: Runner) -> None:
    assert local.run("rising_temperature.py") == ["oven has been rising since 4000"]


def test_deduplication_lets_each_event_through_once(local: Runner) -> None:
    assert sorted(local.run("deduplication.py")) == ["('e1', 'login')", "('e2', 'buy')", "('e3', 'logout')"]


def test_side_outputs_split_the_stream(local: Runner) -> None:
    lines = local.run("side_outputs.py")
    assert sorted(of("readings> ", lines)) == [
        "readings> (cellar,12.0)",
        "readings> (oven,180.5)",
        "readings> (roof,-8.0)",
        "readings> (yard,-3.5)",
        "readings> (yard,1.5)",
    ]
    assert sorted(of("cold> ", lines)) == ["cold> roof is freezing", "cold> yard is freezing"]
    assert of("broken> ", lines) == ["broken> oven ?"]


def test_enrichment_gives_readings_the_place_of_their_sensor(local: Runner) -> None:
    lines = local.run("enrichment.py")
    assert of("s1", lines) == ["(s1,kitchen,20.0)", "(s1,kitchen,21.5)"]
    assert of("s2", lines) == ["(s2,cellar,12.5)", "(s2,cellar,12.0)"]
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("method", "rows"),
    [
        ("sum", ["oven,1,20", "oven,1,55", "oven,1,70", "oven,1,105"]),
        ("min", ["oven,1,20", "oven,1,20", "oven,1,15", "oven,1,15"]),
        ("max", ["oven,1,20", "oven,1,35", "oven,1,35", "oven,1,35"]),
        ("min_by", ["oven,1,20", "oven,1,20", "oven,3,15", "oven,3,15"]),
        ("max_by", ["oven,1,20", "oven,2,35", "oven,2,35", "oven,2,35"]),
    ],
)
def test_rolling_aggregates_give_one_update_per_record(local: Runner, method: str, rows: list[str]) -> None:
    lines = local.run("rolling_aggregates.py")
    assert of(f"{method}> +I[oven", lines) == [f"{method}> +I[{row}]" for row in rows]
    assert of(f"{method}> +I[cellar", lines) == [f"{method}> +I[cellar,4,12]"]


def test_partitioning_sends_records_where_it_says(local: Runner) -> None:
    lines = local.run("partitioning.py")
    places = {how: Counter(line[-1] for line in of(f"{how}: ", lines)) for how in ("rebalance", "global", "broadcast")}
    assert places == {"rebalance": {"0": 2, "1": 2}, "global": {"0": 4}, "broadcast": {"0": 4, "1": 4}}
    assert sorted(of("custom: ", lines)) == [f"custom: {n} at subtask {n % 2}" for n in (1, 2, 3, 4)]
    assert len(of("shuffle: ", lines)) == 4
    by_key = dict(line.removeprefix("key_by: ").split(" at ") for line in of("key_by: ", lines))
    assert by_key["1"] == by_key["3"] and by_key["2"] == by_key["4"]


def test_metrics_count_what_the_job_parameter_rules_out(local: Runner) -> None:
    assert local.run("metrics.py") == ["20.5", "180.0", "21.0", "22.5", "dropped: 2"]


def test_custom_source_reads_every_row_once(local: Runner, tmp_path: Path) -> None:
    lines = local.run("custom_source.py", str(tmp_path / "readings.db"))
    assert sorted(lines) == ["cellar: 12.0", "cellar: 12.5", "oven: 180.5", "oven: 181.0"]


def test_custom_sink_inserts_every_row_once(local: Runner, tmp_path: Path) -> None:
    assert local.run("custom_sink.py", str(tmp_path)) == ["be 2", "not 1", "or 1", "to 2"]


def test_temperature_jump_compares_any_two_readings_within_a_minute(local: Runner) -> None:
    assert local.run("temperature_jump.py") == ["oven went from 20.0 to 41.0 within 49 seconds"]


def test_three_rises_counts_only_those_within_a_minute(local: Runner) -> None:
    assert local.run("three_rises.py") == ["oven rose from 20.0 to 30.0 within 19 seconds"]


def test_funnel_tells_orders_from_those_who_gave_up(local: Runner) -> None:
    outcomes = ["(ann,ordered)", "(bob,gave up after cart)", "(cid,gave up after view)"]
    assert sorted(local.run("funnel.py")) == outcomes


def test_late_readings_go_to_a_side_output_of_their_own(local: Runner) -> None:
    lines = local.run("late_readings.py")
    assert of("late> ", lines) == ["late> (oven,55,99.0)"]
    averages = [(0, 22.0), (1, 31.0), (2, 10.0)]
    assert of("average> ", lines) == [f"average> oven, minute {minute}: {average}" for minute, average in averages]


def test_broadcast_enrichment_converts_what_came_before_its_rate_and_after_it(local: Runner) -> None:
    assert sorted(local.run("broadcast_enrichment.py")) == ["(ann,20.0)", "(ann,60.0)", "(bob,60.0)"]


# ---- about all of them


def test_readme_shows_the_sensor_alert_example_as_it_is() -> None:
    assert f"```python\n{(EXAMPLES / 'sensor_alert.py').read_text()}```" in (REPOSITORY / "README.md").read_text()


@pytest.mark.parametrize("example", ALL)
def test_every_example_is_tested(example: str) -> None:
    mentions = f'.run("{example}"', f"examples/{example}", f"examples.{example.removesuffix('.py')} import"
    tests = [path.read_text() for path in (REPOSITORY / "tests").rglob("test_*.py")]
    assert any(mention in text for text in tests for mention in mentions)


@pytest.mark.parametrize("example", sorted({*ALL, "flink/run.py"} - OTHERS))
def test_every_example_is_short_and_explains_itself(example: str) -> None:
    text = (EXAMPLES / example).read_text()
    assert ast.get_docstring(ast.parse(text))
    assert len(text.splitlines()) < 80
    assert 'if __name__ == "__main__":' in text or example in NO_GUARD

"""Sources that fall silent, across failures."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Duration, WatermarkStrategy
from firesteel.datastream import ProcessFunction, StreamExecutionEnvironment
from firesteel.testing import GraphHarness
from tests.support.scheduled import Scheduled


class Watermarks(ProcessFunction):
    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        yield value, ctx.timer_service().current_watermark()


def run(spread: str, fail_at: tuple[int, ...]) -> list[Any]:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)
    busy = env.from_source(Scheduled([10], [20], [30], [40], [50], [60], [70]), strategy, "busy")
    silent = env.from_source(
        Scheduled([5], [], [], [25], [], [31], [32]), strategy.with_idleness(Duration.of_millis(100)), "silent"
    )
    both = getattr(busy.union(silent), spread)().process(Watermarks())
    with GraphHarness(env, collect=both, checkpoint_every=1) as h:
        for epoch in range(1, 8):
            h.step()
            if epoch in fail_at:
                h.fail()
            h.advance_clock(150 if epoch < 3 else 0)
        return sorted(h.results())


@pytest.mark.parametrize("spread", ["forward", "rebalance"])
@pytest.mark.parametrize("fail_at", [(1,), (2,), (3,), (4,), (1, 2, 3, 4, 5, 6)])
def test_a_source_that_was_idle_counts_again_when_it_speaks_also_after_a_restore(
    spread: str, fail_at: tuple[int, ...]
) -> None:
    assert run(spread, fail_at) == run(spread, ())

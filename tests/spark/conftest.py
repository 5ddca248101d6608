"""One embedded Spark for all tests here: it is started once and ends with the test process."""

from __future__ import annotations

import pytest

from firesteel.common import RestartStrategies
from firesteel.datastream import StreamExecutionEnvironment


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    environment = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    return environment.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 50))

from datetime import timedelta

import pytest

from firesteel.common import (
    ExecutionConfig,
    JobClient,
    JobExecutionResult,
    JobID,
    JobStatus,
    RestartStrategies,
)


def test_only_finished_failed_and_canceled_jobs_are_over_for_good():
    over = {status.name for status in JobStatus if status.is_globally_terminal_state()}
    assert over == {"FINISHED", "FAILED", "CANCELED"}
    assert {s for s in JobStatus if s.is_terminal_state()} == {JobStatus[name] for name in (*over, "SUSPENDED")}


def test_job_ids_are_values():
    assert JobID("a") == JobID("a")
    assert JobID.generate() != JobID.generate()
    assert len(str(JobID.generate())) == 32


def test_a_result_tells_id_runtime_and_accumulators():
    result = JobExecutionResult(JobID("abc"), 12, {"records": 5})
    assert str(result.get_job_id()) == "abc"
    assert result.get_net_runtime() == 12
    assert result.get_accumulator_result("records") == 5
    assert result.get_accumulator_result("none") is None
    assert result.get_all_accumulator_results() == {"records": 5}
    assert result.is_job_execution_result()
    assert str(result).splitlines()[:3] == [
        "Program execution finished",
        "Job with JobID abc has finished.",
        "Job Runtime: 12 ms",
    ]


def test_a_job_client_must_implement_everything():
    with pytest.raises(TypeError, match="abstract"):
        JobClient()


def test_restart_strategies_take_milliseconds_timedeltas_and_texts():
    strategy = RestartStrategies.fixed_delay_restart(3, 10_000)
    assert strategy == RestartStrategies.fixed_delay_restart(3, timedelta(seconds=10))
    assert strategy == RestartStrategies.fixed_delay_restart(3, "10 s")
    assert strategy.get_restart_attempts() == 3
    assert strategy.get_delay_between_attempts_interval() == timedelta(seconds=10)
    assert "3 times" in strategy.get_description()


def test_restart_strategies_are_found_under_pyflinks_class_names():
    strategies = RestartStrategies
    assert strategies.no_restart() == strategies.NoRestartStrategyConfiguration()
    assert isinstance(strategies.fall_back_restart(), strategies.FallbackRestartStrategyConfiguration)
    rate = strategies.failure_rate_restart(2, "1 min", "1 s")
    assert isinstance(rate, strategies.FailureRateRestartStrategyConfiguration)
    assert rate.get_failure_interval() == timedelta(minutes=1)
    assert strategies.exponential_delay_restart().get_max_backoff() == timedelta(minutes=1)


def test_senseless_restart_strategies_are_refused():
    with pytest.raises(ValueError, match="restart_attempts must be at least 0"):
        RestartStrategies.fixed_delay_restart(-1, 0)
    with pytest.raises(ValueError, match="max_backoff must be at least 5000"):
        RestartStrategies.exponential_delay_restart("5 s", "1 s")
    with pytest.raises(ValueError, match="jitter_factor must be between 0 and 1"):
        RestartStrategies.exponential_delay_restart(jitter_factor=2)


def test_execution_config_starts_unset_and_checks_what_is_set():
    config = ExecutionConfig()
    assert config.get_parallelism() == ExecutionConfig.PARALLELISM_DEFAULT
    assert config.get_max_parallelism() == -1
    config.set_parallelism(2).set_max_parallelism(16).set_auto_watermark_interval(50)
    config.set_global_job_parameters({"a": 1})
    assert (config.get_parallelism(), config.get_max_parallelism()) == (2, 16)
    assert config.get_auto_watermark_interval() == 50
    assert config.get_global_job_parameters() == {"a": "1"}
    with pytest.raises(ValueError, match="at least 1"):
        config.set_parallelism(0)
    with pytest.raises(ValueError, match="between 1 and 32768"):
        config.set_max_parallelism(40_000)

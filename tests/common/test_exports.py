import importlib

import pytest

from firesteel import common


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("typeinfo", "Types"),
        ("types", "Row"),
        ("time", "Duration"),
        ("configuration", "Configuration"),
        ("config_options", "ConfigOptions"),
        ("execution_config", "ExecutionConfig"),
        ("job_client", "JobClient"),
        ("job_status", "JobStatus"),
        ("job_id", "JobID"),
        ("job_execution_result", "JobExecutionResult"),
        ("restart_strategy", "RestartStrategies"),
        ("serialization", "Encoder"),
        ("serializer", "TypeSerializer"),
        ("completable_future", "CompletableFuture"),
    ],
)
def test_names_are_where_pyflink_has_them(module, name):
    assert getattr(importlib.import_module(f"firesteel.common.{module}"), name) is getattr(common, name)


def test_everything_exported_exists():
    assert all(hasattr(common, name) for name in common.__all__)

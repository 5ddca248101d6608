"""Which session is handed out, and which settings and sessions are refused. No JVM is started here."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import SimpleNamespace

import pytest

from firesteel.engine import session
from firesteel.engine.session import check_settings
from firesteel.errors import ConfigurationError


@pytest.fixture(scope="module", autouse=True)
def no_session_of_other_tests() -> None:
    """These tests are about which session is found, so none may be left over."""
    session.stop_embedded()


class FakeSpark:
    """An embedded Spark without a JVM, to see which one is handed out."""

    fits = session.EmbeddedSpark.fits

    def __init__(self, master: str, settings: Mapping[str, str], partitions: int | None = None) -> None:
        self.master, self.settings, self.users, self.owner = master, dict(settings), 0, os.getpid()
        self.spark, self.running = SimpleNamespace(sparkContext=self), True
        self.sc = self

    def alive(self) -> bool:
        return self.running

    def stop(self) -> None:
        self.running = False


@pytest.fixture
def fake_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "EmbeddedSpark", FakeSpark)
    monkeypatch.setattr(session, "_embedded", None)
    monkeypatch.setattr("firesteel.engine.spark_private.is_stopped", lambda sc: not sc.running)
    monkeypatch.setattr("firesteel.engine.spark_private.is_alive", lambda sc: sc.running)


@pytest.mark.usefixtures("fake_spark")
def test_jobs_with_equal_settings_share_the_embedded_session_also_one_after_the_other() -> None:
    first = session.acquire(4, {"spark.x": "1"})
    assert first.sc.master == "local[12]"
    assert session.acquire(8, {"spark.x": "1"}).sc is first.sc  # at the same time: the cores there are
    first.release()
    assert session.acquire(2, {"spark.x": "1"}).sc is first.sc


@pytest.mark.usefixtures("fake_spark")
def test_other_settings_replace_the_embedded_session_only_when_nobody_uses_it() -> None:
    first = session.acquire(2, {})
    with pytest.raises(ConfigurationError, match="Wait for the first job to end"):
        session.acquire(2, {"spark.x": "1"})
    with pytest.raises(ConfigurationError, match=r"master local\[3\]"):
        session.acquire(2, {}, "local[3]")
    first.release()
    first.release()  # a second time is no second user
    second = session.acquire(2, {"spark.x": "1"})
    assert (first.alive(), second.alive()) == (False, True)
    second.release()
    assert session.acquire(4, {"spark.x": "1"}).sc.master == "local[12]"  # more cores, now that nobody minds


@pytest.mark.usefixtures("fake_spark")
def test_a_dead_session_is_replaced_although_its_job_still_holds_it() -> None:
    first = session.acquire(2, {})
    first.sc.stop()
    second = session.acquire(2, {})
    assert second.alive()
    first.release()
    with pytest.raises(ConfigurationError, match="Wait for the first job"):  # the second one's job still runs
        session.acquire(2, {"spark.x": "1"})


@pytest.mark.usefixtures("fake_spark")
def test_the_users_settings_cannot_break_the_guarantee() -> None:
    with pytest.raises(ConfigurationError, match=r"spark\.speculation is true, and must be false"):
        session.acquire(2, {"spark.speculation": "true"})
    with pytest.raises(ConfigurationError, match=r"spark\.task\.maxFailures is 4"):
        session.acquire(2, {"spark.master": "spark://there:7077", "spark.task.maxFailures": "4"})


@pytest.mark.parametrize(
    "conf",
    [
        {"spark.master": "local"},
        {"spark.master": "local[4]", "spark.task.maxFailures": "4"},
        {"spark.master": "local[*,1]"},
        {"spark.master": "yarn", "spark.task.maxFailures": "1", "spark.speculation": "false"},
        {"spark.master": "local[2]", "spark.stage.maxConsecutiveAttempts": "1"},
    ],
)
def test_settings_that_keep_the_guarantee_pass(conf: dict[str, str]) -> None:
    check_settings(conf)


def test_all_settings_that_break_the_guarantee_are_named_in_one_error() -> None:
    with pytest.raises(ConfigurationError) as error:
        check_settings(
            {
                "spark.master": "spark://there:7077",
                "spark.speculation": "TRUE",
                "spark.dynamicAllocation.enabled": "true",
                "spark.stage.maxConsecutiveAttempts": "4",
            }
        )
    assert str(error.value).splitlines()[1:] == [
        "  spark.speculation is TRUE, and must be false: "
        ".config('spark.speculation', 'false'), or --conf spark.speculation=false",
        "  spark.dynamicAllocation.enabled is true, and must be false: "
        ".config('spark.dynamicAllocation.enabled', 'false'), or --conf spark.dynamicAllocation.enabled=false",
        "  spark.task.maxFailures is 4 (Spark's default), and must be 1: "
        ".config('spark.task.maxFailures', '1'), or --conf spark.task.maxFailures=1",
        "  spark.stage.maxConsecutiveAttempts is 4, and must be 1: "
        ".config('spark.stage.maxConsecutiveAttempts', '1'), or --conf spark.stage.maxConsecutiveAttempts=1",
    ]


def test_a_local_master_that_retries_tasks_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"local\[2, 3\].*tried 3 times.*--master local\[2\]"):
        check_settings({"spark.master": "local[2, 3]"})


@pytest.mark.parametrize("name", ["SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"])
def test_spark_connect_is_refused_with_the_reason(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "sc://there")
    with pytest.raises(ConfigurationError, match=f"{name}=sc://there.*no RDD API.*classic session"):
        session.acquire(1, {})


def test_spark_connect_asked_for_by_a_setting_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"spark\.remote=sc://there"):
        session.acquire(1, {"spark.remote": "sc://there"})
    with pytest.raises(ConfigurationError, match="master is sc://there"):
        session.acquire(1, {}, "sc://there")


def test_an_active_connect_session_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class SparkSession:  # the real one needs grpc
        getActiveSession = staticmethod(lambda: object())

    module = type(sys)("pyspark.sql.connect.session")
    module.SparkSession = SparkSession  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyspark.sql.connect.session", module)
    with pytest.raises(ConfigurationError, match="active SparkSession is a Spark Connect session"):
        session.acquire(1, {})

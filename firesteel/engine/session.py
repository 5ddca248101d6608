"""The Spark session that jobs run in: the user's own if there is one, else one embedded in firesteel.

A given session is used as it is, after a check that its settings keep the guarantee. The embedded one is
started by the first job, shared by later ones, and gone when the process ends: no process, no directory and
no output is left behind.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from firesteel.engine import cores, spark_private
from firesteel.engine.java import find_java
from firesteel.engine.scratch import ScratchDir
from firesteel.errors import ConfigurationError

APP_NAME = "firesteel"

GUARANTEE = {
    "spark.speculation": "false",
    "spark.dynamicAllocation.enabled": "false",
    "spark.task.maxFailures": "1",
    "spark.stage.maxConsecutiveAttempts": "1",
}
"""What exactly-once needs: Spark runs no task of an epoch twice and takes no executor with its slots away."""

_LOG4J = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.log.ref = log
appender.log.type = Console
appender.log.name = log
appender.log.target = SYSTEM_ERR
appender.log.layout.type = PatternLayout
appender.log.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""


# -- settings ------------------------------------------------------------------------------------------------


def check_settings(conf: Mapping[str, str]) -> None:
    """Refuse settings with which Spark could run part of an epoch twice; one error names all of them.

    `local[...]` masters have a retry limit of their own, 1 unless they say `local[N,F]`, and do not look at
    spark.task.maxFailures. spark.stage.maxConsecutiveAttempts is refused only when someone has set it: a
    stage is attempted again only after shuffle files were lost, and then the slots see a second attempt and
    fail the epoch. So Spark's default of 4 is harmless, but a set value is a wish that would not be granted.
    """
    problems = []

    def needs(key: str, value: str) -> None:
        wanted = GUARANTEE.get(key, "")
        problems.append(
            f"{key} is {value}, and must be {wanted}: .config({key!r}, {wanted!r}), or --conf {key}={wanted}"
        )

    for key in ("spark.speculation", "spark.dynamicAllocation.enabled"):
        if conf.get(key, "false").strip().lower() == "true":
            needs(key, conf[key])
    master = conf.get("spark.master", "")
    local = re.fullmatch(r"local(?:\[\s*(\w+|\*)\s*(?:,\s*(\d+)\s*)?\])?", master)
    if local is None:
        if conf.get("spark.task.maxFailures", "4").strip() != "1":
            needs("spark.task.maxFailures", conf.get("spark.task.maxFailures", "4 (Spark's default)"))
    elif local[2] and int(local[2]) > 1:
        problems.append(
            f"spark.master is {master}, and its tasks must not be tried {local[2]} times: "
            f".master('local[{local[1]}]'), or --master local[{local[1]}]"
        )
    if conf.get("spark.stage.maxConsecutiveAttempts", "1").strip() != "1":
        needs("spark.stage.maxConsecutiveAttempts", conf["spark.stage.maxConsecutiveAttempts"])
    if problems:
        raise ConfigurationError(
            "Spark must not retry or duplicate tasks on its own, because a record would be counted twice; "
            "firesteel restarts from the last checkpoint instead. Change these settings of the Spark session:"
            + "".join(f"\n  {problem}" for problem in problems)
        )


def refuse_spark_connect(settings: Mapping[str, str], master: str | None) -> None:
    reason = spark_private.connect_session_in_use(os.environ)
    if reason is None and "spark.remote" in settings:
        reason = f"spark.remote={settings['spark.remote']} is set"
    if reason is None and (master or "").startswith("sc://"):
        reason = f"the master is {master}"
    if reason is not None:
        raise ConfigurationError(
            f"firesteel cannot run over Spark Connect ({reason}): Connect has no RDD API, so the partitions "
            "of an epoch cannot be sent to the slots that hold their state. Unset SPARK_REMOTE and use a "
            "classic session, SparkSession.builder.master(...).getOrCreate(), or none: firesteel starts one."
        )


def _embedded_settings(master: str, settings: Mapping[str, str], scratch: ScratchDir) -> dict[str, str]:
    """The user's settings over ours. Where a number stands behind a setting it was measured on 2 cores."""
    java_options = [
        # An epoch keeps the JVM busy for a few milliseconds, and its optimising compiler for a whole core and minutes:
        # 4 million records took 16 s of JVM time with it and 7 s without, and came through 1.3 times as fast.
        "-XX:TieredStopAtLevel=1",
        f"-Dlog4j2.configurationFile={scratch.path / 'log4j2.properties'}",
        f"-Djava.io.tmpdir={scratch.subdir('tmp')}",
        f"-Dderby.system.home={scratch.path / 'derby'}",
        f"-XX:ErrorFile={scratch.path / 'jvm-crash.log'}",
    ]
    ours = {
        **GUARANTEE,
        "spark.app.name": APP_NAME,
        "spark.master": master,
        "spark.local.dir": str(scratch.subdir("spark")),
        "spark.sql.warehouse.dir": str(scratch.path / "warehouse"),
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        # an empty two-stage epoch takes 80 ms instead of 181 ms, because TCP's delayed acks are avoided
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(scratch.subdir("tmp")),
        "spark.python.worker.reuse": "true",
        # ten epochs a second: with Spark's defaults the UI keeps 1000 jobs and 100,000 tasks on the heap
        "spark.ui.retainedJobs": "200",
        "spark.ui.retainedStages": "200",
        "spark.ui.retainedTasks": "2000",
        "spark.sql.ui.retainedExecutions": "50",
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith("local"):
        ours |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            # nothing crosses a network: an epoch of 78 MB takes 244-288 ms instead of 295-377 ms
            "spark.shuffle.compress": "false",
        }
    if settings.get("spark.ui.enabled", "true") != "false" and "spark.ui.port" not in settings:
        ours["spark.ui.port"] = str(_free_ui_port())
    merged = {**ours, **settings, "spark.master": master}
    # quoted, because the temporary directory's name may have spaces; the user's come last, so that they win
    options = [f'"{option}"' for option in java_options]
    options.append(settings.get("spark.driver.extraJavaOptions", ""))
    merged["spark.driver.extraJavaOptions"] = " ".join(options).strip()
    return merged


def _free_ui_port() -> int:
    """Spark's usual 4040 and up; 0, any port, when all those are taken that Spark tries before it fails."""
    for port in range(4040, 4056):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    return 0


# -- the embedded session ------------------------------------------------------------------------------------


class EmbeddedSpark:
    """A JVM with a SparkContext that firesteel started, and the directory that holds all its files."""

    def __init__(self, master: str, settings: Mapping[str, str], partitions: int | None = None) -> None:
        """:param partitions: how many Spark makes where nobody says; None: as many as it runs tasks at a time."""
        self.master = master
        self.settings = dict(settings)
        self._partitions = partitions
        self.users = 0
        self.owner = os.getpid()
        self.scratch = ScratchDir.create()
        self.log = self.scratch.path / "spark.log"
        self.process: subprocess.Popen[bytes] | None = None
        try:
            (self.scratch.path / "log4j2.properties").write_text(_LOG4J)
            _uninterrupted(self._start)
            self.spark = spark_private.session_of(self.sc)
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        environment = find_java().launch_environment(os.environ, self.scratch.path)
        if sys.executable:
            environment |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        if self.master.startswith("local"):
            environment["SPARK_LOCAL_IP"] = "127.0.0.1"  # the UI listens where this says, else everywhere
        settings = _embedded_settings(self.master, self.settings, self.scratch)
        if self._partitions is not None:
            settings.setdefault("spark.default.parallelism", str(self._partitions))
        with _environment(environment):
            try:
                self.sc = spark_private.start_context(settings, self.log)
                self.process = spark_private.jvm_process(self.sc)
            except Exception as error:
                log = self.log.read_text(errors="replace") if self.log.exists() else ""
                tail = "\n".join(log.splitlines()[-20:])
                raise ConfigurationError(
                    f"Spark did not start with master {self.master} and settings {self.settings}: {error}\n"
                    f"The end of its log:\n{tail}"
                ) from error

    def alive(self) -> bool:
        return spark_private.is_alive(self.sc)

    def fits(self, master: str | None, parallelism: int, settings: Mapping[str, str]) -> bool:
        """Whether a job can share it. Jobs that run at the same time share the cores that there are."""
        if self.settings != settings:
            return False
        if master is not None:
            return self.master == master
        tasks = re.fullmatch(r"local\[(\d+)\]", self.master)
        return tasks is not None and (self.users > 0 or int(tasks[1]) >= cores.needed(parallelism))

    def stop(self) -> None:
        """End the JVM and leave nothing behind; also after it has died."""
        try:
            spark_private.end_jvm(self.process)
        finally:
            spark_private.forget_dead_jvm()
            self.scratch.remove()


def _uninterrupted(call: Callable[[], None]) -> None:
    """Run to the end what must not be left half done, and only then let Ctrl-C through.

    Interrupted in the middle of its launch, a JVM would be left that nobody knows the process of.
    """
    failure: list[BaseException] = []
    done = threading.Event()  # and not join(), which takes a thread for dead when it is interrupted (bpo-45274)

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001  raised again below
            failure.append(error)
        finally:
            done.set()

    threading.Thread(target=run, name="spark-start", daemon=True).start()
    interrupted = False
    while not done.is_set():
        try:
            done.wait(0.1)
        except KeyboardInterrupt:
            interrupted = True
    if interrupted:
        raise KeyboardInterrupt
    if failure:
        raise failure[0]


@contextlib.contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


# -- what the rest of the engine uses ------------------------------------------------------------------------


class SparkHandle:
    """A job's hold on a Spark session. `release` it when the job is done; `acquire` another if it is dead."""

    def __init__(self, spark: SparkSession, embedded: EmbeddedSpark | None) -> None:
        self.spark = spark
        self.sc: SparkContext = spark.sparkContext
        self.owned = embedded is not None
        self._embedded = embedded
        self._released = False
        self._reserved = 0

    @property
    def log(self) -> Path | None:
        """Where Spark's log of an embedded session is, to be shown with its failures."""
        return self._embedded.log if self._embedded else None

    @property
    def scratch(self) -> ScratchDir | None:
        """The embedded session's directory; slots keep their sockets in it. None in a given session."""
        return self._embedded.scratch if self._embedded else None

    def alive(self) -> bool:
        """Whether the JVM lives and the context was not stopped. Answers at once, also when the JVM hangs."""
        return spark_private.is_alive(self.sc)

    def reserve(self, tasks: int) -> bool:
        """Whether there is a core of Spark's for each of so many tasks, for as long as the job holds the session."""
        with _lock:
            reserved = cores.reserve(self.sc, tasks)
            self._reserved += tasks if reserved else 0
            return reserved

    def release(self) -> None:
        """Let go. An embedded session stays up for the next job and ends with the process."""
        with _lock:
            cores.give_back(self.sc, self._reserved)
            self._reserved = 0
            if not self._released and self._embedded is not None:
                self._embedded.users -= 1
            self._released = True


_lock = threading.RLock()
_embedded: EmbeddedSpark | None = None


def acquire(parallelism: int, settings: Mapping[str, str], master: str | None = None) -> SparkHandle:
    """The active classic session, checked; else the embedded one, started if need be."""
    global _embedded
    with _lock:
        refuse_spark_connect(settings, master)
        if _embedded is not None and _embedded.owner != os.getpid():
            raise ConfigurationError(
                "This process was forked from one in which firesteel runs, and cannot use its Spark. "
                "Start it with multiprocessing's 'spawn' method instead."
            )
        active = spark_private.active_context()
        if active is None and spark_private.GATEWAY_PORT in os.environ:
            active = _context_of_spark_submit()
        if active is not None and (_embedded is None or active is not _embedded.sc):
            return _given(active, settings, master)
        master = master or settings.get("spark.master")
        check_settings({**GUARANTEE, **settings, "spark.master": master or "local[1]"})
        usable = _embedded is not None and _embedded.alive() and not spark_private.is_stopped(_embedded.sc)
        if _embedded is not None and not (usable and _embedded.fits(master, parallelism, settings)):
            if usable and _embedded.users > 0:
                raise ConfigurationError(
                    f"A job of this process is running with Spark master {_embedded.master} and settings "
                    f"{_embedded.settings}, or a DataFrame of to_dataframe() lives there; a job with master {master} "
                    f"and settings {dict(settings)} cannot share its Spark. Wait for the first job to end (if DataFrames "
                    "are not needed any more: dataframe.sparkSession.stop()), give both the same settings, or use "
                    "another process."
                )
            stop_embedded()
        if _embedded is None:
            tasks = f"local[{cores.needed(parallelism)}]"
            _embedded = EmbeddedSpark(master or tasks, settings, None if master else max(parallelism, 1))
        _embedded.users += 1
        return SparkHandle(_embedded.spark, _embedded)


def _given(sc: SparkContext, settings: Mapping[str, str], master: str | None) -> SparkHandle:
    if not spark_private.is_alive(sc):
        raise ConfigurationError(
            "The active Spark session is dead: its JVM has ended. It was not started by firesteel, which "
            "therefore does not replace it; start this program again."
        )
    spark_private.quieten_py4j()
    conf = sc.getConf()
    current = {key: conf.get(key) for key in {"spark.master", *GUARANTEE, *settings}}
    check_settings({key: value for key, value in current.items() if value is not None})
    wanted = {**settings, **({"spark.master": master} if master else {})}
    ignored = {key: value for key, value in wanted.items() if current[key] != value}
    if ignored:
        warnings.warn(
            f"There is an active Spark session, so these settings have no effect: {ignored}. "
            "Make them in that session, or stop it before the job starts.",
            RuntimeWarning,
            stacklevel=3,
        )
    spark_private.work_with_this_python(sc)
    return SparkHandle(spark_private.session_of(sc), None)


def _context_of_spark_submit() -> SparkContext:
    """spark-submit has chosen master and settings; add what the guarantee needs where it chose nothing."""
    spark_private.attach_to_submitted_jvm()
    conf = SparkConf()
    for key, value in GUARANTEE.items():
        conf.setIfMissing(key, value)
    conf.setIfMissing("spark.app.name", APP_NAME)
    with spark_private.sigint_handler_kept():
        return SparkContext.getOrCreate(conf)


def stop_embedded() -> None:
    """Stop the embedded session, if there is one, whoever uses it. Runs at interpreter exit."""
    global _embedded
    with _lock:
        embedded, _embedded = _embedded, None
        if embedded is not None and embedded.owner == os.getpid():
            embedded.stop()


atexit.register(stop_embedded)

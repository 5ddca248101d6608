"""All that touches the private parts of PySpark and py4j: the place to look when their versions change.

Checked with PySpark 4.3.0 and py4j 0.10.9.9. What PySpark offers in public is used where it is enough.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from py4j import java_gateway as py4j_gateway
from py4j.clientserver import SHUTDOWN_FINALIZER_WORKER
from py4j.protocol import Py4JError
from pyspark import RDD, SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame, SparkSession, SQLContext
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.types import StructType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType, _load_from_socket

GATEWAY_PORT = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit: the JVM is there already, and is this process's parent."""


# -- which session there is ----------------------------------------------------------------------------------


def connect_session_in_use(environ: Mapping[str, str]) -> str | None:
    """How one can tell that this process uses Spark Connect; None if it does not."""
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"):
        if name in environ:
            return f"{name}={environ[name]} is set in the environment"
    # not imported unless the user did: it needs grpc
    connect = sys.modules.get("pyspark.sql.connect.session")
    if connect is not None:
        remote = connect.SparkSession
        if remote.getActiveSession() is not None or remote._get_default_session() is not None:
            return "the active SparkSession is a Spark Connect session"
    return None


def is_classic(frame: DataFrame) -> bool:
    """Whether a DataFrame lives in a JVM of this process, and not behind Spark Connect."""
    return isinstance(frame, ClassicDataFrame)


def map_in_arrow(frame: DataFrame, function: Callable[..., Any], schema: StructType) -> DataFrame:
    """`DataFrame.mapInArrow`, which in public asks for pandas although it has no use for it."""
    assert isinstance(frame, ClassicDataFrame)
    udf = UserDefinedFunction(function, returnType=schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    columns: Any = udf(*(frame[name] for name in frame.columns))
    return ClassicDataFrame(frame._jdf.mapInArrow(columns._jc, False, None), frame.sparkSession)


def active_context() -> SparkContext | None:
    return SparkContext._active_spark_context


def session_of(sc: SparkContext) -> SparkSession:
    """The session the user is working with, else the default one, else a new one on that context."""
    return SparkSession.getActiveSession() or SparkSession._instantiatedSession or SparkSession(sc)


# -- a JVM's life --------------------------------------------------------------------------------------------


def start_context(settings: Mapping[str, str], log: Path) -> SparkContext:
    """Launch a JVM with this process's environment and its output in `log`, and a SparkContext in it.

    Fails with whatever PySpark raises; the JVM is then ended and forgotten.
    """
    quieten_py4j()
    if SparkContext._gateway is not None:
        # The JVM of a session that the user has stopped. PySpark would use it again, with its heap and log.
        end_jvm(SparkContext._gateway.proc)
        forget_dead_jvm()
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    with warnings.catch_warnings(), sigint_handler_kept():
        warnings.simplefilter("ignore")
        with log.open("ab") as output:
            gateway = launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
        _jvms.add(gateway.proc)
        try:
            sc = SparkContext(conf=conf, gateway=gateway)
        except BaseException:
            end_jvm(gateway.proc)
            forget_dead_jvm()
            raise
    # When the JVM goes, this server's connection breaks, and socketserver would print a traceback about it.
    sc._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]
    return sc


def work_with_this_python(sc: SparkContext) -> None:
    """Where nobody says otherwise, PySpark's workers are whatever `python3` is on the path, which may have no firesteel."""
    asked_for = sc.getConf().contains("spark.pyspark.python") or "PYSPARK_PYTHON" in os.environ
    if sys.executable and not asked_for and str(sc.master).startswith("local"):
        sc.pythonExec = sys.executable


def attach_to_submitted_jvm() -> None:
    """Connect to the JVM that spark-submit has started, so that SparkConf shows what was submitted."""
    SparkContext._ensure_initialized()


def local_cores(sc: SparkContext) -> int:
    """How many tasks a local session runs at a time. 1 where jobs of several threads would not be told apart."""
    if os.environ.get("PYSPARK_PIN_THREAD", "true").lower() == "false":
        return 1
    found = re.fullmatch(r"local\[(\d+|\*)[^\]]*\]", str(sc.master))
    if found is None or sc._jvm is None:
        return 1
    return int(sc._jvm.Runtime.getRuntime().availableProcessors()) if found[1] == "*" else int(found[1])


def jvm_process(sc: SparkContext) -> subprocess.Popen[bytes] | None:
    """The JVM as a child of this process; None under spark-submit, where it is the parent."""
    process: subprocess.Popen[bytes] | None = getattr(sc._gateway, "proc", None)
    return process


def is_alive(sc: SparkContext) -> bool:
    """Whether the JVM lives and the context was not stopped. No py4j call: it could hang, as the JVM may."""
    if sc._jsc is None or sc._gateway is None:
        return False
    process = jvm_process(sc)
    if process is not None:
        return process.poll() is None
    parameters = sc._gateway.gateway_parameters
    try:
        socket.create_connection((parameters.address, parameters.port), timeout=1.0).close()
    except OSError:
        return False
    return True


def is_stopped(sc: SparkContext) -> bool:
    """Whether the context has ended inside a JVM that lives on, as after a fatal error in the scheduler."""
    if sc._jsc is None:
        return True
    try:
        return bool(sc._jsc.sc().isStopped())
    except Py4JError:
        return True


def end_jvm(process: subprocess.Popen[bytes] | None, patience: float = 10.0) -> None:
    """End the JVM and wait for it.

    The gateway exits when its stdin closes, and Spark's shutdown hook stops the context (measured: 0.5 s).
    Asking over py4j instead could hang, and at interpreter exit Python 3.12+ starts no thread that could put
    a limit to that.
    """
    if process is None:
        return
    try:
        if process.stdin is not None:
            with contextlib.suppress(OSError):  # the JVM may be dead already
                process.stdin.close()
        process.wait(patience)
    except subprocess.TimeoutExpired:
        pass
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def forget_dead_jvm() -> None:
    """Bring PySpark's state back to what it was before the first session, so that another JVM can be started.

    PySpark expects one JVM to last as long as the process; after its death every call goes to a closed port.
    """
    with SparkContext._lock:
        sc, gateway = SparkContext._active_spark_context, SparkContext._gateway
        if sc is not None:
            sc._jsc = None
            _stop_accumulator_server(sc)
        # SparkContext put its directory of added files on the path; it went with the JVM
        sys.path[:] = [entry for entry in sys.path if f"{os.sep}userFiles-" not in entry]
        SparkContext._active_spark_context = None
        SparkContext._gateway = None
        SparkContext._jvm = None
        SparkSession._instantiatedSession = None
        SparkSession._activeSession = None
        SQLContext._instantiatedContext = None
    if gateway is not None:
        # Objects of the dead JVM that are collected later must not try to tell it so.
        client = gateway._gateway_client
        client.is_connected = False
        client.close()
        if hasattr(client, "finalizer_deque"):  # not with PYSPARK_PIN_THREAD=false
            client.finalizer_deque.appendleft(SHUTDOWN_FINALIZER_WORKER)


def _stop_accumulator_server(sc: SparkContext) -> None:
    server = getattr(sc, "_accumulatorServer", None)
    if server is not None:
        # shutdown() waits up to 1.5 s for the server's polls to time out, and nobody needs to wait for that.
        # At interpreter exit Python 3.12+ starts no thread; then the server ends with the process.
        with contextlib.suppress(RuntimeError):
            threading.Thread(target=server.shutdown, daemon=True).start()
        sc._accumulatorServer = None  # type: ignore[assignment]


_jvms: weakref.WeakSet[subprocess.Popen[bytes]] = weakref.WeakSet()


def _close_inherited_stdin() -> None:
    # The JVM ends when its stdin closes. A forked child with the other end would keep it beyond our death.
    for process in list(_jvms):
        if process.stdin is not None:
            process.stdin.close()


os.register_at_fork(after_in_child=_close_inherited_stdin)


# -- manners -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def sigint_handler_kept() -> Iterator[None]:
    """Undo SparkContext's SIGINT handler, which it installs when it is made in the main thread.

    That handler calls `cancelAllJobs` over the connection that the interrupted call is waiting on. Tried: py4j
    answers with "reentrant call" tracebacks on stderr, and the job goes on.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if previous is not None:  # None: not installed from Python, cannot be put back
            signal.signal(signal.SIGINT, previous)


class _QuietLogging:
    """`logging` as py4j.java_gateway sees it, without the module's functions that print to the terminal."""

    _logger = logging.getLogger("py4j.java_gateway")

    def exception(self, message: str, *args: Any, **kwargs: Any) -> None:
        self._logger.debug(message, *args, exc_info=True)

    def info(self, message: str, *args: Any, **kwargs: Any) -> None:
        self._logger.debug(message, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(logging, name)


def quieten_py4j() -> None:
    """Keep py4j's log out of the user's. What it logs is also raised.

    On a lost JVM and on Ctrl-C it calls `logging.exception` itself, not its own logger: that prints to stderr
    and, on top, configures the user's root logger.
    """
    py4j_gateway.logging = _QuietLogging()
    logger = logging.getLogger("py4j")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)


# -- the exchange --------------------------------------------------------------------------------------------


Level = Callable[[int, Any], Iterator[bytes]]


class _Threads:
    """Threads that stay for the next job, because each has a connection to the JVM and a thread there.

    A thread pool of the library would keep a program from ending that does not wait for its jobs.
    """

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._free = threading.Semaphore(0)
        self._count = 0

    def do(self, work: Callable[[], None]) -> None:
        if not self._free.acquire(blocking=False):
            self._count += 1
            threading.Thread(target=self._loop, name=f"spark-job-{self._count}", daemon=True).start()
        self._work.put(work)

    def _loop(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            self._free.release()

    def close(self) -> None:
        for _ in range(self._count):
            self._work.put(None)


class LevelChain:
    """Runs levels as one Spark job: level 0, shuffle, level 1, shuffle, ... and the last one's rows collected.

    The JVM sees only bytes: rows are pairs (8-byte address, payload), sorted by address and partitioned by it modulo the
    number of partitions. That takes PySpark's own building blocks of `partitionBy`, which are private.
    """

    def __init__(self, sc: SparkContext, partitions: int, group: str) -> None:
        self._sc, self._group = sc, group
        assert sc._jvm is not None
        self._jvm: Any = sc._jvm
        self._partitioner = self._jvm.PythonPartitioner(partitions, 0)
        self._base = sc.parallelize(range(partitions), partitions)
        self._threads = _Threads()

    def run(
        self,
        levels: Sequence[Level],
        names: Sequence[str],
        description: str,
        first: int = 0,
        handed: list[list[bytes]] | None = None,
    ) -> list[bytes]:
        """The rows that the last level made. Names are those of the stages in Spark's UI.

        :param first: the number of the first of these levels.
        :param handed: what the first one is given, for each partition one element; by itself nothing of meaning.
        """
        self._sc.setJobGroup(self._group, description, interruptOnCancel=False)
        rdd: Any = self._base if handed is None else self._sc.parallelize(handed, len(handed))
        for number, (level, name) in enumerate(zip(levels, names, strict=True)):
            if number:
                pairs = self._jvm.PairwiseRDD(rdd._jrdd.rdd()).asJavaPairRDD()
                pairs = pairs.repartitionAndSortWithinPartitions(self._partitioner)
                rdd = RDD(self._jvm.PythonRDD.valueOfPair(pairs), self._sc, NoOpSerializer())
            self._sc._jsc.sc().setCallSite(f"level {first + number}: {name}")
            rdd = rdd.mapPartitionsWithIndex(level)
            rdd._bypass_serializer = True  # rows are bytes already
            rdd._jrdd  # noqa: B018  makes the JVM's RDD now, under this level's name
        # what rdd.collect() does, which would also rename the last stage to "collect at ..."
        served = self._jvm.PythonRDD.collectAndServe(rdd._jrdd.rdd())
        rows: Any = _load_from_socket(served, rdd._jrdd_deserializer)  # before PySpark 4.3 no context manager
        with rows if hasattr(rows, "__enter__") else contextlib.nullcontext(rows) as found:
            return list(found)

    def start(self, levels: Sequence[Level], names: Sequence[str], description: str) -> Future[list[bytes]]:
        """The same on a thread of its own, so that several can run at the same time."""
        job: Future[list[bytes]] = Future()

        def run() -> None:
            try:
                job.set_result(self.run(levels, names, description))
            except BaseException as error:  # noqa: BLE001  for whoever waits
                job.set_exception(error)

        self._threads.do(run)
        return job

    def close(self) -> None:
        """Let threads end that have nothing to do."""
        self._threads.close()

    def cancel(self) -> None:
        """Cancel what runs. Any thread may call this."""
        self._sc.cancelJobGroup(self._group)

"""Where a program starts and from where it is run."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from firesteel.common.configuration import Configuration
from firesteel.common.execution_config import ExecutionConfig
from firesteel.common.job_client import JobClient
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from firesteel.common.typecheck import checker
from firesteel.common.typeinfo import TypeInformation
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors.base import Source
from firesteel.connectors.collection import CollectionSource
from firesteel.connectors.file_formats import StreamFormat
from firesteel.connectors.file_source import FileSource
from firesteel.connectors.function_source import CallableSource
from firesteel.connectors.number_seq import NumberSequenceSource
from firesteel.connectors.socket_source import SocketSource
from firesteel.datastream import options
from firesteel.datastream.checkpoint_config import CheckpointConfig
from firesteel.datastream.checkpointing_mode import CheckpointingMode
from firesteel.datastream.configured import configured
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.dataframes import DataFrameSources
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.datastream.flink1_environment import Flink1Environment
from firesteel.datastream.functions import SourceFunction
from firesteel.datastream.launching import launch
from firesteel.datastream.pre_combining import settled
from firesteel.datastream.slot_sharing_group import SlotSharingGroup
from firesteel.errors import ConfigurationError, GraphError
from firesteel.graph.explain import execution_plan, explain
from firesteel.graph.guarantee import Guarantee, end_to_end
from firesteel.graph.nodes import Graph, Input, Read, check_positive
from firesteel.graph.plan import JobPlan, build_plan
from firesteel.graph.settings import JobSettings, RestSettings, StartSettings

__all__ = ["StreamExecutionEnvironment"]

log = logging.getLogger("firesteel")
DEFAULT_JOB_NAME = "Firesteel Streaming Job"


class StreamExecutionEnvironment(DataFrameSources, Flink1Environment):
    """Describes a program and runs it.

    Nothing runs before `execute`. The job runs on the active SparkSession if there is one, else on an embedded Spark.
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self.graph = Graph()
        self._default_parallelism = os.cpu_count() or 1
        self._config = ExecutionConfig().set_parallelism(self._default_parallelism)
        self._chaining = True
        self._checkpoints = CheckpointConfig()
        self._restart: RestartStrategyConfiguration = RestartStrategies.fall_back_restart()
        self._mode = RuntimeExecutionMode.STREAMING
        self._buffer_timeout = 100
        self._changelog: bool | None = None
        self._job_name = DEFAULT_JOB_NAME
        self._epoch_target_ms = 1000
        self._heartbeat_timeout_ms = 50_000
        self._spark: dict[str, str] = {}
        self._progress: bool | None = None
        # `execution.state-recovery.path`, `rest.port` and others
        self.start, self.rest = StartSettings(), RestSettings()
        if configuration is not None:
            self.configure(configuration)

    @staticmethod
    def get_execution_environment(configuration: Configuration | None = None) -> StreamExecutionEnvironment:
        """An environment with the settings of the configuration file, the environment variables and `firesteel run`
        (docs/configuration.md), and over them those of `configuration`."""
        return configured(StreamExecutionEnvironment(), configuration)

    # ---- settings

    def configure(self, configuration: Configuration) -> None:
        """Take settings from a configuration, under the keys they have in Flink's configuration file, such as
        `parallelism.default`. docs/configuration.md lists all.

        :raises ConfigurationError: for a key that is not known.
        """
        options.apply(self, configuration)

    def get_config(self) -> ExecutionConfig:
        return self._config

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        self._config.set_parallelism(check_positive("parallelism", parallelism))
        return self

    def get_parallelism(self) -> int:
        return self._config.get_parallelism()

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """The parallelism as long as none is set; the number of cores by itself."""
        if self._config.get_parallelism() == self._default_parallelism:
            self.set_parallelism(parallelism)
        self._default_parallelism = check_positive("parallelism", parallelism)

    def get_default_local_parallelism(self) -> int:
        return self._default_parallelism

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """The number of key groups state is divided into: fixed for the life of a job's state."""
        self._config.set_max_parallelism(check_positive("max parallelism", max_parallelism))
        return self

    def get_max_parallelism(self) -> int:
        return self._config.get_max_parallelism()

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        self._chaining = False
        return self

    def is_chaining_enabled(self) -> bool:
        return self._chaining

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        return True

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
        """Accepted: all modes run alike, and a program with bounded sources ends in each of them."""
        if not isinstance(execution_mode, RuntimeExecutionMode):
            raise ConfigurationError(f"the runtime mode is a RuntimeExecutionMode, not {execution_mode!r}")
        if execution_mode is RuntimeExecutionMode.BATCH:
            log.warning("runtime mode BATCH runs as a stream: keyed reductions emit every update, not only the last")
        self._mode = execution_mode
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> StreamExecutionEnvironment:
        """Accepted, and without effect: records leave with the epoch, whose length `firesteel.epoch.target-duration`
        sets, and inside it in batches of a number of records."""
        if timeout_millis < -1:
            raise ConfigurationError(f"the buffer timeout is in milliseconds, or -1 for none, not {timeout_millis}")
        self._buffer_timeout = timeout_millis
        return self

    def get_buffer_timeout(self) -> int:
        return self._buffer_timeout

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> StreamExecutionEnvironment:
        """Accepted, and without effect: every slot runs a subtask of every operator."""
        return self

    def set_restart_strategy(self, restart_strategy: RestartStrategyConfiguration) -> StreamExecutionEnvironment:
        self._restart = restart_strategy
        return self

    def set_default_job_name(self, name: str) -> StreamExecutionEnvironment:
        """The name of jobs that are given none (`pipeline.name`)."""
        self._job_name = name
        return self

    def set_epoch_target_duration(self, milliseconds: int) -> StreamExecutionEnvironment:
        """How long an epoch should take, which is how long records wait (`firesteel.epoch.target-duration`)."""
        self._epoch_target_ms = check_positive("the epoch's target duration (ms)", milliseconds)
        return self

    def set_heartbeat_timeout(self, milliseconds: int) -> StreamExecutionEnvironment:
        """After how much silence a slot counts as hanging and is replaced (`heartbeat.timeout`). It speaks every second."""
        self._heartbeat_timeout_ms = check_positive("the heartbeat timeout (ms)", milliseconds)
        return self

    def show_progress(self, shown: bool | None = True) -> StreamExecutionEnvironment:
        """Whether a line of progress is shown; None: when standard error is a terminal (`firesteel.progress`)."""
        self._progress = shown
        return self

    def set_spark_option(self, key: str, value: str) -> StreamExecutionEnvironment:
        """A setting of the embedded Spark, such as `spark.master`."""
        self._spark[key] = value
        return self

    # ---- checkpoints

    def enable_checkpointing(self, interval: int, mode: CheckpointingMode | None = None) -> StreamExecutionEnvironment:
        """Take a checkpoint every `interval` milliseconds.

        With a checkpoint directory a job that is started again under the same name goes on from its last checkpoint.
        """
        self._checkpoints.set_checkpoint_interval(interval)
        if mode is not None:
            self._checkpoints.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        return self._checkpoints

    def get_checkpoint_interval(self) -> int:
        return self._checkpoints.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        return self._checkpoints.get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        return self._checkpoints.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        return self._checkpoints.is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        return self._checkpoints.is_force_unaligned_checkpoints()

    def set_default_savepoint_directory(self, directory: str) -> StreamExecutionEnvironment:
        """Where savepoints go that are given no directory: a path or URI, as for checkpoints."""
        self._checkpoints.set_savepoint_dir(directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        return self._checkpoints.get_savepoint_dir()

    def enable_changelog_state_backend(self, enabled: bool) -> StreamExecutionEnvironment:
        """Accepted, and without effect: checkpoints hold only what changed in any case."""
        self._changelog = enabled
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        return self._changelog

    # ---- what the program needs

    def add_python_file(self, file_path: str) -> None:
        """Make a Python file, a package's directory or an archive importable here and in the slots, which take over
        this process's `sys.path`."""
        path = options.python_path_of(file_path)
        if path not in sys.path:
            sys.path.insert(0, path)

    def add_jars(self, *jars_path: str) -> None:
        """Accepted, and without effect: connectors are Python here. For jars of Spark's there is `spark.jars`."""
        log.warning("jars have no effect, firesteel's connectors are written in Python: %s", ", ".join(jars_path))

    def add_classpaths(self, *classpaths: str) -> None:
        """Accepted, and without effect, as jars."""
        log.warning("class paths have no effect, connectors are written in Python: %s", ", ".join(classpaths))

    def set_python_requirements(
        self, requirements_file_path: str, requirements_cache_dir: str | None = None
    ) -> NoReturn:
        raise ConfigurationError(
            f"firesteel installs no packages ({requirements_file_path}): slots run in the Python environment of this "
            f"program, so install them there: pip install -r {requirements_file_path}"
        )

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> NoReturn:
        raise ConfigurationError(
            f"firesteel unpacks no archives ({archive_path}): unpack it where every machine of the job can reach it, "
            f"and open the files by their full path. For Python code there is add_python_file()"
        )

    def set_python_executable(self, python_exec: str) -> NoReturn:
        raise ConfigurationError(
            f"slots run with the Python of this program ({sys.executable}), as their pickles need the same version: "
            f"start the program with {python_exec} instead"
        )

    # ---- sources

    def from_collection(self, collection: Iterable[Any], type_info: TypeInformation | None = None) -> DataStream:
        """The elements of a collection, in order, from one subtask.

        :raises TypeMismatchError: an element is not of the declared type.
        """
        values = list(collection)
        check = checker(type_info)
        if check is not None:
            check(values)
        return self._read(CollectionSource(values), "Collection Source", output_type=type_info, parallelism=1)

    def from_sequence(self, start: int, end: int) -> DataStream:
        """The numbers from `start` to `end`, both included, divided among the subtasks."""
        return self._read(NumberSequenceSource(start, end), "Sequence Source")

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8") -> DataStream:
        """The lines of a text file, or of all files of a directory."""
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(charset_name), file_path).build()
        return self._read(source, "Text File Source")

    def socket_text_stream(self, hostname: str, port: int, delimiter: str = "\n", max_retry: int = 0) -> DataStream:
        """The lines that come through a socket, for trying things out: what is lost in a failure stays lost.

        :param max_retry: how often to connect again when the connection ends, -1 for ever.
        """
        return self._read(SocketSource(hostname, port, delimiter, max_retry), "Socket Stream", parallelism=1)

    def add_source(
        self,
        source_func: SourceFunction | Callable[[], Iterable[Any]] | Source,
        source_name: str = "Custom Source",
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """The records that a SourceFunction pushes, or a generator function yields, in a thread of this process.

        They cannot be had again after a failure, which makes the job at-most-once. Derive from `Source` and use
        `from_source` where records can be read again.
        """
        if isinstance(source_func, Source):
            return self.from_source(source_func, None, source_name, type_info)
        return self._read(CallableSource(source_func), source_name, output_type=type_info, parallelism=1)

    def from_source(
        self,
        source: Source,
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "Source",
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """The records of any source.

        :param watermark_strategy: how records get timestamps and watermarks; None for neither.
        :param type_info: the type of the records; by itself what the source says about it.
        """
        if not isinstance(source, Source):
            raise GraphError(f"from_source() takes a firesteel Source, not {source!r:.200}")
        if watermark_strategy is not None and not isinstance(watermark_strategy, WatermarkStrategy):
            raise GraphError(f"from_source() takes a WatermarkStrategy or None, not {watermark_strategy!r:.200}")
        if watermark_strategy == WatermarkStrategy.no_watermarks():
            watermark_strategy = None
        return self._read(source, source_name, watermark_strategy, output_type=type_info or source.get_produced_type())

    def _read(
        self, source: Source, name: str, strategy: WatermarkStrategy | None = None, **settings: Any
    ) -> DataStream:
        return DataStream(self, (Input(self.graph.add(Read(source, strategy), name, (), **settings).id),))

    # ---- running

    def plan(self) -> JobPlan:
        """What would run: operators with uids, levels and parallelism."""
        if not self._config.has_auto_generated_uids_enabled():
            without = [f"'{n.name}' (defined at {n.defined_at})" for n in self.graph.nodes() if n.uid is None]
            if without:
                raise GraphError(
                    f"automatic uids are off and these operators have none: {', '.join(without)}. Call uid(...) on them, "
                    f"or enable_auto_generated_uids() on the environment's config"
                )
        config = self._config
        most, reuse = config.get_max_parallelism(), config.is_object_reuse_enabled()
        plan = build_plan(self.graph, config.get_parallelism(), most if most > 0 else None, self._chaining, reuse)
        return settled(plan, config.is_window_pre_combining_enabled())

    def guarantee(self) -> Guarantee:
        """What the job promises from its sources to its sinks, and which part limits it."""
        return end_to_end(
            self.graph, self._checkpoints.is_checkpointing_enabled(), self._checkpoints.get_checkpointing_mode()
        )

    def explain(self, job_name: str | None = None) -> str:
        """The plan as text: levels, operators, edges, parallelism and the guarantee."""
        return explain(self.plan(), job_name or self._job_name, self.guarantee())

    def get_execution_plan(self) -> str:
        """The plan as JSON, as Flink's plan visualizer reads it."""
        return execution_plan(self.plan())

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the program to its end. Ctrl-C cancels it."""
        client = self.execute_async(job_name)
        try:
            return client.get_job_execution_result().result()
        except KeyboardInterrupt:
            client.cancel().result()
            raise

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """Start the program in the background. What was described so far is not part of the next job, as in Flink: only
        sinks that are added from now on, and what they read from."""
        client = launch(self.plan(), self.settings(job_name or self._job_name))
        self.graph.executed()
        return client

    def settings(self, job_name: str) -> JobSettings:
        """The settings the job would run with."""
        return JobSettings(
            name=job_name,
            checkpoints=self._checkpoints.settings(),
            restart=self._restart,
            epoch_target_ms=self._epoch_target_ms,
            heartbeat_timeout_ms=self._heartbeat_timeout_ms,
            master=self._spark.get("spark.master"),
            spark={key: value for key, value in self._spark.items() if key != "spark.master"},
            parameters=self._config.get_global_job_parameters(),
            progress=self._progress,
            start=self.start,
            rocksdb=self._rocksdb(),
            rest=self.rest,
        )

    def close(self) -> None:
        """Nothing to release: jobs end by themselves or by `cancel()` of their client."""

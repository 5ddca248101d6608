"""Where a program starts and from where it is run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from firesteel.common.configuration import Configuration
from firesteel.common.durations import parse_duration_ms
from firesteel.common.job_client import JobClient
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.base import Source
from firesteel.connectors.collection import CollectionSource
from firesteel.connectors.file_formats import StreamFormat
from firesteel.connectors.file_source import FileSource
from firesteel.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.checkpoint_config import CheckpointConfig, CheckpointingMode
from firesteel.datastream.data_stream import DataStream
from firesteel.errors import ConfigurationError, GraphError
from firesteel.graph.explain import explain
from firesteel.graph.nodes import Graph, Input, Read, check_positive
from firesteel.graph.plan import JobPlan, build_plan
from firesteel.graph.settings import JobSettings

DEFAULT_JOB_NAME = "Firesteel Streaming Job"


class StreamExecutionEnvironment:
    """Describes a program and runs it.

    Nothing runs before `execute`. The job runs on the active SparkSession if there is one, else on an embedded Spark.
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self.graph = Graph()
        self._parallelism = os.cpu_count() or 1
        self._max_parallelism: int | None = None
        self._chaining = True
        self._checkpoints = CheckpointConfig()
        self._restart: RestartStrategyConfiguration = RestartStrategies.fall_back_restart()
        self._epoch_target_ms = 1000
        self._spark: dict[str, str] = {}
        self._master: str | None = None
        self._progress: bool | None = None
        if configuration is not None:
            self.configure(configuration)

    @staticmethod
    def get_execution_environment(configuration: Configuration | None = None) -> StreamExecutionEnvironment:
        return StreamExecutionEnvironment(configuration)

    # ---- settings

    def configure(self, configuration: Configuration) -> None:
        """Take settings from a configuration: `parallelism.default`, `execution.checkpointing.interval`,
        `state.checkpoints.dir`, `state.checkpoints.num-retained`, `restart-strategy.type` with its options,
        `firesteel.epoch.target-duration`, `firesteel.progress`, and anything that starts with `spark.`."""
        options = configuration.to_dict()
        for key, value in options.items():
            if key in ("parallelism.default", "pipeline.max-parallelism"):
                degree = check_positive(key, _whole(key, value))
                if key == "parallelism.default":
                    self._parallelism = degree
                else:
                    self._max_parallelism = degree
            elif key == "firesteel.epoch.target-duration":
                self._epoch_target_ms = parse_duration_ms(value)
            elif key == "firesteel.progress":
                self._progress = value.lower() == "true"
            elif key == "spark.master":
                self._master = value
            elif key.startswith("spark."):
                self._spark[key] = value
            elif not self._checkpoints.configure(key, value) and not key.startswith("restart-strategy"):
                raise ConfigurationError(f"unknown setting {key!r} (value {value!r})")
        self._restart = _restart_strategy(options) or self._restart

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        self._parallelism = check_positive("parallelism", parallelism)
        return self

    def get_parallelism(self) -> int:
        return self._parallelism

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """The number of key groups state is divided into: fixed for the life of a job's state."""
        self._max_parallelism = check_positive("max parallelism", max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        return -1 if self._max_parallelism is None else self._max_parallelism

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        self._chaining = False
        return self

    def is_chaining_enabled(self) -> bool:
        return self._chaining

    def enable_checkpointing(
        self, interval: int, mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE
    ) -> StreamExecutionEnvironment:
        """Take a checkpoint every `interval` milliseconds.

        With a checkpoint directory a job that is started again under the same name goes on from its last checkpoint.
        """
        self._checkpoints.set_checkpoint_interval(interval).set_checkpointing_mode(mode)
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        return self._checkpoints

    def get_checkpoint_interval(self) -> int:
        return self._checkpoints.get_checkpoint_interval()

    def set_restart_strategy(self, restart_strategy: RestartStrategyConfiguration) -> StreamExecutionEnvironment:
        self._restart = restart_strategy
        return self

    # ---- sources

    def from_collection(self, collection: Iterable[Any], type_info: TypeInformation | None = None) -> DataStream:
        """The elements of a collection, in order, from one subtask."""
        return self._read(CollectionSource(list(collection)), "Collection Source", parallelism=1)

    def from_sequence(self, start: int, end: int) -> DataStream:
        """The numbers from `start` to `end`, both included, divided among the subtasks."""
        return self._read(NumberSequenceSource(start, end), "Sequence Source")

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8") -> DataStream:
        """The lines of a text file, or of all files of a directory."""
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(charset_name), file_path).build()
        return self._read(source, "Text File Source")

    def from_source(
        self,
        source: Source,
        watermark_strategy: None = None,
        source_name: str = "Source",
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """The records of any source."""
        if not isinstance(source, Source):
            raise GraphError(f"from_source() takes a firesteel Source, not {source!r:.200}")
        if watermark_strategy is not None:
            raise GraphError("event time is not supported yet: pass None as the watermark strategy")
        return self._read(source, source_name)

    def _read(self, source: Source, name: str, **settings: Any) -> DataStream:
        return DataStream(self, (Input(self.graph.add(Read(source), name, (), **settings).id),))

    # ---- running

    def plan(self) -> JobPlan:
        """What would run: operators with uids, levels and parallelism."""
        return build_plan(self.graph, self._parallelism, self._max_parallelism, self._chaining)

    def explain(self, job_name: str | None = None) -> str:
        """The plan as text: levels, operators, edges and parallelism."""
        return explain(self.plan(), job_name or DEFAULT_JOB_NAME)

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the program to its end. Ctrl-C cancels it."""
        client = self.execute_async(job_name)
        try:
            return client.get_job_execution_result().result()
        except KeyboardInterrupt:
            client.cancel().result()
            raise

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """Start the program in the background."""
        from firesteel.client import launch

        plan = self.plan()
        settings = self.settings(job_name or DEFAULT_JOB_NAME)
        return launch(plan, settings)

    def settings(self, job_name: str) -> JobSettings:
        """The settings the job would run with."""
        return JobSettings(
            name=job_name,
            checkpoints=self._checkpoints.settings(),
            restart=self._restart,
            epoch_target_ms=self._epoch_target_ms,
            master=self._master,
            spark=dict(self._spark),
            progress=self._progress,
        )


def _restart_strategy(options: Mapping[str, str]) -> RestartStrategyConfiguration | None:
    kind = options.get("restart-strategy.type", options.get("restart-strategy"))
    if kind is None:
        return None
    if kind in ("none", "off", "disable"):
        return RestartStrategies.no_restart()
    if kind in ("fixed-delay", "fixeddelay"):
        return RestartStrategies.fixed_delay_restart(
            _whole(
                "restart-strategy.fixed-delay.attempts",
                options.get("restart-strategy.fixed-delay.attempts", "1"),
            ),
            parse_duration_ms(options.get("restart-strategy.fixed-delay.delay", "1 s")),
        )
    raise ConfigurationError(f"restart-strategy.type is {kind!r}; known are none and fixed-delay")


def _whole(key: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ConfigurationError(f"{key} must be a whole number, not {value!r}") from None

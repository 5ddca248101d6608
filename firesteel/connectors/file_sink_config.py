"""Settings of the file sink: how its files are named, and that they are not compacted."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.connectors.file_sink_rolling import RollingPolicy
from firesteel.errors import ConfigurationError

__all__ = ["FileCompactStrategy", "FileCompactor", "OutputFileConfig", "RollingPolicy"]


@dataclass(frozen=True)
class OutputFileConfig:
    """What part files' names start and end with: `part-<unique><suffix>` unless told otherwise."""

    prefix: str
    suffix: str

    def __post_init__(self) -> None:
        if "/" in self.prefix + self.suffix or self.prefix.startswith(".") or not self.prefix:
            raise ConfigurationError(
                f"part files cannot be named {self.prefix!r}-...{self.suffix!r}: a name has no '/', a prefix "
                f"is not empty, and a name that starts with '.' is a temporary file's"
            )

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        return OutputFileConfig.OutputFileConfigBuilder()

    def get_part_prefix(self) -> str:
        return self.prefix

    def get_part_suffix(self) -> str:
        return self.suffix

    class OutputFileConfigBuilder:
        """Collects the settings of an OutputFileConfig."""

        def __init__(self) -> None:
            self.part_prefix = "part"
            self.part_suffix = ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            self.part_prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            self.part_suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            return OutputFileConfig(self.part_prefix, self.part_suffix)


@dataclass(frozen=True)
class FileCompactStrategy:
    """When files would be put together. Programs can say it; `enable_compact` refuses."""

    num_checkpoints_before_compaction: int = -1
    size_threshold: int = -1
    num_compact_threads: int = 1

    @staticmethod
    def builder() -> FileCompactStrategy.Builder:
        return FileCompactStrategy.Builder()

    class Builder:
        """Collects the settings of a FileCompactStrategy."""

        def __init__(self) -> None:
            self._checkpoints, self._size, self._threads = -1, -1, 1

        def enable_compaction_on_checkpoint(
            self, num_checkpoints_before_compaction: int
        ) -> FileCompactStrategy.Builder:
            self._checkpoints = num_checkpoints_before_compaction
            return self

        def set_size_threshold(self, size_threshold: int) -> FileCompactStrategy.Builder:
            self._size = size_threshold
            return self

        def set_num_compact_threads(self, num_compact_threads: int) -> FileCompactStrategy.Builder:
            self._threads = num_compact_threads
            return self

        def build(self) -> FileCompactStrategy:
            return FileCompactStrategy(self._checkpoints, self._size, self._threads)


@dataclass(frozen=True)
class FileCompactor:
    """How files would be put together."""

    kind: str
    file_delimiter: bytes | None = None

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> FileCompactor:
        return FileCompactor("concat", file_delimiter)

    @staticmethod
    def identical_file_compactor() -> FileCompactor:
        return FileCompactor("identical")

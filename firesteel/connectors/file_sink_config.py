"""Settings of the file sink: how its files are named and how large they get."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.errors import ConfigurationError


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
class RollingPolicy:
    """When a writer starts a new file: at every checkpoint, and before it when one has `part_size` bytes.

    Flink's time limits are about files that stay open over many checkpoints. None does here, so they are
    accepted and have no effect.
    """

    part_size: int | None

    @staticmethod
    def default_rolling_policy(
        part_size: int = 128 * 1024 * 1024, rollover_interval: int = 60_000, inactivity_interval: int = 60_000
    ) -> RollingPolicy:
        if part_size < 1:
            raise ConfigurationError(f"part_size must be at least 1 byte, but is {part_size}")
        return RollingPolicy(part_size)

    @staticmethod
    def on_checkpoint_rolling_policy() -> RollingPolicy:
        """One file per subtask and checkpoint, however large."""
        return RollingPolicy(None)

"""How a driver becomes the only one that may complete checkpoints, and how it completes one: what it takes of a storage.

`rename_fencing.py` does it in a local directory, `list_fencing.py` where nothing can be renamed.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

INCARNATION = re.compile(r"inc-(\d+)")
CHECKPOINT = re.compile(r"chk-(\d+)")


class Fencing(ABC):
    """Incarnations and checkpoints as a job's storage has them. Nothing here is read or interpreted."""

    @abstractmethod
    def incarnations(self) -> list[int]:
        """All there are, newest first."""

    @abstractmethod
    def claim(self) -> int:
        """A number higher than all others, and nobody else's."""

    @abstractmethod
    def fence(self, older: int, by: int) -> None:
        """From now on that incarnation completes no checkpoint that anybody will go on from, or commit."""

    @abstractmethod
    def fenced(self, number: int) -> bool:
        """Whether there is a newer incarnation that has fenced this one."""

    @abstractmethod
    def begin(self, number: int, checkpoint: int) -> str:
        """The folder for what belongs to a checkpoint and is there as soon as it is complete.

        :raises FileNotFoundError: the incarnation is fenced.
        """

    @abstractmethod
    def complete(self, number: int, checkpoint: int, metadata: bytes) -> None:
        """The commit point: after this the checkpoint exists.

        :raises FileNotFoundError: the incarnation is fenced, and the checkpoint does not exist.
        """

    @abstractmethod
    def drop_pending(self, number: int, checkpoint: int) -> None:
        """It will not be completed."""

    @abstractmethod
    def checkpoints(self, number: int) -> list[int]:
        """The completed checkpoints of an incarnation, oldest first."""

    @abstractmethod
    def remove(self, folder: str) -> None:
        """Remove a checkpoint, at once or not at all as far as anybody who looks for checkpoints is concerned."""

    @abstractmethod
    def remove_leftovers(self, number: int) -> None:
        """What a fenced incarnation left behind of checkpoints that were not completed, or half removed."""

    @abstractmethod
    def remove_drafts(self) -> None:
        """What claims that were killed half way left behind."""


def folder_of(incarnation: int, checkpoint: int) -> str:
    return f"inc-{incarnation}/chk-{checkpoint}"


def numbered(names: list[str], pattern: re.Pattern[str]) -> list[int]:
    return sorted(int(match[1]) for match in map(pattern.fullmatch, names) if match)

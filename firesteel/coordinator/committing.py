"""The driver's half of sinks: making output visible once its checkpoint is complete."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence

from firesteel.common.crashpoints import crash_point
from firesteel.connectors.base import CommitterContext, Json, NumberedCommitter
from firesteel.errors import DataLossError
from firesteel.graph.nodes import Write
from firesteel.graph.plan import JobPlan

log = logging.getLogger("firesteel")

Committables = Mapping[str, Sequence[Json]]  # sink uid -> committables

_FIRST_RETRY_S, _LONGEST_RETRY_S = 0.1, 10.0


class Committers:
    """The committers of one incarnation, one for each transactional sink."""

    def __init__(self, plan: JobPlan, job_id: str, incarnation: int, directory: str = "") -> None:
        self._committers: dict[str, NumberedCommitter] = {}
        for operator in plan.operators:
            if isinstance(operator.operator, Write):
                context = CommitterContext(job_id, operator.uid, incarnation, directory)
                committer = operator.operator.sink.create_committer(context)
                if committer is not None:
                    self._committers[operator.uid] = committer

    @property
    def uids(self) -> Collection[str]:
        """The sinks that can commit."""
        return self._committers.keys()

    def check(self, committables: Committables) -> None:
        """Raise if some of it could not be committed."""
        for uid, items in committables.items():
            if items and uid in self._committers:
                self._committers[uid].check(items)

    def commit(
        self, checkpoint: int, committables: Committables, abandoned: threading.Event, check: Callable[[], None]
    ) -> bool:
        """Commit all, trying again for as long as it takes. False when it was abandoned before all was done.

        A complete checkpoint must be committed: giving up would lose records, so nothing but the end of this incarnation
        ends the attempts, and its successor goes on with them. `check` raises when there is a successor already.
        """
        for uid, items in committables.items():
            if items and not self._commit_one(uid, checkpoint, items, abandoned, check):
                return False
            crash_point("after-one-commit")
        return True

    def _commit_one(
        self, uid: str, checkpoint: int, items: Sequence[Json], abandoned: threading.Event, check: Callable[[], None]
    ) -> bool:
        pause, attempt = _FIRST_RETRY_S, 1
        while True:
            try:
                self._committers[uid].commit_checkpoint(checkpoint, items)
            except DataLossError:
                raise  # the sink is certain that trying again is in vain
            except Exception as error:  # whatever else it raises, the answer is to try again
                if not self._committers[uid].retried:
                    raise
                log.warning(
                    "sink %s could not commit %d items (attempt %d, trying again): %s",
                    uid,
                    len(items),
                    attempt,
                    error,
                )
            else:
                return True
            check()
            if abandoned.wait(pause):
                return False
            pause, attempt = min(pause * 2, _LONGEST_RETRY_S), attempt + 1

    def abort(self, committables: Committables) -> None:
        """Throw away output of checkpoints that never came to be. What is left over, the next incarnation sweeps."""
        for uid, items in committables.items():
            if items and uid in self._committers:
                try:
                    self._committers[uid].abort(items)
                except Exception as error:  # noqa: BLE001  the job is ending for another reason, which must be heard
                    log.warning("sink %s could not abort %d items: %s", uid, len(items), error)

    def sweep(self) -> None:
        """Abort what older incarnations left behind: all they had to commit has been committed."""
        for committer in self._committers.values():
            committer.sweep(keep=())

    def close(self) -> None:
        for committer in self._committers.values():
            committer.close()

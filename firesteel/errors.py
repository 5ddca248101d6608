"""What can go wrong, as exceptions whose messages say what happened, where, and what to do about it."""

from __future__ import annotations


class FiresteelError(Exception):
    """Base of everything firesteel raises on purpose."""


class ConfigurationError(FiresteelError):
    """A setting, session or environment that a job cannot run with."""


class JobRunningError(ConfigurationError):
    """Another driver runs this job, and was not to be replaced."""


class GraphError(FiresteelError):
    """A program that cannot become a job: found while it is being built, before anything runs."""


class SerializationError(FiresteelError):
    """A function or value that cannot be sent to another process."""


class InvalidKeyError(FiresteelError):
    """A key that has no canonical form, so that its state could not be found again."""


class TypeMismatchError(FiresteelError):
    """A record that is not of the type declared for its stream.

    :ivar record: the record; with `index` its position in the batch that was checked.
    :ivar path: where in the record the wrong value is: empty for the record itself, else like `[1]` or `.name`.
    :ivar value: the wrong value.
    :ivar declared: the type declared for it.
    """

    def __init__(
        self,
        message: str,
        *,
        record: object = None,
        index: int = -1,
        path: str = "",
        value: object = None,
        declared: object = None,
    ) -> None:
        super().__init__(message)
        self.record = record
        self.index = index
        self.path = path
        self.value = value
        self.declared = declared


class StateError(FiresteelError):
    """Keyed state used where there is none, or one name used for two kinds of state."""


class TimerError(FiresteelError):
    """A timer where there can be none, or for a time that is none."""


class SideOutputError(FiresteelError):
    """A record for a side output that nobody reads."""


class UserCodeError(FiresteelError):
    """An exception in a user's function; the message starts with the user's own traceback."""


class SinkError(FiresteelError):
    """Another system that does not take what a sink gives it, or cannot be reached.

    :ivar transient: whether the same may work later, with nothing changed here.
    """

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class SlotLostError(FiresteelError):
    """A slot (or the Spark worker that feeds it) died or cannot be reached; a restart can mend it."""


class ExternalSystemError(FiresteelError):
    """Another system (a broker, a database) cannot be reached or refuses. The message says which one and what it said; a
    restart can mend it."""


class DataLossError(FiresteelError):
    """Input that is gone before it was read, or output that can never be committed. Only a person can decide to go on."""


class BadRecordError(FiresteelError):
    """A record of the input that its format cannot read. The message says where it is and how it starts."""


class CheckpointError(FiresteelError):
    """A checkpoint that cannot be written."""


class SavepointError(FiresteelError):
    """A savepoint that was not taken. The message says why; the job goes on."""


class RestoreError(FiresteelError):
    """A checkpoint that cannot be read: of another job, of a newer format, missing or damaged files."""


class SupersededError(FiresteelError):
    """A newer incarnation of this job has taken over; this one must stop and change nothing more."""


class JobCancelledError(FiresteelError):
    """The job was cancelled before it finished."""

"""What can go wrong, as exceptions whose messages say what happened, where, and what to do about it."""

from __future__ import annotations


class FiresteelError(Exception):
    """Base of everything firesteel raises on purpose."""


class ConfigurationError(FiresteelError):
    """A setting, session or environment that a job cannot run with."""


class GraphError(FiresteelError):
    """A program that cannot become a job: found while it is being built, before anything runs."""


class SerializationError(FiresteelError):
    """A function or value that cannot be sent to another process."""


class InvalidKeyError(FiresteelError):
    """A key that has no canonical form, so that its state could not be found again."""


class StateError(FiresteelError):
    """Keyed state used where there is none, or one name used for two kinds of state."""


class UserCodeError(FiresteelError):
    """An exception in a user's function; the message starts with the user's own traceback."""


class SlotLostError(FiresteelError):
    """A slot (or the Spark worker that feeds it) died or cannot be reached; a restart can mend it."""


class CheckpointError(FiresteelError):
    """A checkpoint that cannot be written."""


class RestoreError(FiresteelError):
    """A checkpoint that cannot be read: of another job, of a newer format, missing or damaged files."""


class SupersededError(FiresteelError):
    """A newer incarnation of this job has taken over; this one must stop and change nothing more."""


class JobCancelledError(FiresteelError):
    """The job was cancelled before it finished."""

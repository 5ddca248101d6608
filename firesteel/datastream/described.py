"""What streams and sinks have in common: the operator they came from can be named and placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from firesteel.errors import GraphError
from firesteel.graph.nodes import Chaining, Input, check_positive

if TYPE_CHECKING:
    from firesteel.datastream.environment import StreamExecutionEnvironment
    from firesteel.datastream.slot_sharing_group import SlotSharingGroup

Self = TypeVar("Self", bound="Described")


class Described:
    """The outputs of one operator, or of several united."""

    def __init__(self, environment: StreamExecutionEnvironment, inputs: tuple[Input, ...]) -> None:
        self._environment = environment
        self._inputs = inputs

    def _change(self: Self, what: str, **settings: Any) -> Self:
        self._environment.graph.change(self._inputs[0].node, **settings)
        return self

    def name(self: Self, name: str) -> Self:
        """What the operator is called in plans, logs and errors."""
        return self._change("name()", name=name)

    def uid(self: Self, uid: str) -> Self:
        """Ties the operator's state to this name, across changes of the program."""
        return self._change("uid()", uid=uid)

    def set_uid_hash(self: Self, uid_hash: str) -> Self:
        """Not supported: firesteel finds state by uid alone, also that of operators which were given none."""
        raise GraphError(
            f"set_uid_hash({uid_hash!r}) cannot be used: state is found by uid, and hashes of Flink mean nothing here. To "
            f"take over the state of an operator that had no uid, give the one that explain() showed for it to uid(...)"
        )

    def set_description(self: Self, description: str) -> Self:
        """More about the operator than its name, for `explain()`, execution plans and the REST server. By itself the name."""
        return self._change("set_description()", description=description)

    def set_parallelism(self: Self, parallelism: int) -> Self:
        return self._change("set_parallelism()", parallelism=check_positive("parallelism", parallelism))

    def set_max_parallelism(self: Self, max_parallelism: int) -> Self:
        """The number of key groups the operator's state is divided into: fixed for the life of the state."""
        degree = check_positive("max parallelism", max_parallelism)
        return self._change("set_max_parallelism()", max_parallelism=degree)

    def disable_chaining(self: Self) -> Self:
        """Put the operator into a level (a Spark stage) of its own, apart from what is before it and from what follows it."""
        return self._change("disable_chaining()", chaining=Chaining.NEVER)

    def slot_sharing_group(self: Self, slot_sharing_group: str | SlotSharingGroup) -> Self:
        """Accepted without effect: every slot runs one subtask of each operator."""
        return self._change("slot_sharing_group()")


class DataStreamSink(Described):
    """The end of a stream."""

"""Names of side outputs."""

from __future__ import annotations

from typing import Any

from firesteel.common.typeinfo import RowTypeInfo, TypeInformation, Types

_any_exist = False


class OutputTag:
    """Names a side output: a process function emits to it with `yield output_tag, value`.

    Tags are equal when their ids are, so a tag can be made anew wherever it is needed.
    """

    __slots__ = ("tag_id", "type_info")

    tag_id: str
    type_info: TypeInformation

    def __init__(self, tag_id: str, type_info: TypeInformation | list[TypeInformation] | None = None) -> None:
        """
        :param tag_id: unique within the operator.
        :param type_info: the type of the side output's records; a list stands for a row of those types.
        """
        global _any_exist
        if not isinstance(tag_id, str) or not tag_id:
            raise ValueError(f"an OutputTag's id must be a non-empty string, not {tag_id!r}")
        if type_info is None:
            type_info = Types.PICKLED_BYTE_ARRAY()
        elif isinstance(type_info, list):
            type_info = RowTypeInfo(type_info)
        elif not isinstance(type_info, TypeInformation):
            raise TypeError(
                f"the type of OutputTag {tag_id!r} must be a TypeInformation such as Types.STRING(), a list of them, "
                f"or None, not {type_info!r}"
            )
        self.tag_id = tag_id
        self.type_info = type_info
        _any_exist = True

    @staticmethod
    def exist() -> bool:
        """Whether this process ever had a tag. While it had none, no record can be meant for a side output."""
        return _any_exist

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and self.tag_id == other.tag_id

    def __hash__(self) -> int:
        return hash(self.tag_id)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tag_id, self.type_info)  # through __init__, so that exist() holds where it arrives

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r}, {self.type_info!r})"

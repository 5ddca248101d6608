"""Requests, answers, and requests that cannot be answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

Document = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """What somebody asks: the parts of the path that have names, the query and the body."""

    parts: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)

    def text(self, key: str) -> str | None:
        """A text of the body, if it is there."""
        value: str | None = self._typed(key, str, "a text")
        return value

    def flag(self, key: str) -> bool:
        """True or false of the body, false if it is not there."""
        return bool(self._typed(key, bool, "true or false"))

    def _typed(self, key: str, kind: type, called: str) -> Any:
        value = self.body.get(key)
        if value is not None and not isinstance(value, kind):
            raise RequestError(HTTPStatus.BAD_REQUEST, f"{key} has to be {called}, not {value!r:.100}")
        return value


@dataclass(frozen=True)
class Answer:
    document: Any  # JSON
    status: HTTPStatus = HTTPStatus.OK


class RequestError(Exception):
    """A request that gets an error as its answer, in Flink's form: `{"errors": [...]}`."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status

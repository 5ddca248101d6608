"""JDBC addresses: `jdbc:postgresql://host:5432/database?currentSchema=shop`, `jdbc:mariadb://...`, `jdbc:mysql://...`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from firesteel.errors import ConfigurationError

_URL = re.compile(r"jdbc:(?P<kind>[a-z]+):(?://(?P<hosts>[^/?]*)/?)?(?P<database>[^?]*)(?:\?(?P<query>.*))?")
_PORTS = {"postgresql": 5432, "mariadb": 3306, "mysql": 3306}


@dataclass(frozen=True)
class Address:
    """Which database of which server. Printing it shows no password."""

    kind: str
    host: str
    port: int
    database: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"{self.kind}://{self.host}:{self.port}/{self.database}"


def parse_url(url: str) -> Address:
    """
    :raises ConfigurationError: it is no such address.
    """
    match = _URL.fullmatch(url)
    if match is None or match["kind"] not in _PORTS:
        raise ConfigurationError(
            f"{_without_query(url)!r} is no address of a database that firesteel can write to. It writes to "
            f"jdbc:postgresql://host:port/database, jdbc:mariadb://... and jdbc:mysql://..."
        )
    kind, hosts = match["kind"], match["hosts"] or ""
    if "," in hosts:
        raise ConfigurationError(f"{_without_query(url)!r} has several hosts; give the one that is written to")
    host, port = _host_and_port(url, hosts)
    database = unquote(match["database"])
    if not database:
        raise ConfigurationError(f"{_without_query(url)!r} names no database: write jdbc:{kind}://host:port/database")
    return Address(kind, host or "localhost", port or _PORTS[kind], database, dict(parse_qsl(match["query"] or "")))


def _host_and_port(url: str, text: str) -> tuple[str, int | None]:
    match = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^:@\[\]]*)(?::(\d+))?", text)
    if match is None:
        host = text.rpartition("@")[2]
        raise ConfigurationError(
            f"{_without_query(url)!r}: what is before {host!r} is no part of host:port. User and password are given with "
            f"with_user_name() and with_password()"
            if host != text
            else f"{_without_query(url)!r}: {host!r} is not host:port"
        )
    return match[1].strip("[]"), int(match[2]) if match[2] else None


def _without_query(url: str) -> str:
    return re.sub(r"//[^/@]*@", "//...@", url.partition("?")[0])  # where passwords may be

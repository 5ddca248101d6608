"""Asks the server of a job."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any
from urllib.parse import quote, urlencode

from firesteel.errors import ConfigurationError, ExternalSystemError, FiresteelError

_TIMEOUT_S = 30.0
_UNAUTHORIZED, _NOT_FOUND = 401, 404


class UnreachableError(ExternalSystemError):
    """Nobody answers."""


class RestClient:
    """Of one server.

    :param address: `host:port`
    """

    def __init__(self, address: str, token: str | None) -> None:
        host, colon, port = address.removeprefix("http://").rstrip("/").rpartition(":")
        if not colon or not host or not port.isdigit():
            raise ConfigurationError(f"{address!r} is no address of a job's server: write host:port")
        self.address = address
        self._host, self._port = host.strip("[]"), int(port)
        self._token = token or ""

    def get(self, *path: str, **query: str) -> Any:
        return self._ask("GET", path, query)

    def post(self, *path: str, body: dict[str, Any]) -> Any:
        return self._ask("POST", path, {}, body)

    def patch(self, *path: str, **query: str) -> Any:
        return self._ask("PATCH", path, query)

    def _ask(
        self, method: str, path: tuple[str, ...], query: dict[str, str], body: dict[str, Any] | None = None
    ) -> Any:
        """
        :raises UnreachableError: nobody answers.
        :raises FiresteelError: the answer is an error.
        """
        target = "/" + "/".join(quote(part, safe="") for part in path) + (f"?{urlencode(query)}" if query else "")
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT_S)
        try:
            connection.request(method, target, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            status, data = response.status, response.read()
        except socket.gaierror as error:
            raise UnreachableError(f"there is no machine {self._host}: {error.strerror}") from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise UnreachableError(f"no job answers on {self.address}: {reason}") from None
        finally:
            connection.close()
        try:
            document = json.loads(data or b"{}")
        except ValueError:
            raise ConfigurationError(
                f"{self.address} is no server of a firesteel job: it answers {data[:80]!r}"
            ) from None
        if status < http.client.BAD_REQUEST:
            return document
        raise self._error(status, document)

    def _error(self, status: int, document: Any) -> FiresteelError:
        errors = document.get("errors") if isinstance(document, dict) else None
        said = " ".join(map(str, errors or [f"status {status}"]))
        if status == _UNAUTHORIZED:
            return ConfigurationError(
                f"the job at {self.address} does not accept the token: set FIRESTEEL_TOKEN or -Drest.token to the one it runs "
                f"with"
            )
        if status < http.client.INTERNAL_SERVER_ERROR:
            return ConfigurationError(said)
        return ExternalSystemError(f"the job at {self.address} could not answer: {said}")

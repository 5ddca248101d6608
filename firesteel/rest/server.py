"""The HTTP server. No request, however it is made, slow or large, harms a job: each is a thread of its own, reads little,
and has to be done in time.

Every request needs the token. It is looked at before anything else of the request is believed.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import logging
import socket
import threading
import time
from collections.abc import Iterable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from firesteel.errors import ConfigurationError
from firesteel.rest.messages import Answer, RequestError
from firesteel.rest.routes import answer
from firesteel.rest.served import ServedJobs

log = logging.getLogger("firesteel")

_LARGEST_BODY = 1 << 20
_MOST_CONNECTIONS = 32
_LONGEST_S = 30.0
_POLL_S = 0.1  # a job that ends waits for that
_SILENCE_S = 10.0
_DRAIN_S, _CHUNK = 0.5, 1 << 16


class RestServer:
    """Listens from the moment it is made, and answers once it is started."""

    def __init__(self, bind_address: str, ports: Iterable[int], token: str) -> None:
        """
        :raises ConfigurationError: none of the ports can be had.
        """
        self.jobs = ServedJobs()
        self._server = _bound(bind_address, ports)
        self._server.jobs, self._server.token = self.jobs, token.encode()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_S,), name="rest", daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


def _bound(bind_address: str, ports: Iterable[int]) -> _Server:
    refused: OSError | None = None
    tried = []
    for port in ports:
        tried.append(port)
        try:
            return _Server(bind_address, port)
        except OSError as error:
            refused = error
    first, last = tried[0], tried[-1]
    which = f"port {first}" if first == last else f"none of the ports {first} to {last}"
    reason = refused.strerror if refused is not None else "there are none"
    raise ConfigurationError(
        f"the job's REST server cannot listen on {which} of {bind_address}: {reason}. Give it another port or a range with "
        f"rest.port, such as 8081-8090, or 0 for any; or switch it off with rest.enabled: false"
    )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = _MOST_CONNECTIONS
    jobs: ServedJobs
    token: bytes

    def __init__(self, address: str, port: int) -> None:
        family, *_, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        self.address_family = family
        self._connections: dict[socket.socket, float] = {}
        self._guard = threading.Lock()
        super().__init__(where[:2], _Handler)  # type: ignore[arg-type]

    def server_bind(self) -> None:
        """Without the reverse lookup of the address that HTTPServer makes, which can take long and is for nothing."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            full = len(self._connections) >= _MOST_CONNECTIONS
            if not full:
                self._connections[request] = time.monotonic()
        if full:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Now and then: end connections that have been there for too long, whatever they do."""
        now = time.monotonic()
        with self._guard:
            late = [one for one, since in self._connections.items() if now - since > _LONGEST_S]
        for one in late:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)  # its thread notices, and closes it

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("REST: a request of %s broke off", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "firesteel", ""
    timeout = _SILENCE_S

    def _handle(self) -> None:
        self.close_connection = True
        try:
            self._authenticate()
            where = urlsplit(self.path)
            query = dict(parse_qsl(where.query))
            found = answer(self.server.jobs, self.command, where.path, query, self._body())
        except RequestError as error:
            found = _errors(error.status, str(error))
        except Exception as error:  # the job must not hear of it
            log.warning("REST: %s %s could not be answered", self.command, self.path, exc_info=True)
            found = _errors(HTTPStatus.INTERNAL_SERVER_ERROR, f"Internal server error: {type(error).__name__}: {error}")
        self._send(found)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = _handle

    def _authenticate(self) -> None:
        scheme, _, given = self.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.server.token):
            raise RequestError(
                HTTPStatus.UNAUTHORIZED,
                f"{'Wrong' if given else 'No'} token: send the job's with the header Authorization: Bearer <token>",
            )

    def _body(self) -> dict[str, Any]:
        if "Transfer-Encoding" in self.headers:
            raise RequestError(HTTPStatus.LENGTH_REQUIRED, "A body needs a Content-Length")
        length = self.headers.get("Content-Length", "0")
        if not (length.isascii() and length.isdigit()):
            raise RequestError(HTTPStatus.BAD_REQUEST, f"Content-Length is no number: {length:.100}")
        if int(length) > _LARGEST_BODY:
            raise RequestError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"The body has {length:.20} bytes, and at most {_LARGEST_BODY} are read",
            )
        data = self.rfile.read(int(length))
        if len(data) < int(length):
            raise RequestError(HTTPStatus.BAD_REQUEST, "The body is shorter than its Content-Length")
        try:
            body = json.loads(data or b"{}")
        except (ValueError, RecursionError) as error:
            raise RequestError(HTTPStatus.BAD_REQUEST, f"The body is not JSON: {error}") from None
        if not isinstance(body, dict):
            raise RequestError(HTTPStatus.BAD_REQUEST, "The body has to be a JSON object")
        return body

    def _send(self, found: Answer) -> None:
        data = json.dumps(found.document).encode()
        self.send_response(found.status)
        self.send_header("Content-Type", "application/json; charset=UTF-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        if found.status == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        if found.status >= HTTPStatus.BAD_REQUEST:
            self._drain()

    def _drain(self) -> None:
        """Closing a connection with unread input resets it, and the other side would not get to read the answer."""
        with contextlib.suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(_DRAIN_S)
            for _ in range(_LARGEST_BODY // _CHUNK):
                if not self.connection.recv(_CHUNK):
                    return

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is no HTTP; in the same form as the rest."""
        self.close_connection = True
        self.command = self.command or ""
        self.request_version = self.request_version or self.protocol_version
        status = HTTPStatus(code)
        self._send(_errors(status, message or status.phrase))

    def log_message(self, format: str, *args: Any) -> None:
        log.debug("REST: %s %s", self.client_address[0], format % args)


def _errors(status: HTTPStatus, message: str) -> Answer:
    return Answer({"errors": [message]}, status)

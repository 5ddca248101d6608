"""From the settings to a job that can be reached: who may listen where, who may ask, and for how long."""

from __future__ import annotations

import ipaddress
import logging
import secrets
import socket
import threading
from types import TracebackType

from firesteel.common.job_status import JobStatus
from firesteel.errors import ConfigurationError
from firesteel.graph.settings import RestSettings
from firesteel.rest.registry import RegisteredJob, register
from firesteel.rest.served import ServedJob
from firesteel.rest.server import RestServer

log = logging.getLogger("firesteel")

_LINGER_S = 5.0
"""How long somebody who asked for a savepoint is given to hear of it, when the job ends with it."""


class Endpoint:
    """One job's way to the outside; as a context, until nothing is left of the job.

    Jobs of one process with the same settings share a server, as those of a Flink cluster do.
    """

    def __init__(self) -> None:
        self._server: _Shared | None = None
        self._registered: RegisteredJob | None = None
        self._served: ServedJob | None = None

    def listen(self, settings: RestSettings) -> None:
        """
        :raises ConfigurationError: it cannot be where it is told to.
        """
        if settings.enabled:
            self._server = _Shared.open(settings)

    def publish(self, served: ServedJob) -> None:
        """From now on the job can be found and asked."""
        self._served = served
        address, token = None, ""
        if self._server is not None:
            address, token = self._server.address, self._server.token
            self._server.serve(served)
        self._registered = register(served.id, served.settings.name, address, token)
        if self._registered is not None:
            served.job.history.on_status = lambda status: self._note(status)
            if address is not None:
                log.info("job '%s' (%s) answers on %s", served.settings.name, served.id, address)

    def _note(self, status: JobStatus) -> None:
        """A last word is said by `end`, which knows why."""
        if self._registered is not None and not status.is_terminal_state():
            self._registered.update(status=status.name)

    def end(self, failure: BaseException | None) -> None:
        """The job has ended, and its driver lets go of it now. When that is done, so is this."""
        if self._served is not None and self._registered is not None:
            history = self._served.job.history
            why = str(failure) if history.status is JobStatus.FAILED and failure is not None else None
            self._registered.update(status=history.status.name, ended_ms=history.ended_ms, failure=why)

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._registered is not None:
            self._registered.close()
        if self._server is None:
            return
        server, self._server = self._server, None
        operations = self._served.operations if self._served is not None else None
        if operations is None or not operations.unread():
            server.release()
            return

        def linger() -> None:
            operations.await_reading(_LINGER_S)
            server.release()

        # no daemon: a process that ends with its job waits for it
        threading.Thread(target=linger, name="rest lingers", daemon=False).start()


class _Shared:
    """A server, and how many jobs use it."""

    _lock = threading.Lock()
    _open: dict[RestSettings, _Shared] = {}

    def __init__(self, settings: RestSettings) -> None:
        self._settings = settings
        _check_allowed(settings)
        self.token = settings.token or secrets.token_urlsafe(32)
        self._server = RestServer(settings.bind_address, settings.ports, self.token)
        self._users = 0
        host = settings.address or settings.bind_address
        if host in ("0.0.0.0", "::"):
            host = socket.gethostname()
        self.address = f"[{host}]:{self._server.port}" if ":" in host else f"{host}:{self._server.port}"
        self._server.start()

    @classmethod
    def open(cls, settings: RestSettings) -> _Shared:
        with cls._lock:
            shared = cls._open.get(settings)
            if shared is None:
                shared = cls._open[settings] = cls(settings)
            shared._users += 1
            return shared

    def serve(self, job: ServedJob) -> None:
        self._server.jobs.add(job)

    def release(self) -> None:
        """One user less; without any the server ends."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            del self._open[self._settings]
        self._server.close()


def _check_allowed(settings: RestSettings) -> None:
    if settings.token is not None and not (
        settings.token.isascii() and settings.token.isprintable() and settings.token.strip()
    ):
        raise ConfigurationError("rest.token cannot be empty, and consists of ASCII letters, digits and signs")
    try:
        found = {info[4][0] for info in socket.getaddrinfo(settings.bind_address, None, type=socket.SOCK_STREAM)}
    except OSError as error:
        raise ConfigurationError(
            f"rest.bind-address {settings.bind_address!r} is no address of this machine: {error.strerror}"
        ) from None
    if settings.token is None and not all(
        ipaddress.ip_address(str(one).partition("%")[0]).is_loopback for one in found
    ):
        raise ConfigurationError(
            f"rest.bind-address {settings.bind_address} can be reached from other machines, and whoever reaches the job can "
            f"cancel it: set a secret with rest.token or FIRESTEEL_TOKEN, or listen on 127.0.0.1"
        )

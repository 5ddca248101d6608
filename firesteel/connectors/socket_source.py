"""Text from a socket."""

from __future__ import annotations

import codecs
import contextlib
import logging
import socket
import threading

from firesteel.connectors.base import EnumeratorContext
from firesteel.connectors.driver_source import DriverSource, Pusher, PushQueue
from firesteel.errors import ConfigurationError, FiresteelError

log = logging.getLogger("firesteel")

_BUFFER = 64 * 1024
_CONNECT_TIMEOUT_S = 10.0


class SocketSource(DriverSource):
    """Connects from the driver and reads UTF-8 text, one record between two delimiters (a `\\r` before `\\n` is dropped).

    At most once: what was sent cannot be asked for again. The input ends when the other side closes the connection and
    all `max_retries` further connections have ended too; -1 connects again for ever.
    """

    def __init__(
        self, hostname: str, port: int, delimiter: str = "\n", max_retries: int = 0, retry_delay_s: float = 0.5
    ) -> None:
        if not isinstance(port, int) or not 0 < port < 65536:
            raise ConfigurationError(f"a port is a number from 1 to 65535, not {port!r}")
        if not delimiter:
            raise ConfigurationError("the delimiter of a socket's records cannot be empty")
        if max_retries < -1:
            raise ConfigurationError(f"max_retries is the number of reconnections, or -1 for ever, not {max_retries}")
        self.hostname = hostname
        self.port = port
        self.delimiter = delimiter
        self.max_retries = max_retries
        self.retry_delay_s = retry_delay_s

    def create_pusher(self, context: EnumeratorContext) -> Pusher:
        return SocketPusher(self)


class SocketPusher(Pusher):
    """Reads connection after connection. Text behind the last delimiter is kept for the next, as Flink does."""

    def __init__(self, source: SocketSource) -> None:
        self._source = source
        self._cancelled = threading.Event()
        self._connection: socket.socket | None = None
        self._lock = threading.Lock()

    def run(self, queue: PushQueue) -> None:
        source = self._source
        left = source.max_retries
        rest = ""
        while True:
            problem: OSError | None = None
            try:
                rest = self._read(queue, rest)
            except OSError as error:
                problem = error
            if self._cancelled.is_set():
                return
            if left == 0:
                if problem is not None:
                    raise FiresteelError(  # no ConfigurationError: a restart may find it there
                        f"cannot read from {source.hostname}:{source.port}: {problem}. Is something listening there? To "
                        f"try it by hand, start `nc -lk {source.port}` first; to try again, give a max_retry"
                    ) from problem
                break
            left -= 1  # stays below 0 when it began there
            log.warning(
                "socket %s:%d %s; connecting again in %g s",
                source.hostname, source.port, f"failed ({problem})" if problem else "was closed", source.retry_delay_s,
            )  # fmt: skip
            if self._cancelled.wait(source.retry_delay_s):
                return
        if rest:
            queue.put(rest)

    def _read(self, queue: PushQueue, rest: str) -> str:
        source = self._source
        delimiter = source.delimiter
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with socket.create_connection((source.hostname, source.port), _CONNECT_TIMEOUT_S) as connection:
            with self._lock:
                self._connection = connection
            try:
                connection.settimeout(None)
                while not self._cancelled.is_set():
                    data = connection.recv(_BUFFER)
                    rest += decoder.decode(data, final=not data)
                    *records, rest = rest.split(delimiter)
                    for record in records:
                        queue.put(record.removesuffix("\r") if delimiter == "\n" else record)
                    if not data:
                        break
            finally:
                with self._lock:
                    self._connection = None
        return rest

    def cancel(self) -> None:
        self._cancelled.set()
        with self._lock:
            if self._connection is not None:
                with contextlib.suppress(OSError):  # closed by the other side meanwhile
                    self._connection.shutdown(socket.SHUT_RDWR)  # wakes up recv, which close() would not

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from firesteel.connectors.socket_source import SocketSource
from firesteel.errors import ConfigurationError, FiresteelError
from tests.connectors.driving import Driven
from tests.support.waiting import PATIENCE_S


class Server:
    """Accepts one connection after another and sends what it is told to."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(PATIENCE_S)
        self.port: int = self._listening.getsockname()[1]

    def accept(self) -> socket.socket:
        return self._listening.accept()[0]

    def serve(self, *connections: list[bytes]) -> None:
        """Answer that many connections, in a thread, each with these pieces and an end."""

        def run() -> None:
            with contextlib.suppress(OSError):  # closed before all of them have come
                for pieces in connections:
                    with self.accept() as connection:
                        for piece in pieces:
                            connection.sendall(piece)

        threading.Thread(target=run, daemon=True).start()

    def close(self) -> None:
        self._listening.close()


@pytest.fixture
def server() -> Iterator[Server]:
    with contextlib.closing(Server()) as server:
        yield server


def lines_of(port: int, **settings: object) -> list[str]:
    job = Driven(SocketSource("127.0.0.1", port, retry_delay_s=0, **settings))  # type: ignore[arg-type]
    try:
        return job.all()
    finally:
        job.enumerator.close()


def test_lines_come_in_order_until_the_other_side_ends(server: Server) -> None:
    server.serve([b"to be\nor not\r\n", b"to", b" be\n"])
    assert lines_of(server.port) == ["to be", "or not", "to be"]


def test_text_behind_the_last_line_end_is_a_line_too(server: Server) -> None:
    server.serve([b"one\ntwo"])
    assert lines_of(server.port) == ["one", "two"]


def test_characters_may_arrive_in_pieces(server: Server) -> None:
    text = "grün 火\n".encode()
    server.serve([text[:3], text[3:7], text[7:]])
    assert lines_of(server.port) == ["grün 火"]


def test_bytes_that_are_no_text_do_not_stop_the_job(server: Server) -> None:
    server.serve([b"a\xffb\n"])
    assert lines_of(server.port) == ["a\ufffdb"]


def test_records_may_be_divided_by_something_else(server: Server) -> None:
    server.serve([b"a;", b";b\r;;c"])
    assert lines_of(server.port, delimiter=";;") == ["a", "b\r", "c"]


def test_a_connection_that_ended_is_made_again_as_often_as_told(server: Server) -> None:
    server.serve([b"one\nha"], [b"lf\n"], [b"three\n"], [b"never asked for\n"])
    assert lines_of(server.port, max_retries=2) == ["one", "half", "three"]


def test_minus_one_connects_again_for_ever(server: Server) -> None:
    job = Driven(SocketSource("127.0.0.1", server.port, max_retries=-1, retry_delay_s=0))
    server.serve(*[[f"{number}\n".encode()] for number in range(5)])
    lines: list[str] = []
    while len(lines) < 5:
        lines += job.some()
    assert lines == ["0", "1", "2", "3", "4"]
    assert not job.enumerator.finished()
    server.close()
    job.enumerator.close()


def test_nobody_listening_is_an_error_that_says_what_to_do() -> None:
    with contextlib.closing(Server()) as server:
        port = server.port
    with pytest.raises(FiresteelError, match=rf"cannot read from 127.0.0.1:{port}: .*nc -lk {port}"):
        lines_of(port)


def test_closing_wakes_up_a_source_that_waits_for_text(server: Server) -> None:
    job = Driven(SocketSource("127.0.0.1", server.port))
    assert job.epoch() == []
    with server.accept() as connection:
        connection.sendall(b"first\n")
        assert job.some() == ["first"]
        job.enumerator.close()
        assert job.enumerator._thread is not None
        assert not job.enumerator._thread.is_alive()


def test_a_socket_cannot_be_replayed() -> None:
    assert SocketSource("localhost", 1).replayable is False


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="port"):
        SocketSource("localhost", 0)
    with pytest.raises(ConfigurationError, match="delimiter"):
        SocketSource("localhost", 1, "")
    with pytest.raises(ConfigurationError, match="max_retries"):
        SocketSource("localhost", 1, max_retries=-2)

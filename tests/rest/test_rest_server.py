"""Who is answered and who is not; and no request harms the job."""

from __future__ import annotations

import socket
import time

import pytest

from firesteel.client import RunningJob
from firesteel.errors import ConfigurationError
from firesteel.rest import server
from firesteel.rest.registry import find_jobs
from tests.rest.conftest import Asker, Launch, asker
from tests.support.waiting import wait_until


def raw(ask: Asker, data: bytes) -> bytes:
    """What comes back for these bytes."""
    with socket.create_connection((ask.host, ask.port), timeout=30) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece
        return answer


def still_runs(job: RunningJob) -> None:
    before = job.progress.epochs
    wait_until(lambda: job.progress.epochs > before, "epochs")
    assert not job.job.failures


# ---- who may ask


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer wrong", "Basic {token}", "Bearer {token}x", "{token}"])
def test_without_the_token_nothing_is_said_and_nothing_done(ask: Asker, header: str) -> None:
    given = header.format(token=ask.token)
    for method, path in [
        ("GET", "/jobs"),
        ("PATCH", "/jobs/:id?mode=cancel"),
        ("GET", "/nowhere"),
        ("POST", "/jobs/:id/stop"),
    ]:
        status, document = ask(method, path, Authorization=given)
        assert status == 401 and list(document) == ["errors"] and ask.job not in str(document)
    assert ask.get("/jobs/:id/status") == {"status": "RUNNING"}


def test_the_token_is_one_for_each_server_and_only_its_user_can_read_it(run: Launch) -> None:
    run(name="one")
    run(name="other", port=(0, 0))
    one, other = find_jobs()
    assert one.token() != other.token() and len(one.token() or "") >= 32
    for found in (one, other):
        assert (found.folder / "token").stat().st_mode & 0o777 == 0o600
        assert (found.folder / "job.json").stat().st_mode & 0o777 == 0o600
        assert found.folder.stat().st_mode & 0o777 == 0o700


def test_a_token_of_the_settings_is_the_one(run: Launch) -> None:
    ask = asker(run(token="open sesame"))
    assert ask.token == "open sesame" and ask.get("/jobs")
    with pytest.raises(ConfigurationError, match=r"rest\.token cannot be empty"):
        run(name="other", token=" ")


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_other_machines_are_listened_to_only_with_a_token_that_was_set(run: Launch, address: str) -> None:
    with pytest.raises(ConfigurationError, match=r"can be reached from other machines.*rest\.token"):
        run(bind_address=address)
    assert not find_jobs()
    if address == "0.0.0.0":
        job = run(bind_address=address, token="secret")
        found = find_jobs()[0]
        assert (found.entry.address or "").partition(":")[0] == socket.gethostname()
        still_runs(job)


def test_an_address_that_is_none_is_named(run: Launch) -> None:
    with pytest.raises(ConfigurationError, match=r"rest\.bind-address 'nowhere\.invalid'"):
        run(bind_address="nowhere.invalid")


# ---- ports


def test_a_port_that_is_taken_stops_the_job_before_it_starts(run: Launch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            ConfigurationError, match=rf"cannot listen on port {port} of 127\.0\.0\.1: Address already in use"
        ):
            run(port=(port,))
        assert not find_jobs()
        job = run(port=(port, 0))
        assert asker(job).port != port
        still_runs(job)


def test_the_port_is_free_again_when_the_job_has_ended(run: Launch) -> None:
    job = run()
    port = asker(job).port
    job.cancel().result(30)
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_a_job_can_run_without_a_server(run: Launch) -> None:
    job = run(enabled=False)
    (found,) = find_jobs()
    assert found.entry.address is None and found.alive
    still_runs(job)


# ---- what cannot be answered


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("GET", "/jobs/0123456789abcdef", None, 404, "Job 0123456789abcdef not found"),
        ("GET", "/jobs/..%2f..%2fetc", None, 404, "not found"),
        ("GET", "/nowhere", None, 404, "Not found: /nowhere"),
        ("DELETE", "/jobs/:id", None, 405, "try GET or PATCH"),
        ("PUT", "/jobs/:id/savepoints", None, 405, "try POST"),
        ("PATCH", "/jobs/:id?mode=stop", None, 400, "mode can only be cancel"),
        ("POST", "/jobs/:id/savepoints", "{", 400, "not JSON"),
        ("POST", "/jobs/:id/savepoints", "[1]", 400, "a JSON object"),
        ("POST", "/jobs/:id/savepoints", "\xff", 400, "not JSON"),
        ("POST", "/jobs/:id/savepoints", "[" * 100_000, 400, "not JSON"),
        ("POST", "/jobs/:id/savepoints", {"target-directory": 1}, 400, "target-directory has to be a text"),
        ("POST", "/jobs/:id/savepoints", {"cancel-job": "yes"}, 400, "cancel-job has to be true or false"),
        ("POST", "/jobs/:id/stop", {"drain": 1}, 400, "drain has to be true or false"),
        ("GET", "/jobs/:id/savepoints/none", None, 404, "Operation none not found"),
        ("POST", "/jobs/:id/savepoints", " " * (1 << 21), 413, "at most 1048576 are read"),
    ],
)  # fmt: skip
def test_a_request_that_cannot_be_is_told_why(
    ask: Asker, method: str, path: str, body: object, status: int, words: str
) -> None:
    got, document = ask(method, path, body.encode("latin-1") if isinstance(body, str) else body)
    assert (got, list(document)) == (status, ["errors"])
    assert words in document["errors"][0]


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\0\0\0\0\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /jobs\r\n\r\n", b"x" * 100_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 1000 + b"\r\n", b"BREW /jobs HTTP/1.1\r\n\r\n",
        b"POST /jobs HTTP/1.1\r\nAuthorization: Bearer TOKEN\r\nContent-Length: -1\r\n\r\n",
        b"POST /jobs HTTP/1.1\r\nAuthorization: Bearer TOKEN\r\nContent-Length: 9\r\n\r\n{}",
        b"POST /jobs HTTP/1.1\r\nAuthorization: Bearer TOKEN\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /jobs HTTP/1.1\r\nAuthorization: Bearer \xff\xfe\r\n\r\n",
    ],
)  # fmt: skip
def test_what_is_no_request_harms_nobody(run: Launch, data: bytes) -> None:
    job = run()
    ask = asker(job)
    answer = raw(ask, data.replace(b"TOKEN", (ask.token or "").encode()))
    assert not answer or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5", b'{"errors"')), answer[:200]
    still_runs(job)
    assert ask.get("/jobs/:id/status") == {"status": "RUNNING"}


def test_slow_clients_are_cut_off_and_many_are_not_served(run: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_LONGEST_S", 1.0)
    job = run()
    ask = asker(job)
    many = [socket.create_connection((ask.host, ask.port), timeout=30) for _ in range(server._MOST_CONNECTIONS + 5)]
    began = time.monotonic()
    for connection in many:
        connection.sendall(b"GET /jobs HTTP/1.1\r\nA:")
    for connection in many:  # each is ended, by whichever of both rules
        while connection.recv(4096):
            pass
        connection.close()
    assert time.monotonic() - began < 20
    wait_until(lambda: not ask_fails(ask), "the server to have room again")
    still_runs(job)


def ask_fails(ask: Asker) -> bool:
    try:
        return ask("GET", "/jobs")[0] != 200
    except OSError:
        return True


def test_a_mistake_of_the_server_is_an_answer_and_not_the_jobs_end(
    run: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = run()
    ask = asker(job)
    monkeypatch.setattr(job.progress, "counts", lambda: 1 // 0)
    status, document = ask("GET", "/jobs/:id")
    assert status == 500 and "ZeroDivisionError" in document["errors"][0]
    still_runs(job)

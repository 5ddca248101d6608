"""For all tests: random ones print what reproduces them, and none fails because the machine is busy."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.support.databases import Database, DatabaseServer, MariaDbServer, PostgreSqlServer, serving
from tests.support.s3 import S3Server, s3_command

settings.register_profile("firesteel", deadline=None, print_blob=True)
settings.load_profile("firesteel")

# A shell starts what it runs in the background with Ctrl-C ignored, and so would be every program that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Jobs of tests are not to be found among the user's, by processes that tests start neither."""
    os.environ["FIRESTEEL_HOME"] = str(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """One server for all tests that ask for it, each of which takes a bucket of its own."""
    command = s3_command()
    if command is None:
        pytest.fail("moto is not installed: pip install -e '.[dev]'")
    server = S3Server(command)
    yield server
    server.close()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[DatabaseServer]:
    yield from serving(PostgreSqlServer)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[DatabaseServer]:
    yield from serving(MariaDbServer)


@pytest.fixture(params=["postgresql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    """A new database, of each server in turn."""
    server: DatabaseServer = request.getfixturevalue(request.param)
    return server.database()

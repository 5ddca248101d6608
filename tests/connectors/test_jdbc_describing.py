"""Addresses, statements and options: what can be said without a server."""

from __future__ import annotations

import sys

import pytest

from firesteel.common import Types
from firesteel.connectors.jdbc_dialect import dialect_of
from firesteel.connectors.jdbc_statement import Statement
from firesteel.connectors.jdbc_url import Address, parse_url
from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from firesteel.errors import ConfigurationError

TWO = Types.ROW([Types.INT(), Types.STRING()])


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("jdbc:postgresql://host:1234/shop", Address("postgresql", "host", 1234, "shop")),
        ("jdbc:postgresql://host/shop", Address("postgresql", "host", 5432, "shop")),
        ("jdbc:postgresql:shop", Address("postgresql", "localhost", 5432, "shop")),
        ("jdbc:mariadb://host/a%20b", Address("mariadb", "host", 3306, "a b")),
        ("jdbc:mysql://[::1]:7/shop?user=me", Address("mysql", "::1", 7, "shop", {"user": "me"})),
    ],
)
def test_an_address_is_read_as_jdbc_reads_it(url: str, address: Address) -> None:
    assert parse_url(url) == address


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("jdbc:oracle://host/shop", "jdbc:postgresql"),
        ("postgresql://host/shop", "jdbc:postgresql"),
        ("jdbc:postgresql://me:secret@host/shop", "with_password"),
        ("jdbc:postgresql://a,b/shop", "several hosts"),
        ("jdbc:mysql://host:1234", "names no database"),
    ],
)
def test_what_is_no_address_is_refused_without_showing_a_password(url: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as error:
        JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url)
    assert "secret" not in str(error.value)


def test_question_marks_are_placeholders_where_they_are_no_text() -> None:
    sql = """INSERT INTO "a?" VALUES (?, '?''%', ?) -- really?\n /* ? */ WHERE $x$ ? $x$ ?? 5 % 2"""
    statement = Statement(sql, TWO)
    assert statement.count == 2
    assert statement.formatted() == (
        """INSERT INTO "a?" VALUES (%s, '?''%%', %s) -- really?\n /* ? */ WHERE $x$ ? $x$ ? 5 %% 2"""
    )
    assert "VALUES ($1, '?''%', $2)" in statement.numbered()


def test_placeholders_and_fields_have_to_be_as_many() -> None:
    with pytest.raises(ConfigurationError, match="has 1 placeholders and its type_info has 2 fields"):
        Statement("INSERT INTO t VALUES (?, %s)", TWO)


def test_pyflinks_options_are_there() -> None:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url("jdbc:postgresql://host/shop")
    made = builder.with_driver_name("org.postgresql.Driver").with_user_name("me").with_password("secret").build()
    assert (made.get_db_url(), made.get_driver_name()) == ("jdbc:postgresql://host/shop", "org.postgresql.Driver")
    assert (made.get_user_name(), made.get_password()) == ("me", "secret")
    assert "secret" not in repr(made)
    execution = JdbcExecutionOptions.builder().with_batch_size(7).with_batch_interval_ms(8).with_max_retries(9).build()
    assert execution.get_batch_size() == 7
    assert (execution.get_batch_interval_ms(), execution.get_max_retries()) == (8, 9)
    assert JdbcExecutionOptions.defaults() == JdbcExecutionOptions(0, 5000, 3)


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="at least 1"):
        JdbcExecutionOptions.builder().with_batch_size(0)
    with pytest.raises(ConfigurationError, match="with_url"):
        JdbcConnectionOptions.JdbcConnectionOptionsBuilder().build()
    with pytest.raises(ConfigurationError, match="JdbcConnectionOptions"):
        JdbcSink.sink("INSERT INTO t VALUES (?, ?)", TWO, "jdbc:postgresql://host/shop")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"Types\.ROW"):
        JdbcSink.sink("INSERT INTO t VALUES (?)", Types.INT(), JdbcConnectionOptions("jdbc:mysql://h/d"))  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "module"), [("postgresql", "psycopg"), ("mariadb", "pymysql")])
def test_a_driver_that_is_not_installed_is_asked_for(monkeypatch: pytest.MonkeyPatch, kind: str, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigurationError, match=r"pip install 'firesteel\[(postgresql|mysql)\]'"):
        dialect_of(parse_url(f"jdbc:{kind}://host/shop")).error  # noqa: B018

"""At least once: when rows leave, and what becomes of them when something fails."""

from __future__ import annotations

import datetime
import pickle
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from firesteel.common import Row, Types
from firesteel.connectors.base import SinkWriter, WriterContext
from firesteel.datastream.connectors.base import DeliveryGuarantee
from firesteel.datastream.connectors.jdbc import JdbcExecutionOptions, JdbcSink
from firesteel.errors import ConfigurationError, SinkError, TypeMismatchError
from tests.support.databases import Database

TYPE = Types.ROW_NAMED(["n", "name"], [Types.INT(), Types.STRING()])
INSERT = "INSERT INTO numbers (n, name) VALUES (?, ?)"


@pytest.fixture
def numbers(database: Database) -> Database:
    database.run("CREATE TABLE numbers (n INT PRIMARY KEY, name VARCHAR(10) NOT NULL)")
    return database


def sink(database: Database, sql: str = INSERT, patience_s: int = 30, **execution: int) -> JdbcSink:
    made = JdbcSink.sink(sql, TYPE, database.options(patience_s), JdbcExecutionOptions(**execution))
    return pickle.loads(pickle.dumps(made))  # type: ignore[no-any-return]


def writer(of: JdbcSink) -> SinkWriter:
    return of.create_writer(WriterContext("job", "shop", 1, 0, 1))


def rows(*numbers: int) -> list[Any]:
    return [Row(n=number, name=f"no {number}") for number in numbers]


def test_rows_leave_when_there_are_enough_and_when_the_epoch_ends(numbers: Database) -> None:
    writing = writer(sink(numbers, batch_size=3))
    writing.write(rows(1, 2))
    assert numbers.numbers() == []
    writing.write(rows(3, 4))
    assert numbers.numbers() == [1, 2, 3]
    writing.flush()
    assert numbers.numbers() == [1, 2, 3, 4]
    writing.write(rows(5))
    assert writing.prepare_commit() == []
    assert numbers.numbers() == [1, 2, 3, 4, 5]
    writing.close()


def test_rows_leave_when_they_have_waited_long_enough(numbers: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    from firesteel.connectors import jdbc_batches

    now = [100.0]
    monkeypatch.setattr(jdbc_batches.time, "monotonic", lambda: now[0])
    writing = writer(sink(numbers, batch_interval_ms=500))
    writing.write(rows(1))
    now[0] += 0.4
    writing.write(rows(2))
    assert numbers.numbers() == []
    now[0] += 0.1
    writing.write(rows(3))
    assert numbers.numbers() == [1, 2, 3]
    writing.close()


def test_what_close_finds_is_not_sent(numbers: Database) -> None:
    writing = writer(sink(numbers))
    writing.write(rows(1))
    writing.close()
    assert numbers.numbers() == []


def test_fields_go_by_name_where_there_are_names_and_by_position_otherwise(numbers: Database) -> None:
    writing = writer(sink(numbers))
    writing.write([Row(name="a", n=1), Row(2, "b"), (3, "c"), [4, "d"]])
    writing.flush()
    assert sorted(numbers.run("SELECT n, name FROM numbers")) == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    writing.close()


def test_values_of_all_kinds_arrive_as_they_are(database: Database) -> None:
    binary = "BYTEA" if database.kind == "postgresql" else "BLOB"
    database.run(
        f"CREATE TABLE kinds (a BIGINT, b DOUBLE PRECISION, c DECIMAL(20, 5), d VARCHAR(50), e {binary}, f DATE, g TIME, h "
        f"TIMESTAMP(6) NULL, i BOOLEAN)"
    )
    moment = datetime.datetime(2024, 2, 29, 12, 34, 56, 789012)
    text = 'it\'s 100% \\ "?" \u00e9\U0001f600\n'
    row = (
        2**53 + 1,
        0.1,
        Decimal("123456789012345.67890"),
        text,
        b"\x00\xff'%s",
        moment.date(),
        datetime.time(1),
        moment,
        True,
    )
    kinds = Types.ROW([
        Types.LONG(), Types.DOUBLE(), Types.BIG_DEC(), Types.STRING(), Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.SQL_DATE(),
        Types.SQL_TIME(), Types.SQL_TIMESTAMP(), Types.BOOLEAN(),
    ])  # fmt: skip
    writing = writer(JdbcSink.sink(f"INSERT INTO kinds VALUES ({', '.join('?' * 9)})", kinds, database.options()))
    writing.write([row, (None,) * 9])
    writing.flush()
    writing.close()
    assert database.run("SELECT a, b, c, d, e, f, h, i FROM kinds WHERE a IS NOT NULL") == [(*row[:6], *row[7:])]
    assert database.run("SELECT COUNT(*) FROM kinds WHERE d IS NULL AND h IS NULL") == [(1,)]


def test_an_upsert_makes_it_as_good_as_once(numbers: Database) -> None:
    upsert = {
        "postgresql": f"{INSERT} ON CONFLICT (n) DO UPDATE SET name = EXCLUDED.name",
        "mariadb": f"{INSERT} ON DUPLICATE KEY UPDATE name = VALUES(name)",
    }
    writing = writer(sink(numbers, upsert[numbers.kind]))
    for name in ("a", "b"):
        writing.write([(1, name), (2, name), (1, name + "!")])
        writing.flush()
    assert sorted(numbers.run("SELECT n, name FROM numbers")) == [(1, "b!"), (2, "b")]
    writing.close()


def test_placeholders_behind_the_values_are_filled_in_too(numbers: Database) -> None:
    of = JdbcSink.sink(
        {
            "postgresql": f"{INSERT} ON CONFLICT (n) DO UPDATE SET name = ? || '?%'",
            "mariadb": f"{INSERT} ON DUPLICATE KEY UPDATE name = CONCAT(?, '?%')",
        }[numbers.kind],
        Types.ROW([Types.INT(), Types.STRING(), Types.STRING()]),
        numbers.options(),
    )
    writing = writer(of)
    writing.write([(1, "new", "old"), (1, "new", "old")])
    writing.flush()
    assert numbers.run("SELECT n, name FROM numbers") == [(1, "old?%")]
    writing.close()


def test_a_server_that_went_away_and_came_back_is_written_to(numbers: Database) -> None:
    writing = writer(sink(numbers, batch_size=1))
    writing.write(rows(1))
    numbers.server.restart()
    writing.write(rows(2))
    assert numbers.numbers() == [1, 2]
    writing.close()


def test_a_server_that_stays_away_is_an_error_that_a_restart_can_mend(numbers: Database) -> None:
    writing = writer(sink(numbers, patience_s=0, max_retries=1))
    writing.write(rows(1))
    numbers.server.stop(numbers.server.crash)
    try:
        with pytest.raises(
            SinkError, match=rf"sink 'shop': .* at {numbers.kind}://127.0.0.1:\d+/db\d+ fails writing 1 "
        ) as e:
            writing.flush()
        assert e.value.transient
    finally:
        numbers.server.start()
    writing.flush()
    assert numbers.numbers() == [1]
    writing.close()


def test_a_row_that_is_refused_is_named_and_nothing_of_its_batch_is_there(numbers: Database) -> None:
    numbers.run("INSERT INTO numbers VALUES (7, 'there')")
    writing = writer(sink(numbers, max_retries=0))
    writing.write(rows(5, 6, 7, 8))
    with pytest.raises(
        SinkError, match=r"sink 'shop'.*refuses the row \(7, 'no 7'\): .*[Dd]uplicate.*INSERT INTO numbers"
    ) as e:
        writing.flush()
    assert not e.value.transient
    assert numbers.numbers() == [7]
    writing.close()


@pytest.mark.parametrize("row", [(1, "much longer than ten"), (1, None), (2**40, "a")])
def test_a_value_that_does_not_fit_is_an_error_and_is_not_cut(numbers: Database, row: tuple[Any, ...]) -> None:
    writing = writer(sink(numbers))
    writing.write([(0, "fits"), row])
    with pytest.raises(SinkError, match=r"refuses the row \(\d+, "):
        writing.flush()
    assert numbers.numbers() == []
    writing.close()


def test_a_record_with_other_fields_is_an_error_that_shows_it(numbers: Database) -> None:
    writing = writer(sink(numbers))
    with pytest.raises(TypeMismatchError, match=r"the record \(1,\) has 1 fields, and the statement takes 2"):
        writing.write([(1,)])
    with pytest.raises(TypeMismatchError, match=r"takes rows and tuples, not 'text'"):
        writing.write(["text"])


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("INSERT INTO nowhere (n, name) VALUES (?, ?)", "nowhere"),
        ("INSERT INTO numbers (n, title) VALUES (?, ?)", "title"),
        ("INSERT INTO numbers (n) VALUES (?, ?)", "expressions than|[Cc]olumn count"),
        ("INSERT INTO numbers SET WHERE (?, ?)", "syntax"),
    ],
)
def test_a_statement_that_does_not_fit_the_tables_is_refused_before_the_first_row(
    numbers: Database, sql: str, says: str
) -> None:
    with pytest.raises(ConfigurationError, match=rf"sink 'shop'.*before the job starts: .*({says})"):
        sink(numbers, sql).prepare(context("shop"))


def test_wrong_credentials_are_refused_and_not_shown(numbers: Database) -> None:
    made = JdbcSink.sink(INSERT, TYPE, numbers.options(password="not this one"))
    with pytest.raises(ConfigurationError, match=r"sink 'shop': .* at .*user.*firesteel") as error:
        made.prepare(context("shop"))
    assert "not this one" not in str(error.value) + repr(numbers.options(password="not this one"))


def test_a_server_that_is_not_there_yet_does_not_keep_the_job_from_starting(
    numbers: Database, caplog: pytest.LogCaptureFixture
) -> None:
    numbers.server.stop(numbers.server.crash)
    try:
        sink(numbers).prepare(context("shop"))
    finally:
        numbers.server.start()
    assert "the job starts without having seen its server" in caplog.text


def test_it_promises_at_least_once(numbers: Database) -> None:
    assert sink(numbers).guarantee is DeliveryGuarantee.AT_LEAST_ONCE
    assert sink(numbers).create_committer(None) is None  # type: ignore[arg-type]


def test_a_lost_answer_to_a_commit_repeats_rows_and_loses_none(database: Database) -> None:
    database.run("CREATE TABLE numbers (n INT, name VARCHAR(10))")
    writing = writer(sink(database, batch_size=2))
    session = writing._session  # type: ignore[attr-defined]
    send = writing._send  # type: ignore[attr-defined]
    lost = [True, False]

    def send_and_lose_the_answer(connection: Any) -> None:
        send(connection)
        if lost.pop(0):
            raise SinkError("no answer", transient=True)

    writing._send = send_and_lose_the_answer  # type: ignore[attr-defined]
    writing.write(rows(1, 2))
    session.close()
    assert Counter(database.numbers()) == {1: 2, 2: 2}


def context(uid: str) -> Any:
    from firesteel.connectors.base import PrepareContext

    return PrepareContext(uid, "", False, None)

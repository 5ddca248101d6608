"""`firesteel txn list | commit | abort`: a look at the Kafka transactions of jobs, for when a person has to decide.

A job resolves its transactions itself when it is started again. What is left for an operator is a job that never will be: its
open transactions hide everything behind them from readers of committed records until they time out.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from firesteel.cli.output import complain, table, write
from firesteel.connectors.kafka_transaction import TransactionalId
from firesteel.connectors.kafka_transactions import ONGOING, TransactionAdmin, TransactionInfo
from firesteel.coordinator.completed import locate
from firesteel.coordinator.listing import list_checkpoints
from firesteel.errors import ConfigurationError

_OPEN = (ONGOING, "PrepareCommit", "PrepareAbort")
_HEADER = ("STATE", "AGE", "TIMEOUT", "PARTITIONS", "INCARNATION", "SUBTASK", "CHECKPOINT", "ID")


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "txn",
        help="list, commit or abort Kafka transactions",
        description="Kafka transactions of exactly-once sinks. A job that is started again resolves its own; this is for those "
        "of a job that never will be. With --checkpoints it is shown which of them belong to a complete checkpoint: these "
        "have to be committed or their records are lost, and the others have to be aborted.",
    )
    actions = parser.add_subparsers(title="actions", metavar="<action>", required=True)
    listing = actions.add_parser("list", help="transactions that are not decided yet")
    listing.add_argument("--prefix", default="", help="only ids that start with this")
    listing.add_argument("--all", action="store_true", help="decided ones too, and those that are not firesteel's")
    listing.add_argument("--json", action="store_true", help="for programs")
    listing.set_defaults(command=show)
    commit = actions.add_parser("commit", help="make the records of open transactions visible")
    commit.set_defaults(command=lambda given: _end(given, commit=True))
    abort = actions.add_parser("abort", help="throw the records of open transactions away")
    abort.set_defaults(command=lambda given: _end(given, commit=False))
    for each in (commit, abort):
        each.add_argument("ids", nargs="+", metavar="id")
        each.add_argument("--force", action="store_true", help="even against what --checkpoints says")
    for each in (listing, commit, abort):
        each.add_argument("-b", "--bootstrap-servers", required=True, metavar="host:port")
        each.add_argument(
            "-X", dest="properties", action="append", default=[], metavar="key=value", help="of Kafka's clients"
        )
        each.add_argument("--checkpoints", metavar="directory", help="where the jobs' checkpoints are")


def show(given: argparse.Namespace) -> int:
    with TransactionAdmin(_properties(given)) as admin:
        names = [each.transactional_id for each in admin.list_transactions(given.prefix, () if given.all else _OPEN)]
        found = admin.describe(name for name in names if given.all or TransactionalId.parse(name))
    owed = _owed(given.checkpoints)
    transactions = sorted(found.values(), key=lambda info: info.transactional_id)
    if given.json:
        listed = [{**asdict(info), "checkpoint": owed.get(info.transactional_id)} for info in transactions]
        write(json.dumps(listed, indent=1))
    elif not transactions:
        write(f"no {'' if given.all else 'open '}transactions at {given.bootstrap_servers}")
    else:
        write(table(_HEADER, [_row(info, owed) for info in transactions], (1, 2, 3, 4, 5)))
    return 0


def _end(given: argparse.Namespace, *, commit: bool) -> int:
    owed = _owed(given.checkpoints)
    _check(given, owed, commit=commit)
    failed = 0
    with TransactionAdmin(_properties(given)) as admin:
        found = admin.describe(given.ids)
        for name in given.ids:
            info = found.get(name)
            if info is None or info.state != ONGOING:
                complain(f"{name} is not open: {'the brokers do not know it' if info is None else info.state}")
                failed = 1
            elif refused := admin.end([info], commit=commit):
                complain(f"{name} could not be {'committed' if commit else 'aborted'}: {refused[name]}")
                failed = 1
            else:
                write(f"{name} {'committed' if commit else 'aborted'}")
    return failed


def _check(given: argparse.Namespace, owed: dict[str, str], *, commit: bool) -> None:
    """Against the checkpoints, if they are given: what a complete one holds must be committed, and nothing else may be."""
    if given.checkpoints is None or given.force:
        return
    for name in given.ids:
        if commit and name not in owed:
            raise ConfigurationError(
                f"{name} is in no checkpoint of {given.checkpoints}: its records would be written again by the job, so that "
                f"readers would see them twice. Use --force if you know better"
            )
        if not commit and name in owed:
            raise ConfigurationError(f"{name} is in {owed[name]}: its records would be lost. Use --force to lose them")


def _owed(directory: str | None) -> dict[str, str]:
    """The transactions that complete checkpoints hold and whose commit is not confirmed yet, and where."""
    owed: dict[str, str] = {}
    for listed in list_checkpoints(directory) if directory is not None else ():
        if listed.problem is None and not listed.confirmed:
            for items in locate(listed.path).metadata.committables.values():
                for item in items:
                    if isinstance(item, dict) and isinstance(item.get("id"), str):
                        owed[item["id"]] = f"{listed.job_name} checkpoint {listed.checkpoint}"
    return owed


def _properties(given: argparse.Namespace) -> dict[str, str]:
    properties = {"bootstrap.servers": given.bootstrap_servers}
    for text in given.properties:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigurationError(f"-X{text}: write a property as -Xkey=value")
        properties[key.strip()] = value.strip()
    return properties


def _row(info: TransactionInfo, owed: dict[str, str]) -> Sequence[str]:
    name = TransactionalId.parse(info.transactional_id)
    return (
        info.state,
        f"{(time.time() * 1000 - info.started_ms) / 1000:.0f} s" if info.started_ms > 0 else "",
        f"{info.timeout_ms / 1000:.0f} s",
        str(len(info.partitions)),
        str(name.incarnation) if name is not None else "",
        str(name.subtask) if name is not None else "",
        owed.get(info.transactional_id, ""),
        info.transactional_id,
    )

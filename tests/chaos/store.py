"""A toy system with transactions, and the sink that a user might write for it. It remembers everything and complains.

store/open/<id>           records of a transaction that is neither committed nor aborted
     /visible/<id>        committed
     /aborted/<id>        empty; so that a late commit is noticed
     /complaints          what no correct client would have asked for
"""

from __future__ import annotations

import os
from pathlib import Path

from firesteel.connectors.two_phase_commit import TwoPhaseCommitSinkFunction
from firesteel.connectors.write_ahead import GenericWriteAheadSink


class Store:
    def __init__(self, home):
        self.home = Path(home)
        for part in ("open", "visible", "aborted"):
            (self.home / part).mkdir(parents=True, exist_ok=True)

    def append(self, name, lines):
        if (self.home / "visible" / name).exists():
            self.complain(f"{name}: written to after its commit")
        if (self.home / "aborted" / name).exists():  # by the successor of a slot that slept
            raise ConnectionError(f"the transaction {name} was aborted")
        with (self.home / "open" / name).open("a") as file:
            file.write("".join(lines))

    def commit(self, name, *, again):
        try:
            os.rename(self.home / "open" / name, self.home / "visible" / name)
        except FileNotFoundError:
            if again and (self.home / "visible" / name).exists():
                return
            self.complain(f"{name}: commit of a transaction that is not open")
            raise

    def abort(self, name):
        if (self.home / "visible" / name).exists():
            self.complain(f"{name}: abort after its commit")
            return
        (self.home / "aborted" / name).touch()
        (self.home / "open" / name).unlink(missing_ok=True)

    def complain(self, text):
        with (self.home / "complaints").open("a") as file:
            file.write(text + "\n")


class StoreSink(TwoPhaseCommitSinkFunction):
    """Records are buffered, and with the barrier they are in the store, invisible."""

    def __init__(self, home):
        self.home = home

    def open(self, runtime_context):
        self.store = Store(self.home)

    def begin_transaction(self, context):
        return {"id": context.transaction_id}

    def invoke(self, transaction, value, context):
        self.store.append(transaction["id"], [f"{value}\n"])

    def pre_commit(self, transaction):
        self.store.append(transaction["id"], [])

    def commit(self, transaction):
        self.store.commit(transaction["id"], again=False)

    def recover_and_commit(self, transaction):
        self.store.commit(transaction["id"], again=True)

    def abort(self, transaction):
        self.store.abort(transaction["id"])


class IdempotentAheadSink(GenericWriteAheadSink):
    """Sending a checkpoint's values twice leaves the same file twice."""

    def __init__(self, home):
        super().__init__()
        self.home = home

    def send_values(self, values, checkpoint_id, timestamp):
        lines = [f"{value}\n" for value in values]
        visible = Path(self.home) / "visible"
        visible.mkdir(parents=True, exist_ok=True)
        name = f"{checkpoint_id}-{lines[0].strip().replace(',', '-')}"
        (visible / f".{name}").write_text("".join(lines))
        os.replace(visible / f".{name}", visible / name)
        return True

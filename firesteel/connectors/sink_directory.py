"""A directory for files that a sink keeps for itself, next to its job's checkpoints: `<job>/sinks/<sink>/`."""

from __future__ import annotations

import contextlib
import os
import re

from firesteel.common.durable import sync_directory
from firesteel.connectors.base import CommitterContext, WriterContext
from firesteel.connectors.part_names import short_hash
from firesteel.errors import ConfigurationError


def sink_directory(context: WriterContext | CommitterContext) -> str:
    """The sink's directory, made durable when it is new. The driver and all slots find the same one."""
    if not context.directory:
        raise ConfigurationError(f"sink {context.uid!r} keeps files in the directory of its job, and there is none")
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", context.uid).strip("-_")[:40] or "sink"
    path = os.path.join(context.directory, "sinks", f"{slug}-{short_hash(context.uid)}")
    if not os.path.isdir(path):
        os.makedirs(path, exist_ok=True)
        sync_directory(os.path.dirname(path))
        sync_directory(context.directory)
    return path


def remove_file(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)

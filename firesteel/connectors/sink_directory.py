"""A place for files that a sink keeps for itself, next to its job's checkpoints: `<job>/sinks/<sink>/`."""

from __future__ import annotations

import re

from firesteel.common.storage import Storage, open_storage
from firesteel.connectors.base import CommitterContext, WriterContext
from firesteel.connectors.part_names import short_hash
from firesteel.errors import ConfigurationError


def sink_storage(context: WriterContext | CommitterContext) -> Storage:
    """The sink's folder, made durable when it is new. The driver and all slots find the same one."""
    if not context.directory:
        raise ConfigurationError(f"sink {context.uid!r} keeps files in the directory of its job, and there is none")
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", context.uid).strip("-_")[:40] or "sink"
    folder = f"sinks/{slug}-{short_hash(context.uid)}"
    job = open_storage(context.directory)
    job.make_folder(folder)
    return job.below(folder)

"""Where checkpoints, and what sinks note for themselves, are kept: behind one small interface, `Storage`.

A local directory (`local.py`), any file system that pyarrow knows by a URI, used as an object store (`objects.py`), and
this process's memory (`memory.py`). `opening.py` makes the right one of what the user said.
"""

from firesteel.common.storage.base import Storage, reason
from firesteel.common.storage.local import LocalStorage
from firesteel.common.storage.memory import MemoryStorage
from firesteel.common.storage.opening import open_storage

__all__ = ["LocalStorage", "MemoryStorage", "Storage", "open_storage", "reason"]

"""Which storage a path or URI means."""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from firesteel.common.storage.base import Storage
from firesteel.common.storage.local import LocalStorage
from firesteel.errors import ConfigurationError


def open_storage(location: str) -> Storage:
    """The storage whose root is that directory, given as a path or URI. It need not be there yet.

    :raises ConfigurationError: there is no such kind of storage, or what it takes is not installed or not set.
    """
    scheme = urlsplit(location).scheme
    if scheme in ("", "file"):
        return LocalStorage(_local_path(location))
    from firesteel.common.storage.objects import open_objects  # Arrow is a large library, and few slots need it

    return open_objects(location)


def _local_path(location: str) -> str:
    parsed = urlsplit(location)
    if not parsed.scheme:
        return os.path.abspath(location)
    if parsed.netloc not in ("", "localhost"):
        raise ConfigurationError(
            f"{location} names a directory of the machine {parsed.netloc!r}. A path on this one has three slashes: "
            f"file:///{parsed.netloc}{parsed.path}"
        )
    return os.path.abspath(unquote(parsed.path))

"""Local paths: what a user may write for one, and which files it stands for."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from urllib.parse import unquote, urlsplit

from firesteel.errors import ConfigurationError


def local_path(path: str | os.PathLike[str]) -> str:
    """The absolute path that `path` (plain, or a `file:` URI) means on this machine."""
    text = os.fspath(path)
    scheme, separator, _ = text.partition(":/")
    if separator and scheme.isalnum():
        uri = urlsplit(text)
        if scheme != "file" or uri.netloc not in ("", "localhost"):
            raise ConfigurationError(
                f"{text!r} is not a path on a local (or mounted) file system; use a plain path or file:///path"
            )
        text = unquote(uri.path)
    return os.path.abspath(text)


def discover(paths: Iterable[str], *, may_be_missing: bool = False) -> dict[str, int]:
    """The files that `paths` stand for now, sorted within each path, with their sizes.

    A directory stands for all files below it, and a path with wildcards for all it matches, except names that
    start with "." or "_": those are other programs' unfinished or marker files. A path that names nothing is
    a ConfigurationError unless it `may_be_missing`.
    """
    files: dict[str, int] = {}
    for path in paths:
        found = False
        for name in _matches(local_path(path)):
            found = True
            for file in _files_below(name, ()):
                try:
                    files.setdefault(file, os.path.getsize(file))
                except FileNotFoundError as error:
                    if not may_be_missing:
                        raise ConfigurationError(f"{file!r} cannot be read: {error}") from error
        if not found and not may_be_missing:
            raise ConfigurationError(
                f"there is no file or directory {path!r} (looked for {local_path(path)!r}). Check the "
                f"spelling, and that the path is mounted on the driver and on every executor."
            )
    return files


def _matches(path: str) -> list[str]:
    # an existing name is taken literally: brackets are legal in file names
    if os.path.exists(path):
        return [path]
    if not glob.has_magic(path):
        return []
    wanted_hidden = _hidden(os.path.basename(path))
    names = sorted(glob.glob(path, recursive=True))
    return [name for name in names if wanted_hidden or not _hidden(os.path.basename(name))]


def _files_below(path: str, above: tuple[str, ...]) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    directory = os.path.realpath(path)
    if directory in above:
        return  # a symbolic link back up: its files would be found over and over
    for name in sorted(os.listdir(path)):
        if not _hidden(name):
            yield from _files_below(os.path.join(path, name), (*above, directory))


def _hidden(name: str) -> bool:
    return name.startswith((".", "_"))

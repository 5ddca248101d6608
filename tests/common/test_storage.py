"""What every storage promises, and what each of them says when something is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem

from firesteel.common.storage import LocalStorage, MemoryStorage, Storage, open_storage
from firesteel.common.storage.objects import ObjectStorage, shown
from firesteel.errors import ConfigurationError
from tests.support.s3 import S3Server

KINDS = ("local", "folders", "s3", "memory")

Create = Callable[[], Storage]


@pytest.fixture(params=KINDS)
def create(request: pytest.FixtureRequest, tmp_path: Path) -> Create:
    """Opens the same place again and again, as several processes do. `folders` is a file system that is no object store."""
    if request.param == "local":
        return lambda: open_storage(str(tmp_path / "root"))
    if request.param == "folders":
        return lambda: ObjectStorage(LocalFileSystem(), str(tmp_path / "root"), f"test://{tmp_path}/root")
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3")
        bucket = server.bucket()
        return lambda: open_storage(bucket)
    memory = MemoryStorage()
    return lambda: memory.below("root")


@pytest.fixture
def storage(create: Create) -> Storage:
    storage = create()
    storage.check_writable()
    return storage


def test_what_is_written_is_there_at_once_for_everybody(storage: Storage, create: Create) -> None:
    storage.make_folder("a/b")
    storage.write("a/b/file", b"content")
    other = create()
    assert other.read("a/b/file") == b"content"
    assert other.size("a/b/file") == 7
    assert other.exists("a/b/file") and not other.exists("a/b/nothing") and not other.exists("a/b")
    assert (other.names(), other.names("a"), other.names("a/b")) == (["a"], ["b"], ["file"])
    assert (other.folders(), other.folders("a/b")) == (["a"], [])
    assert other.below("a").below("b").read("file") == b"content"


def test_an_empty_file_is_a_file(storage: Storage) -> None:
    storage.write("empty", b"")
    assert storage.exists("empty") and storage.size("empty") == 0 and storage.read("empty") == b""


def test_what_is_not_there_is_a_file_not_found_error_or_nothing(storage: Storage) -> None:
    for action in (storage.read, storage.open, storage.size):
        with pytest.raises(FileNotFoundError):
            action("nothing")
    assert storage.names("nothing") == storage.folders("nothing") == []
    storage.delete("nothing")
    storage.delete_folder("nothing")


def test_a_file_is_created_once_and_replaced_any_number_of_times(storage: Storage) -> None:
    storage.create("file", b"first")
    with pytest.raises(FileExistsError):
        storage.create("file", b"second")
    assert storage.read("file") == b"first"
    for content in (b"third", b"", b"fourth"):
        storage.replace("file", content)
        assert storage.read("file") == content
    assert storage.names() == ["file"]  # and nothing temporary


def test_a_file_is_read_from_any_position(storage: Storage) -> None:
    storage.write("file", bytes(range(256)) * 100_000)
    with storage.open("file") as file:
        assert file.seek(0, os.SEEK_END) == 25_600_000
        file.seek(25_599_999)
        assert file.read(10) == b"\xff"
        file.seek(255)
        assert file.read(3) == b"\xff\x00\x01"
        assert file.tell() == 258


def test_a_file_is_written_piece_by_piece(storage: Storage) -> None:
    file = storage.stream("file")
    file.write(b"one, ")
    file.write(b"two")
    file.close()
    file.close()
    storage.persist("file")
    storage.sync()
    assert storage.read("file") == b"one, two"
    assert storage.names() == ["file"]


def test_deleting_a_folder_deletes_what_is_in_it_and_nothing_beside_it(storage: Storage) -> None:
    for folder in ("a", "a/b", "ab"):
        storage.make_folder(folder)
        storage.write(f"{folder}/file", b"")
    storage.delete("a/b/file")
    assert not storage.exists("a/b/file")
    storage.delete_folder("a")
    assert not storage.exists("a/file") and storage.exists("ab/file")
    storage.delete_folder()
    assert storage.names() == []


def test_names_tell_where_they_are(storage: Storage) -> None:
    below = storage.below("inc-1").below("chk-2")
    assert (below.name, below.above().name) == ("chk-2", "inc-1")
    assert str(below) == storage.at("inc-1/chk-2") or isinstance(storage, MemoryStorage)
    storage.make_folder("inc-1/chk-2")
    storage.write("inc-1/chk-2/_metadata", b"")
    assert below.above().above().exists("inc-1/chk-2/_metadata")
    assert storage.same("inc-1/chk-2", below.above(), "chk-2") and not storage.same("inc-1", below.above(), "chk-2")


@pytest.mark.parametrize("target", KINDS)
def test_files_are_taken_over_from_any_storage_into_any_other(
    storage: Storage, target: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    other: Storage = {
        "local": lambda: LocalStorage(str(tmp_path / "other")),
        "folders": lambda: ObjectStorage(LocalFileSystem(), str(tmp_path / "other"), f"test://{tmp_path}/other"),
        "s3": lambda: open_storage(request.getfixturevalue("s3").bucket()),
        "memory": MemoryStorage,
    }[target]()
    other.check_writable()
    storage.write("file", b"x" * 10_000_000)
    other.take("copy", storage, "file")
    other.sync()
    storage.delete("file")
    assert other.read("copy") == b"x" * 10_000_000


@pytest.mark.parametrize("create", ["local", "s3"], indirect=True)
def test_a_storage_opened_by_its_uri_is_the_same(storage: Storage) -> None:
    storage.write("file", b"content")
    assert open_storage(storage.uri).same("file", storage, "file")
    assert open_storage(storage.below("a").uri).above().read("file") == b"content"


def test_a_local_file_is_the_same_by_whatever_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    real, link = open_storage(f"file://{tmp_path}/real"), open_storage(str(tmp_path / "link"))
    real.write("file", b"")
    assert real.same("file", link, "file") and not real.same("file", link, "other")
    assert str(link.resolved()) == str(real)


def test_files_are_linked_where_they_can_be(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.write("file", b"content")
    storage.take("copy", storage, "file")
    assert (tmp_path / "copy").stat().st_ino == (tmp_path / "file").stat().st_ino


# ---- what is wrong is said at once


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("s4://bucket/path", "Unrecognized filesystem type .*Known are paths, file://, s3://"),
        ("s3:/bucket/path", r"Missing bucket name .*s3://<bucket>/<path>"),
        ("s3://?region=eu-west-1", "names no bucket or directory"),
        ("hdfs://nowhere:1/path", "JAVA_HOME, HADOOP_HOME and CLASSPATH"),
        ("file://checkpoints/here", "file:///checkpoints/here"),
        ("memory:", "Unrecognized filesystem type"),
    ],
)
def test_what_is_no_storage_is_refused_with_what_to_write(
    location: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("JAVA_HOME", "HADOOP_HOME", "CLASSPATH"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ConfigurationError, match=f"(?s){words}"):
        open_storage(location)


def test_secrets_are_not_shown() -> None:
    assert shown("s3://key:secret@bucket/a?region=r&access_key=k") == "s3://bucket/a?region=r"
    assert shown("abfs://container@account.dfs.core.windows.net/a") == "abfs://container@account.dfs.core.windows.net/a"
    assert shown("abfs://:pass@account/a?account_key=k&x=1") == "abfs://account/a?x=1"


def test_a_bucket_that_is_not_there(s3: S3Server) -> None:
    storage = open_storage(s3.uri("nobody-made-this/path"))
    with pytest.raises(OSError, match="NO_SUCH_BUCKET"):
        storage.check_writable()
    with pytest.raises(FileNotFoundError):
        storage.check_readable()


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for below in ("file", "file/below"):
        storage = LocalStorage(str(tmp_path / below))
        with pytest.raises((FileExistsError, NotADirectoryError)):
            storage.check_writable()
        with pytest.raises(NotADirectoryError):
            storage.check_readable()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_directory_without_permission() -> None:
    program = """
import os, sys
from firesteel.common.storage import LocalStorage
os.setgid(65534); os.setuid(65534)
for path in (sys.argv[1], sys.argv[1] + "/below"):
    try:
        LocalStorage(path).check_writable()
    except PermissionError as error:
        print(error.strerror)
"""
    with tempfile.TemporaryDirectory(dir="/tmp") as mine:
        os.chmod(mine, 0o755)
        done = subprocess.run([sys.executable, "-c", program, mine], capture_output=True, text=True, timeout=60)
        assert done.stdout.splitlines() == ["Permission denied"] * 2, done.stderr
        assert os.listdir(mine) == []


@pytest.mark.skipif(not os.path.exists("/proc/self/ns/mnt") or os.getuid() != 0, reason="takes a mount")
def test_a_full_disk(tmp_path: Path) -> None:
    """A real one: a small file system in memory, in a mount namespace of its own."""
    program = f"""
import os, subprocess
from firesteel.common.storage import LocalStorage
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", {str(tmp_path)!r}], check=True)
filler = os.open({str(tmp_path / "filler")!r}, os.O_CREAT | os.O_WRONLY)
try:
    while True:
        os.write(filler, bytes(4096))
except OSError:
    pass
try:
    LocalStorage({str(tmp_path)!r}).check_writable()
except OSError as error:
    print(error.strerror)
print(os.listdir({str(tmp_path)!r}))
"""
    try:
        done = subprocess.run(
            ["unshare", "--mount", sys.executable, "-c", program], capture_output=True, text=True, timeout=60
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if done.returncode != 0:
        pytest.skip(f"no mounts here: {done.stderr[-200:]}")
    assert done.stdout.splitlines() == ["No space left on device", "['filler']"]

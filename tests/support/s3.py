"""A real S3 server on this machine, for pyarrow's real S3 client."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import sys
import time

from pyarrow.fs import FileSystem


class S3Server:
    """moto's, which keeps everything in its memory. Buckets are made by asking for one."""

    def __init__(self, command: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        arguments = [command, "-H", "127.0.0.1", "-p", str(self._port)]
        self._process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._buckets = itertools.count(1)
        give_up = time.monotonic() + 60
        while not self._listens():
            assert self._process.poll() is None and time.monotonic() < give_up, "the S3 server does not start"
            time.sleep(0.05)

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port), 1).close()
        except OSError:
            return False
        return True

    def uri(self, path: str, user: str = "user:password@") -> str:
        return f"s3://{user}{path}?region=us-east-1&scheme=http&endpoint_override=127.0.0.1:{self._port}"

    def bucket(self) -> str:
        """The URI of a directory in a new bucket."""
        name = f"bucket-{next(self._buckets)}"
        system, _ = FileSystem.from_uri(self.uri(name) + "&allow_bucket_creation=true")
        system.create_dir(name)
        return self.uri(f"{name}/some/checkpoints")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()


def s3_command() -> str | None:
    """Of the `dev` extra; None if it is not installed."""
    return shutil.which("moto_server", path=os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]))

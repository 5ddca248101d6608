"""A user's program, run in this process as Python would run it: it is `__main__`, and its exceptions look like its own."""

from __future__ import annotations

import io
import os
import sys
import traceback
from types import ModuleType, TracebackType

import firesteel
from firesteel.cli.output import complain
from firesteel.errors import ConfigurationError, FiresteelError, RestoreError

_PACKAGE = os.path.join(os.path.dirname(os.path.abspath(firesteel.__file__)), "")


def run_program(path: str, arguments: list[str]) -> int:
    """Run a file to its end; the exit code. `SystemExit` passes, as whatever the program meant by it."""
    file = os.path.abspath(path)
    try:
        with io.open_code(file) as opened:
            source = opened.read()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None
    module = ModuleType("__main__")
    vars(module).update(__file__=file, __builtins__=__builtins__, __spec__=None, __cached__=None, __annotations__={})
    sys.modules["__main__"] = module  # for good: threads of the program may outlive its last line
    sys.argv[:] = [path, *arguments]
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, os.path.dirname(file))
    try:
        exec(compile(source, file, "exec", dont_inherit=True), vars(module))
    except (ConfigurationError, RestoreError) as error:
        where = _users(error.__traceback__)
        place = f" ({os.path.relpath(where[-1].filename)}, line {where[-1].lineno})" if where else ""
        complain(f"{error}{place}")
        return 2
    except FiresteelError as error:
        lines = traceback.format_list(_users(error.__traceback__))
        name = f"{type(error).__module__}.{type(error).__qualname__}"
        sys.stderr.write(f"Traceback (most recent call last):\n{''.join(lines)}{name}: {error}\n")
        return 1
    except Exception as error:  # noqa: BLE001  shown as Python would show it
        traceback.print_exception(type(error), error, _without_ours(error.__traceback__))
        return 1
    return 0


def _users(trace: TracebackType | None) -> list[traceback.FrameSummary]:
    """The frames that are the user's business."""
    return [frame for frame in traceback.extract_tb(trace) if not frame.filename.startswith(_PACKAGE)]


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    """Without the frames of this module, in which every traceback starts."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace

"""The code in the guides runs, and prints what they say.

A block of Python is followed by a block without a language if it prints something or fails. Blocks of one document share
their names.
"""

from __future__ import annotations

import re
import sys
import types
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path
from typing import Any

import pytest

from firesteel.errors import FiresteelError
from tests.examples.running import REPOSITORY, LocalClient

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def steps(document: str) -> list[tuple[str, str]]:
    """The blocks of code, each with what it has to print."""
    blocks = [(match[1], match[2]) for match in BLOCK.finditer((REPOSITORY / "docs" / document).read_text())]
    following = [*blocks[1:], ("", "")]
    return [
        (code, output if language == "" else "")
        for (kind, code), (language, output) in zip(blocks, following, strict=True)
        if kind == "python"
    ]


@pytest.mark.parametrize("document", ["state.md", "event-time.md", "for-flink-users.md", "windows.md"])
def test_code_in_the_guide_prints_what_it_says(
    document: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("firesteel.client.launch", LocalClient)
    guide: Any = types.ModuleType("guide")  # a module of its own, as records that hold its classes are pickled by name
    monkeypatch.setitem(sys.modules, "guide", guide)
    ran = steps(document)
    for code, expected in ran:
        try:
            exec(compile(code, document, "exec"), vars(guide))
            printed = capsys.readouterr().out
        except FiresteelError as error:
            printed = f"{type(error).__name__}: {str(error).splitlines()[0]}\n"
        assert OutputChecker().check_output(expected, printed, ELLIPSIS), f"{code}\nprinted:\n{printed}"
    assert ran


@pytest.mark.parametrize("document", sorted(path.name for path in (REPOSITORY / "docs").glob("*.md")))
def test_links_lead_somewhere(document: str) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (REPOSITORY / "docs" / document).read_text()):
        assert (REPOSITORY / "docs" / target).exists() or Path(target).is_absolute(), target

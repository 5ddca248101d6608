"""docs/testing.md shows what there is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import firesteel.testing
from firesteel.testing import FunctionHarness, GraphHarness

REPOSITORY = Path(__file__).resolve().parents[2]
GUIDE = (REPOSITORY / "docs/testing.md").read_text()


def test_the_guide_shows_the_example_and_its_tests_as_they_are() -> None:
    for shown in ("examples/unit_testing.py", "tests/testing/test_unit_testing_example.py"):
        assert f"```python\n{(REPOSITORY / shown).read_text()}```" in GUIDE


def test_every_public_name_and_method_is_in_the_guide_and_every_method_in_it_exists() -> None:
    guides = GUIDE + (REPOSITORY / "docs/reliability.md").read_text()
    for name in firesteel.testing.__all__:
        assert name in guides or name in ("HarnessSnapshot", "Timer")
    for harness in (FunctionHarness, GraphHarness):
        for name, method in vars(harness).items():
            assert name.startswith("_") or name in GUIDE or not callable(method) or name == "close", name
    for name in re.findall(r"\bh\.(\w+)", GUIDE):
        assert any(name in vars(each) or name == "function" for each in (FunctionHarness, GraphHarness)), name


def test_testing_takes_no_spark() -> None:
    code = "import sys, firesteel.testing; sys.exit('pyspark' in sys.modules or 'py4j' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False).returncode == 0

"""What the engine refuses before it does anything."""

from __future__ import annotations

import pytest

from firesteel.engine.spark_engine import refuse_cluster
from firesteel.errors import ConfigurationError


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host:443"])
def test_a_cluster_is_refused_with_what_to_use_instead(master: str) -> None:
    with pytest.raises(ConfigurationError, match=r"one machine only.*local\[N\]"):
        refuse_cluster(master)


def test_local_masters_are_fine() -> None:
    refuse_cluster("local[2]")

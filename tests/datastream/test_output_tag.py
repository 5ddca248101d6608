import pickle
import subprocess
import sys

import pytest

from firesteel.common import Types
from firesteel.datastream.output_tag import OutputTag


def test_tags_are_equal_by_id():
    assert OutputTag("late") == OutputTag("late", Types.INT())
    assert OutputTag("late") != OutputTag("early")
    assert len({OutputTag("late"), OutputTag("late")}) == 1
    assert OutputTag("late") != "late"


def test_types_are_given_as_in_pyflink():
    assert OutputTag("t").type_info == Types.PICKLED_BYTE_ARRAY()
    assert OutputTag("t", [Types.INT()]).type_info == Types.ROW([Types.INT()])
    assert OutputTag("t", Types.STRING()).type_info == Types.STRING()


@pytest.mark.parametrize("tag_id", ["", None, 5])
def test_an_id_is_needed(tag_id):
    with pytest.raises(ValueError, match="non-empty string"):
        OutputTag(tag_id)


def test_a_type_must_be_one():
    with pytest.raises(TypeError, match="OutputTag 't' must be a TypeInformation"):
        OutputTag("t", int)


def test_tags_exist_once_one_was_made_or_unpickled():
    packed = pickle.dumps(OutputTag("late", Types.INT()))
    program = (
        "import pickle; from firesteel.datastream.output_tag import OutputTag; assert not OutputTag.exist(); "
        f"tag = pickle.loads({packed!r}); assert OutputTag.exist(); assert tag.tag_id == 'late', tag"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert OutputTag.exist()

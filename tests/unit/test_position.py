import pytest

from lastword.core.errors import BadInput
from lastword.core.position import Position


def test_a_position_is_written_as_partition_and_next_offset() -> None:
    assert str(Position({2: 9, 0: 18, 1: 5})) == "0:18,1:5,2:9"


def test_what_is_written_is_read_back() -> None:
    assert Position.parse("0:18, 1:5,2:9") == Position({0: 18, 1: 5, 2: 9})


def test_a_write_at_offset_17_of_partition_2_has_the_position_2_18() -> None:
    assert str(Position.after(2, 17)) == "2:18"


def test_a_position_covers_another_when_no_partition_is_behind() -> None:
    assert Position.parse("0:18,1:5").covers(Position.parse("0:18"))
    assert not Position.parse("0:18,1:5").covers(Position.parse("1:6"))
    assert not Position.parse("0:18").covers(Position.parse("1:1"))


@pytest.mark.parametrize(
    "text", ["18", "0:", ":1", "0:-1", "a:1", "0:1.5", "0:1;1:2", "0:1,0:2", "0:" + "9" * 20, "٣:1"]
)
def test_anything_else_is_refused_with_the_right_way_to_write_it(text: str) -> None:
    with pytest.raises(BadInput, match="position"):
        Position.parse(text)


def test_equal_positions_are_one_dictionary_key() -> None:
    assert len({Position({0: 1, 1: 2}), Position({1: 2, 0: 1})}) == 1

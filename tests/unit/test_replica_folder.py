"""A replica's folder after a crash at each of its steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from lastword.core.errors import ReplicaUnusable
from lastword.replica.folder import ReplicaFolder


def made(folder: Path, *names: str) -> None:
    for name in names:
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(name)


def found(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def settled(folder: Path) -> list[str]:
    made(folder, "owner.lock")
    ReplicaFolder(folder).close()
    return found(folder)


def test_a_building_without_complete_is_deleted(tmp_path: Path) -> None:
    made(tmp_path, "building-1/rows")
    assert settled(tmp_path) == ["owner.lock"]


def test_a_complete_building_takes_its_place_and_the_older_store_goes(tmp_path: Path) -> None:
    made(tmp_path, "store-1/rows", "building-2/rows", "building-2/complete")
    assert settled(tmp_path) == ["owner.lock", "store-2/complete", "store-2/rows"]


def test_of_two_stores_the_newer_one_stays_and_numbers_are_compared_as_numbers(tmp_path: Path) -> None:
    made(tmp_path, "store-9/rows", "store-10/rows")
    assert settled(tmp_path) == ["owner.lock", "store-10/rows"]


def test_scratch_files_go(tmp_path: Path) -> None:
    made(tmp_path, "scratch-a/x", "store-1/rows")
    assert settled(tmp_path) == ["owner.lock", "store-1/rows"]


def test_an_adopted_building_is_the_current_store(tmp_path: Path) -> None:
    folder = ReplicaFolder(tmp_path)
    assert folder.current is None
    for number in (1, 2):
        building = folder.new_building()
        made(building, "rows")
        assert folder.adopt(building) == folder.current == tmp_path / f"store-{number}"
    folder.close()
    assert found(tmp_path) == ["owner.lock", "store-2/complete", "store-2/rows"]


def test_a_second_replica_of_the_same_process_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    first = ReplicaFolder(tmp_path)
    with pytest.raises(ReplicaUnusable, match="is open in this process already: close that replica first"):
        ReplicaFolder(tmp_path)
    first.close()
    ReplicaFolder(tmp_path).close()


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    made(tmp_path, "building-7/precious")
    with pytest.raises(ReplicaUnusable, match="is not empty and holds no replica: give an empty folder"):
        ReplicaFolder(tmp_path)
    assert found(tmp_path) == ["building-7/precious"]


def test_a_folder_that_can_not_be_made_is_one_line(tmp_path: Path) -> None:
    made(tmp_path, "file")
    with pytest.raises(ReplicaUnusable, match=r"file/replica: .*: give another folder"):
        ReplicaFolder(tmp_path / "file" / "replica")


def test_a_condemned_store_is_gone_at_the_next_start_and_its_number_is_not_used_again(tmp_path: Path) -> None:
    folder = ReplicaFolder(tmp_path)
    folder.adopt(folder.new_building())
    folder.condemn()
    assert folder.current is None
    assert folder.new_building().name == "building-2"
    folder.close()
    assert settled(tmp_path) == ["owner.lock"]


def test_the_marker_of_a_whole_building_comes_after_everything_else_is_on_the_disk(
    tmp_path: Path,
) -> None:
    synced: list[tuple[str, bool]] = []
    marker = tmp_path / "building-1" / "complete"
    folder = ReplicaFolder(tmp_path, sync=lambda path: synced.append((path.name, marker.exists())))
    building = folder.new_building()
    made(building, "rows")
    folder.adopt(building)
    folder.close()
    assert synced == [
        ("rows", False),
        ("building-1", False),
        ("complete", True),
        ("building-1", True),
        (tmp_path.name, False),
    ]


def test_a_number_is_never_used_twice_because_a_store_that_is_gone_may_still_be_open(tmp_path: Path) -> None:
    folder = ReplicaFolder(tmp_path)
    folder.adopt(folder.new_building())
    folder.set_aside()
    assert (folder.current, folder.was_set_aside, found(tmp_path)) == (None, True, ["damaged-1/complete", "owner.lock"])
    folder.make_room()
    assert folder.new_building().name == "building-2"
    assert folder.new_building().name == "building-3"
    folder.close()


def test_of_damaged_stores_the_last_one_is_kept_and_files_of_others_are_left_alone(tmp_path: Path) -> None:
    made(tmp_path, "owner.lock", "damaged-9/rows", "damaged-10/rows", "damaged-9.tgz", "store-old.bak", "store-3/rows")
    folder = ReplicaFolder(tmp_path)
    kept = ["damaged-10/rows", "damaged-9.tgz", "owner.lock", "store-3/rows", "store-old.bak"]
    assert (found(tmp_path), folder.was_set_aside) == (kept, False)
    folder.set_aside()
    assert found(tmp_path) == ["damaged-3/rows", "damaged-9.tgz", "owner.lock", "store-old.bak"]
    folder.close()

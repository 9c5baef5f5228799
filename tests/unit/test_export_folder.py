"""The folder of an export: the old one or the new one, whatever happens in between."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from lastword.core.errors import AlreadyExists, BadInput, LastwordError
from lastword.spark.query.export_folder import MARKER, export_folder


def export(path: Path, *rows: str, overwrite: bool = False) -> None:
    with export_folder(path, overwrite=overwrite) as place:
        for number, row in enumerate(rows):
            (place.unfinished / f"part-{number}").write_text(row)
        place.finish(b"{}\n")


def content(path: Path) -> dict[str, str]:
    return {child.name: child.read_text() for child in path.iterdir()}


def test_a_finished_export_is_all_that_is_left(tmp_path: Path) -> None:
    export(tmp_path / "deep" / "users", "a", "b")
    assert content(tmp_path / "deep" / "users") == {"part-0": "a", "part-1": "b", MARKER: "{}\n"}
    assert [child.name for child in (tmp_path / "deep").iterdir()] == ["users"]


def test_an_empty_folder_is_taken_and_a_full_one_is_refused(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.mkdir()
    export(users, "a")
    with pytest.raises(AlreadyExists, match="is not empty: give another folder, or replace what is there"):
        export(users, "b")
    assert content(users) == {"part-0": "a", MARKER: "{}\n"}


def test_overwriting_leaves_nothing_of_the_old_export(tmp_path: Path) -> None:
    export(tmp_path / "users", "a", "b", "c")
    export(tmp_path / "users", "new", overwrite=True)
    assert content(tmp_path / "users") == {"part-0": "new", MARKER: "{}\n"}
    assert [child.name for child in tmp_path.iterdir()] == ["users"]


@pytest.mark.parametrize("name", ["photo.jpg", ".bashrc", "users"])
def test_what_no_export_wrote_is_never_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / name).write_text("mine")
    with pytest.raises(BadInput, match=f"holds {name}, which no export wrote"):
        export(tmp_path / "home", "a", overwrite=True)
    assert content(tmp_path / "home") == {name: "mine"}


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("mine")
    with pytest.raises(BadInput, match="is a file"):
        export(tmp_path / "users", "a", overwrite=True)


def test_an_export_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    def broken_export() -> None:
        with export_folder(tmp_path / "users", overwrite=True) as place:
            (place.unfinished / "part-0").write_text("half")
            raise ZeroDivisionError

    export(tmp_path / "users", "old")
    with pytest.raises(ZeroDivisionError):
        broken_export()
    assert content(tmp_path / "users") == {"part-0": "old", MARKER: "{}\n"}
    assert [child.name for child in tmp_path.iterdir()] == ["users"]


def test_what_a_killed_export_left_is_cleaned_up_by_the_next(tmp_path: Path) -> None:
    (tmp_path / ".users.exporting-1").mkdir()
    (tmp_path / ".users.exporting-1" / "part-0").write_text("half")
    (tmp_path / ".users2.exporting-1").mkdir()
    export(tmp_path / "users", "a")
    assert sorted(child.name for child in tmp_path.iterdir()) == [".users2.exporting-1", "users"]


def test_an_export_that_was_killed_between_its_renames_gives_the_old_one_back(tmp_path: Path) -> None:
    export(tmp_path / "users", "old")
    (tmp_path / "users").rename(tmp_path / ".users.replaced-1")
    with pytest.raises(AlreadyExists):
        export(tmp_path / "users", "new")
    assert content(tmp_path / "users") == {"part-0": "old", MARKER: "{}\n"}
    assert [child.name for child in tmp_path.iterdir()] == ["users"]


def test_an_export_that_was_killed_after_its_renames_is_the_new_one(tmp_path: Path) -> None:
    export(tmp_path / "users", "new")
    (tmp_path / ".users.replaced-1").mkdir()
    export(tmp_path / "users", "newer", overwrite=True)
    assert content(tmp_path / "users") == {"part-0": "newer", MARKER: "{}\n"}
    assert [child.name for child in tmp_path.iterdir()] == ["users"]


def test_an_export_that_still_runs_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / ".users.exporting-1"
    other.mkdir()
    descriptor = os.open(other, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        with pytest.raises(LastwordError, match="another export is writing it"):
            export(tmp_path / "users", "a")
        assert [child.name for child in tmp_path.iterdir()] == [other.name]
    finally:
        os.close(descriptor)
    export(tmp_path / "users", "a")
    assert [child.name for child in tmp_path.iterdir()] == ["users"]

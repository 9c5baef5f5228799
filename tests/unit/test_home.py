"""The home and what is in it are for their owner alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lastword.core.durable import write_durably
from lastword.core.errors import ReplicaUnusable
from lastword.core.home import default_home, private_folder
from lastword.kafka.broker.cluster_files import BrokerSpec, ClusterSpec, save_spec
from lastword.kafka.broker.security import write_client_file
from lastword.kafka.compaction.journal import claimed
from lastword.replica.folder import ReplicaFolder
from lastword.up.control import Upkeep
from lastword.up.desired_state import NOTHING_WANTED, save_desired_state
from lastword.up.http_tokens import http_tokens

BROKER = BrokerSpec(node_id=1, port=20_001, controller_port=20_002)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def make_cluster(home: Path) -> None:
    save_spec(home / "clusters" / "default", ClusterSpec(name="default", cluster_id="id", brokers=(BROKER,)))


def make_replica(home: Path) -> None:
    ReplicaFolder(home / "replicas" / "id" / "users").close()


def make_journal(home: Path) -> None:
    with claimed(home, "id", "users"):
        pass


def make_turn(home: Path) -> None:
    with Upkeep(folder=home / "up").turn():
        pass


MAKERS: dict[str, Callable[[Path], object]] = {
    "clusters/default": make_cluster,
    "replicas/id/users": make_replica,
    "accounts/id": lambda home: write_client_file(home / "accounts" / "id" / "ann.properties", "127.0.0.1:1", {}),
    "journal": make_journal,
    "up turn": make_turn,
    "up wanted": lambda home: save_desired_state(home / "up", NOTHING_WANTED),
    "up tokens": lambda home: http_tokens(home / "up", is_locked=True),
}


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_every_folder_of_a_new_home_is_private_whatever_the_umask(
    tmp_path: Path, maker: Callable[[Path], None]
) -> None:
    home = tmp_path / "home"
    maker(home)
    folders = [home, *(path for path in home.rglob("*") if path.is_dir())]
    assert len(folders) > 1
    assert {mode(folder) for folder in folders} == {0o700}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_what_an_older_version_left_open_is_closed_at_the_next_start(
    tmp_path: Path, maker: Callable[[Path], None]
) -> None:
    home = tmp_path / "home"
    maker(home)
    folders = [path for path in home.rglob("*") if path.is_dir()]
    for folder in folders:
        folder.chmod(0o755)
    maker(home)
    # One that is closed keeps others from everything below.
    for path in [path for path in home.rglob("*") if path.is_file()]:
        assert any(mode(parent) & 0o077 == 0 for parent in path.parents if home in parent.parents), path


def test_a_file_is_private_unless_it_is_shared(tmp_path: Path, umask: int) -> None:
    write_durably(tmp_path / "ours", b"x")
    write_durably(tmp_path / "given away", b"x", shared=True)
    assert (mode(tmp_path / "ours"), mode(tmp_path / "given away")) == (0o600, 0o666 & ~umask)


def test_a_home_in_the_platforms_place_is_closed_and_one_that_was_chosen_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LASTWORD_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setattr("sys.platform", "linux")
    home, chosen = default_home(), tmp_path / "chosen"
    for folder in (home, chosen):
        folder.mkdir(parents=True)
        folder.chmod(0o755)
        private_folder(folder / "clusters" / "default")
    # What is above the home is left, too.
    (tmp_path / "share").chmod(0o755)
    private_folder(home / "clusters" / "default")
    assert (mode(home), mode(chosen), mode(tmp_path / "share")) == (0o700, 0o755, 0o755)
    assert mode(chosen / "clusters") == 0o700


def test_a_folder_that_holds_something_else_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "letter").write_text("mine")
    with pytest.raises(ReplicaUnusable, match="is not empty and holds no replica"):
        ReplicaFolder(tmp_path)
    assert mode(tmp_path) == 0o755


def test_a_file_in_the_place_of_a_folder_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "clusters"
    file.write_text("mine")
    file.chmod(0o644)
    with pytest.raises(FileExistsError):
        private_folder(file)
    assert mode(file) == 0o644

"""The journal without a cluster: who owns an entry, and what a dead owner leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lastword.core.errors import ClusterUnreachable, LastwordError
from lastword.kafka.client.connection import Connection
from lastword.kafka.compaction.journal import JournalEntry, SettingChange, claimed, restore_left_behind

NOWHERE = Connection(bootstrap_servers="127.0.0.1:1")
ENTRY = JournalEntry(
    cluster_id="c",
    topic="users",
    topic_id="t",
    changes={"segment.ms": SettingChange(before=None, during="1000"), "x": SettingChange(before="7", during="0.0")},
)

_OWNER = """
import sys, time
from pathlib import Path
from lastword.kafka.compaction.journal import SettingChange, JournalEntry, claimed
with claimed(Path(sys.argv[1]), "c", "users") as claim:
    changes = {"x": SettingChange(before=None, during="1")}
    claim.write(JournalEntry(cluster_id="c", topic="users", topic_id="t", changes=changes))
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def owner(tmp_path: Path) -> subprocess.Popen[str]:
    """A process that holds the claim on `users` and has written its entry."""
    path = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen(
        [sys.executable, "-c", _OWNER, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=120)


def test_an_entry_is_read_as_it_was_written(tmp_path: Path) -> None:
    with claimed(tmp_path, "c", "users") as claim:
        claim.write(ENTRY)
    with claimed(tmp_path, "c", "users") as claim:
        assert claim.entry() == ENTRY
        claim.forget()
        assert claim.entry() is None


def test_a_topic_with_the_longest_name_has_an_entry_too(tmp_path: Path) -> None:
    with claimed(tmp_path, "c" * 22, "t" * 249) as claim:
        claim.write(ENTRY)
        assert claim.entry() == ENTRY


def test_a_claim_is_refused_while_its_owner_lives_and_free_when_it_was_killed(
    tmp_path: Path, owner: subprocess.Popen[str]
) -> None:
    refusal = f"users is being compacted by process {owner.pid}: wait for it"
    with pytest.raises(LastwordError, match=refusal), claimed(tmp_path, "c", "users"):
        pass
    with claimed(tmp_path, "c", "orders"):
        pass
    end(owner)
    with claimed(tmp_path, "c", "users") as claim:
        assert claim.entry() is not None


def test_what_a_live_owner_has_changed_is_left_to_it_without_a_connection(
    tmp_path: Path, owner: subprocess.Popen[str]
) -> None:
    assert restore_left_behind(NOWHERE, tmp_path, pytest.fail) == []
    end(owner)
    # The owner is dead now: this time the cluster is asked, and there is none.
    with pytest.raises(ClusterUnreachable):
        restore_left_behind(NOWHERE, tmp_path, pytest.fail)


@pytest.mark.parametrize("made", [False, True])
def test_an_empty_or_absent_journal_costs_no_connection(tmp_path: Path, made: bool) -> None:
    if made:
        (tmp_path / "journal").mkdir()
    assert restore_left_behind(NOWHERE, tmp_path, pytest.fail) == []
    assert (tmp_path / "journal").exists() == made


def test_a_half_written_entry_is_no_entry(tmp_path: Path) -> None:
    with claimed(tmp_path, "c", "users") as claim:
        claim.path.with_suffix(".new").write_bytes(b'{"cluster_id": "c", "to')
    assert restore_left_behind(NOWHERE, tmp_path, pytest.fail) == []


def test_a_damaged_entry_is_told_and_kept(tmp_path: Path) -> None:
    with claimed(tmp_path, "c", "users") as claim:
        claim.path.write_bytes(b"not json")
    told: list[str] = []

    assert restore_left_behind(NOWHERE, tmp_path, told.append) == []

    assert len(told) == 1
    assert "lastword topic describe" in told[0]
    assert claim.path.exists()

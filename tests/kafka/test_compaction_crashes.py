"""A compaction killed at every step: the next command finds the topic as it was, with nothing lost.

LASTWORD_SOAK says how many rounds over the steps (1 unless told).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lastword.core.fold import fold
from lastword.core.record import NUDGE_KEY
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import alter_settings, topic_identity
from lastword.kafka.compaction.journal import JournalEntry, SettingChange, claimed, restore_left_behind
from lastword.kafka.compaction.on_demand import STEPS, compact_topic
from support.compacted_logs import committed, has_open_transaction, make_topic, set_on_topic, uncommitted, write
from support.waiting import eventually

pytestmark = [pytest.mark.soak, pytest.mark.open]

ROUNDS = range(int(os.environ.get("LASTWORD_SOAK", "1")))
RECORDS = [("a", "1"), ("b", "1"), ("a", "2"), ("c", "1"), ("c", None), ("a", "3"), ("d", "1"), ("b", "2")]
SETTINGS = {"cleanup.policy": "compact", "segment.ms": "500000"}

_DYING = """
import os, signal, sys
from pathlib import Path
from lastword.kafka.compaction.on_demand import compact_topic
from lastword.kafka.client.connection import Connection

servers, topic, home, last_step = sys.argv[1:]

def die_at(step):
    if step == last_step:
        os.kill(os.getpid(), signal.SIGKILL)

compact_topic(Connection(bootstrap_servers=servers), topic, home=Path(home), at_step=die_at)
"""


def compact_and_die_at(step: str, connection: Connection, topic: str, home: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _DYING, connection.bootstrap_servers, topic, str(home), step],
        check=False,
        timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert ended.returncode == -signal.SIGKILL, f"step {step} was never reached"


def profile_topic(connection: Connection, topic: str) -> None:
    make_topic(connection, topic, partitions=2, segment_ms=500_000)
    write(connection, topic, RECORDS)


def entries(home: Path) -> list[Path]:
    return list((home / "journal").glob("*.json"))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("soak_round", ROUNDS)
def test_whatever_step_it_is_killed_at_the_next_command_finds_everything_as_it_was(
    connection: Connection, topic_name: str, tmp_path: Path, step: str, soak_round: int
) -> None:
    profile_topic(connection, topic_name)
    state = fold(committed(connection, topic_name))

    compact_and_die_at(step, connection, topic_name, tmp_path)
    restore_left_behind(connection, tmp_path, lambda _: None)

    assert set_on_topic(connection, topic_name) == SETTINGS
    assert entries(tmp_path) == []
    # Well before the ten seconds after which the cluster itself would end the transaction.
    eventually(lambda: not has_open_transaction(connection, topic_name), within_s=3)
    assert fold(committed(connection, topic_name)) == state

    after = compact_topic(connection, topic_name, home=tmp_path)
    assert [partition.after.obsolete for partition in after.partitions] == [0, 0]
    assert fold(committed(connection, topic_name)) == state
    assert set_on_topic(connection, topic_name) == SETTINGS
    # Nothing of the killed one is left either, for readers of uncommitted data.
    assert NUDGE_KEY not in {key for key, _ in uncommitted(connection, topic_name)}


def test_a_kill_between_alter_and_restore_does_leave_the_settings_changed(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    # The negative control: without restore_left_behind the test above would fail.
    profile_topic(connection, topic_name)

    compact_and_die_at("abort", connection, topic_name, tmp_path)

    altered = SETTINGS | {"segment.ms": "1000", "min.cleanable.dirty.ratio": "0.0"}
    assert set_on_topic(connection, topic_name) == altered
    assert has_open_transaction(connection, topic_name)
    assert len(entries(tmp_path)) == 1
    restore_left_behind(connection, tmp_path, lambda _: None)


def test_the_next_compaction_itself_puts_back_what_a_killed_one_left(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    profile_topic(connection, topic_name)
    compact_and_die_at("wait", connection, topic_name, tmp_path)

    compaction = compact_topic(connection, topic_name, home=tmp_path)

    assert f"{topic_name}: segment.ms put back from 1000 to 500000" in compaction.notes
    assert set_on_topic(connection, topic_name) == SETTINGS


def test_a_setting_that_someone_changed_since_stays_and_is_told(
    connection: Connection, topic_name: str, tmp_path: Path
) -> None:
    profile_topic(connection, topic_name)
    compact_and_die_at("wait", connection, topic_name, tmp_path)
    alter_settings(connection.admin(), topic_name, {"segment.ms": "77000"})
    told: list[str] = []

    restore_left_behind(connection, tmp_path, told.append)

    assert set_on_topic(connection, topic_name) == {"cleanup.policy": "compact", "segment.ms": "77000"}
    assert told == [
        f"{topic_name}: min.cleanable.dirty.ratio put back from 0.0 to the default",
        f"{topic_name}: someone else changed segment.ms to 77000: that value stays",
        (
            f"{topic_name}: readers of uncommitted data may see records under __lastword_nudge that the interrupted "
            f"compaction left: remove them with  lastword topic compact {topic_name}"
        ),
    ]
    assert entries(tmp_path) == []


@pytest.mark.parametrize(("made_again", "fate"), [(False, "deleted"), (True, "made again")])
def test_a_topic_that_is_gone_or_made_anew_is_left_alone_and_told(
    connection: Connection, topic_name: str, tmp_path: Path, made_again: bool, fate: str
) -> None:
    profile_topic(connection, topic_name)
    compact_and_die_at("nudge", connection, topic_name, tmp_path)
    admin = connection.admin()
    admin.delete_topics([topic_name])[topic_name].result()
    eventually(lambda: topic_name not in connection.reach(admin).topics)
    if made_again:
        make_topic(connection, topic_name, segment_ms=1_000)
    told: list[str] = []

    restore_left_behind(connection, tmp_path, told.append)

    assert told == [
        f"{topic_name} was {fate} since a compaction of it was interrupted: nothing to put back on {topic_name}"
    ]
    assert entries(tmp_path) == []
    if made_again:
        assert set_on_topic(connection, topic_name)["segment.ms"] == "1000"


def test_an_entry_of_another_cluster_waits_for_its_own(connection: Connection, topic_name: str, tmp_path: Path) -> None:
    make_topic(connection, topic_name, segment_ms=1_000)
    topic_id = topic_identity(connection.admin(), topic_name)
    changes = {"segment.ms": SettingChange(before=None, during="1000")}
    with claimed(tmp_path, "another-cluster", topic_name) as claim:
        claim.write(JournalEntry(cluster_id="another-cluster", topic=topic_name, topic_id=topic_id, changes=changes))

    assert restore_left_behind(connection, tmp_path, lambda _: None) == []

    assert len(entries(tmp_path)) == 1
    assert set_on_topic(connection, topic_name)["segment.ms"] == "1000"


def test_restoring_twice_is_restoring_once(connection: Connection, topic_name: str, tmp_path: Path) -> None:
    profile_topic(connection, topic_name)
    compact_and_die_at("wait", connection, topic_name, tmp_path)
    (path,) = entries(tmp_path)
    written = path.read_bytes()
    restore_left_behind(connection, tmp_path, lambda _: None)
    # As if the restoring process had died just before it could remove the entry.
    path.write_bytes(written)
    told: list[str] = []

    restore_left_behind(connection, tmp_path, told.append)

    assert not any("put back" in line for line in told)
    assert set_on_topic(connection, topic_name) == SETTINGS
    assert entries(tmp_path) == []

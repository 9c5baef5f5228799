"""A table whose store is damaged is built again by itself; until then it answers with an error, and never with less."""

from __future__ import annotations

import json
import logging
import os
import random
import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import IncompleteRead
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from msgspec.structs import replace

from lastword.api.table import Table
from lastword.core.errors import ClusterUnreachable, DiskFull, HistoryLost, LastwordError, NotReady, StoreDamaged
from lastword.kafka.client.connection import Connection
from lastword.replica.building.rebuild import build
from lastword.replica.damage_log import MOST_DAMAGES, WITHIN_MS, DamageLog
from lastword.replica.folder import ReplicaFolder
from lastword.replica.replica import Replica
from lastword.replica.settings import ReplicaSteps
from lastword.replica.store.row_layout import FORMAT
from lastword.serve.running import Front, Running, TableToServe, running
from support.cluster_routes import json_answer
from support.damage import damage, flip, largest_table
from support.replicas import killed_at, recreate, replica_of, store_of, store_on_disk
from support.waiting import eventually

SOAK = os.environ.get("LASTWORD_SOAK")
ROUNDS = 10 * int(SOAK) if SOAK else 4
ROWS = 3000


def value_of(number: int) -> dict[str, Any]:
    # Nothing that compresses well, so that the rows fill many blocks.
    return {"number": number, "text": random.Random(number).randbytes(60).hex()}


@pytest.fixture
def filled(users: Table) -> Table:
    users.put_many((f"key-{number:05}", value_of(number)) for number in range(ROWS))
    return users


@contextmanager
def served(connection: Connection, topic: str, folder: Path) -> Iterator[Running]:
    with running(connection, [TableToServe.parse(f"users={topic},short=true")], folder, Front(port=0)) as made:
        made.tables[0].replica.wait_until_ready(120)
        yield made


def flushed(replica: Replica) -> Path:
    """The folder of the store, with all rows in its tables."""
    store = store_of(replica)
    store.flush()
    return store.folder


def is_whole(replica: Replica) -> bool:
    """Whether it is ready and has every row; NotReady and StoreDamaged are no answers."""
    try:
        return replica.state.name == "ready" and len(replica) == ROWS == sum(1 for _ in replica)
    except (NotReady, StoreDamaged):
        return False


def paged(url: str) -> tuple[int, Any]:
    """All rows, page after page, or the first error."""
    rows, cursor = list[Any](), ""
    while True:
        status, answer = json_answer(url, f"/tables/users/rows?limit=700{cursor}")
        if status != 200:
            return status, answer
        rows += answer["rows"]
        if answer["next"] is None:
            return 200, rows
        cursor = f"&cursor={answer['next']}"


def all_at_once(url: str) -> tuple[int, Any]:
    """All rows in one answer, or an error; 503 where the answer was cut off."""
    try:
        return json_answer(url, "/users")
    except IncompleteRead as cut:
        with pytest.raises(ValueError):  # noqa: PT011
            json.loads(cut.partial)
    except ConnectionError:
        pass
    return 503, None


def test_a_flipped_bit_is_an_error_and_never_a_shorter_table_and_the_table_heals(
    connection: Connection, filled: Table, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with served(connection, filled.topic, tmp_path) as made, caplog.at_level(logging.WARNING):
        replica = made.tables[0].replica
        watch = replica.watch()
        table = largest_table(flushed(replica))
        # As a reader of that block would: nothing has been read of it yet.
        flip(table, table.stat().st_size // 2)
        status, answer = paged(made.url)
        assert status == 503, f"{len(answer)} rows"
        assert (status, answer["error"]["code"]) in ((503, "store_damaged"), (503, "not_ready"))
        eventually(lambda: is_whole(replica))
        status, rows = paged(made.url)
        assert (status, [row["value"] for row in rows]) == (200, [value_of(number) for number in range(ROWS)])
        assert json_answer(made.url, "/ready")[0] == 200
        assert replica.damages_found == 1
        assert metric(made.url, 'lastword_store_damages_total{table="users"}') == 1
        # One line, which names the folder.
        (line,) = [record.message for record in caplog.records if "damaged" in record.message]
        assert str(tmp_path) in line
        assert "block checksum mismatch" in line
        # Kept for whoever wants to look.
        assert [place.name for place in (tmp_path / filled.topic).glob("damaged-*")] == ["damaged-1"]
        with pytest.raises(HistoryLost, match=r"store was damaged .*: the table was built again"):
            next(watch)
        replica.wait_for(filled.put("key-00000", {"new": True}))
        assert replica["key-00000"] == {"new": True}


def metric(url: str, name: str) -> float:
    with urlopen(f"{url}/metrics") as answer:  # noqa: S310
        text = answer.read().decode()
    (value,) = re.findall(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(value)


@pytest.mark.parametrize(
    "harm",
    [
        lambda store: flip(largest_table(store), 5000),
        lambda store: largest_table(store).unlink(),
        lambda store: os.truncate(largest_table(store), 5000),
        lambda store: (store / "CURRENT").unlink(),
        lambda store: os.truncate(max(store.glob("MANIFEST-*")), 300),
        lambda store: max(store.glob("MANIFEST-*")).unlink(),
        lambda store: flip(max(store.glob("MANIFEST-*")), 100),
    ],
    ids=[
        "a bit of a table",
        "a table gone",
        "a table cut",
        "CURRENT gone",
        "MANIFEST cut",
        "MANIFEST gone",
        "a bit of MANIFEST",
    ],
)
def test_a_store_that_was_damaged_while_nobody_looked_heals_and_nobody_has_to_delete_it(
    filled: Table, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    with filled.replica(tmp_path) as replica:
        store = flushed(replica)
    harm(store)
    with filled.replica(tmp_path, wait=False) as replica:
        eventually(lambda: is_whole(replica))
        assert replica.damages_found == 1
        assert dict(replica) == {f"key-{number:05}": value_of(number) for number in range(ROWS)}


@pytest.mark.soak
def test_whatever_is_damaged_and_whenever_no_listing_is_ever_shorter(
    connection: Connection, filled: Table, tmp_path: Path
) -> None:
    chance = random.Random(SOAK)
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        with served(connection, filled.topic, folder) as made:
            store = flushed(made.tables[0].replica)
            if chance.random() < 0.5:
                done = damage(store, chance)
                look_until_whole(made, f"while it runs: {done}", chance.choice((paged, all_at_once)))
                continue
        done = damage(store, chance)
        with running(
            connection, [TableToServe.parse(f"users={filled.topic},short=true")], folder, Front(port=0)
        ) as made:
            look_until_whole(made, f"before a start: {done}", chance.choice((paged, all_at_once)))


def look_until_whole(made: Running, done: str, ask: Callable[[str], tuple[int, Any]]) -> None:
    """Asks for all rows, again and again, until they are all there and the table is ready."""
    replica, give_up_at = made.tables[0].replica, time.monotonic() + 60
    while True:
        was_ready = replica.state.name == "ready"
        status, rows = ask(made.url)
        assert status in (200, 503), done
        # While it catches up for the first time it may have read less; once it was ready it must not.
        if status == 200 and was_ready:
            assert len(rows) == ROWS, done
            return
        assert time.monotonic() < give_up_at, f"{done}: {replica.state}"
        time.sleep(0.02)


def test_three_damaged_stores_in_an_hour_are_a_disk_to_be_checked_and_a_new_start_tries_again(
    filled: Table, tmp_path: Path
) -> None:
    with filled.replica(tmp_path) as replica:
        for number in range(1, MOST_DAMAGES):
            table = largest_table(flushed(replica))
            flip(table, table.stat().st_size // 2)
            eventually(lambda: is_whole(replica))
            assert replica.damages_found == number
        table = largest_table(flushed(replica))
        flip(table, table.stat().st_size // 2)
        with pytest.raises(StoreDamaged):
            list(replica)
        eventually(lambda: replica.state.name == "failed")
        assert "damaged 3 times within an hour" in str(replica.state.why)
        assert "check the disk" in str(replica.state.why)
        assert str(tmp_path) not in str(replica.state.public_why)
        with pytest.raises(NotReady):
            len(replica)
    with filled.replica(tmp_path, wait=False) as replica:
        eventually(lambda: is_whole(replica))


def test_a_store_of_an_older_format_is_built_again_without_a_word_of_damage(filled: Table, tmp_path: Path) -> None:
    with filled.replica(tmp_path):
        pass
    with store_on_disk(tmp_path) as (_, store):
        store.declare(replace(store.identity, format=FORMAT - 1))
    with filled.replica(tmp_path) as replica:
        assert is_whole(replica)
        assert replica.damages_found == 0
        assert list(tmp_path.glob("damaged-*")) == []


def test_nothing_is_shown_in_the_place_of_a_damaged_store_before_it_has_all_rows_also_after_a_restart(
    filled: Table, tmp_path: Path
) -> None:
    with filled.replica(tmp_path) as replica:
        store = flushed(replica)
    largest_table(store).unlink()
    nowhere = Connection(bootstrap_servers="127.0.0.1:1", patience_s=1)
    for _ in range(2):
        with Table(nowhere, filled.topic).replica(tmp_path, wait=False) as replica:
            eventually(lambda: replica.state.why is not None)
            assert replica.state.name == "connecting"
            with pytest.raises(NotReady, match="nothing to show"):
                len(replica)
    shown = set[int]()
    with filled.replica(tmp_path, wait=False) as replica:
        give_up_at = time.monotonic() + 60
        while ROWS not in shown and time.monotonic() < give_up_at:
            try:
                shown.add(len(replica))
            except NotReady:
                time.sleep(0.001)
    assert shown == {ROWS}


def test_whoever_watches_hears_that_the_table_is_another_also_when_building_it_fails_first(
    connection: Connection, users: Table, tmp_path: Path
) -> None:
    failures = list[LastwordError]()

    def failing(*args: Any, **options: Any) -> bool:
        if failures:
            raise failures.pop()
        return build(*args, **options)

    users.put("old", 1)
    opened = replica_of(
        connection,
        users.topic,
        tmp_path,
        key="string",
        steps=ReplicaSteps(build=failing, build_from_offsets=1),
        check_every_s=0.5,
    )
    with opened as replica, replica.watch() as watch:
        failures += [DiskFull("no space"), ClusterUnreachable("away")]
        # The replica stands still meanwhile: for a topic that is still empty, no worker would be asked to build.
        with replica._follower.watchers.committing():
            recreate(connection, users.topic, [(0, "new", "2")])
        # What the new topic has at offsets that the old one never had may come before.
        with pytest.raises(HistoryLost, match="was recreated"):
            deque(watch)
        eventually(lambda: failures == [] and replica.state.name == "ready")
        assert dict(replica) == {"new": 2}


def test_damage_is_known_to_this_process_also_when_the_disk_takes_no_note_of_it(tmp_path: Path) -> None:
    damages = DamageLog(tmp_path / "gone")
    damages.note("damage", now_ms=1)
    assert damages.healing == "damage"
    damages.healed()
    assert damages.healing is None


def test_a_store_that_was_set_aside_without_a_note_is_healed_all_the_same(filled: Table, tmp_path: Path) -> None:
    with filled.replica(tmp_path):
        pass
    held = ReplicaFolder(tmp_path)
    held.set_aside()
    held.close()
    states = set[str]()
    with filled.replica(tmp_path, wait=False) as replica:
        while (name := replica.state.name) != "ready":
            states.add(name)
            with suppress(NotReady):
                assert len(replica) == ROWS
        assert is_whole(replica)
    assert states <= {"connecting", "rebuilding"}


@pytest.mark.open
@pytest.mark.parametrize(
    "step", ["DamageLog.note", "ReplicaFolder.set_aside", "OwnedStore.build", "ReplicaFolder.adopt", "DamageLog.healed"]
)
def test_killed_at_any_step_of_healing_it_heals_at_the_next_start(
    connection: Connection, filled: Table, tmp_path: Path, step: str
) -> None:
    with filled.replica(tmp_path) as replica:
        store = flushed(replica)
    largest_table(store).unlink()
    killed_at(step, connection, filled.topic, tmp_path)
    with filled.replica(tmp_path) as replica:
        assert is_whole(replica)
    # Only the one that is shown, and one to look at.
    assert len(list(tmp_path.glob("store-*"))) == len(list(tmp_path.glob("damaged-*"))) == 1


def test_the_damages_of_an_hour_are_counted_over_restarts_and_forgotten_after_it(tmp_path: Path) -> None:
    damages = DamageLog(tmp_path)
    assert (damages.healing, damages.pause_ms(now_ms=0)) == (None, 0)
    for number in range(MOST_DAMAGES):
        assert DamageLog(tmp_path).pause_ms(now_ms=number) == 0
        damages.note(f"damage {number}", now_ms=number)
    again = DamageLog(tmp_path)
    assert (again.healing, again.pause_ms(now_ms=1000)) == ("damage 2", WITHIN_MS - 1000)
    again.healed()
    assert DamageLog(tmp_path).healing is None
    assert DamageLog(tmp_path).pause_ms(now_ms=WITHIN_MS) == 0
    # A clock that was set back does not make it wait for longer than an hour.
    assert DamageLog(tmp_path).pause_ms(now_ms=-(10**12)) == WITHIN_MS
    (tmp_path / "damages.json").write_text("{")
    assert DamageLog(tmp_path).healing == "damages.json was damaged"

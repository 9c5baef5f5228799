"""A store whose files are damaged gives the right answer, an older right one, or an error: never a shorter one."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import cast

import pytest
from rocksdict import Rdict

from lastword.core.errors import StoreDamaged
from lastword.core.fold import fold
from lastword.core.record import Record
from lastword.replica.reads import RowListing
from lastword.replica.store.database import store_options
from lastword.replica.store.identity import Identity
from lastword.replica.store.row_layout import PARTITION, PartitionState, unpack_partition_state
from lastword.replica.store.store import Store
from support.damage import damage, flip, largest_table

SOAK = os.environ.get("LASTWORD_SOAK")
DAMAGES = 100 * int(SOAK) if SOAK else 25

PARTITIONS = 2
BATCH = 250
BATCHES = 24
IDENTITY = Identity(
    topic="t", topic_id="i", cluster_id="c", key_codec="string", value_codec="json", delete_retention_ms=1
)


@cache
def log_of_the_store() -> list[list[Record]]:
    """Batches of puts, overwrites and tombstones; the same in every process."""
    chance = random.Random(3)
    ends = dict.fromkeys(range(PARTITIONS), 0)
    batches = []
    for _ in range(BATCHES):
        batch = []
        for _ in range(BATCH):
            key = chance.randrange(2000)
            partition = key % PARTITIONS
            value = None if chance.random() < 0.1 else chance.randbytes(chance.randrange(150))
            batch.append(Record(b"key-%04d" % key, value, partition, ends[partition], 0))
            ends[partition] += 1
        batches.append(batch)
    return batches


def write_and_die(folder: Path) -> None:
    """Leaves what a kill -9 leaves: tables, and logs that are not in any table yet."""
    store = Store(folder, readable=lambda _: True)
    store.declare(IDENTITY)
    for number, batch in enumerate(log_of_the_store()):
        store.apply(batch, {record.partition: PartitionState(position=record.offset + 1) for record in batch})
        # One family at a time, as RocksDB does it by itself: then several logs are needed.
        if number % 5 == 3:
            store.rows.flush()
        if number % 11 == 7:
            store.database.partition_states.flush()
    store.database.inventory.keep_now()
    os._exit(0)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a process that was killed."""
    folder = tmp_path_factory.mktemp("stores") / "killed"
    subprocess.run([sys.executable, __file__, str(folder)], check=True, env={**os.environ, "PYTHONPATH": "tests"})
    assert len(list(folder.glob("*.log"))) > 1
    assert list(folder.glob("*.sst"))
    return folder


@pytest.fixture(scope="module")
def closed(killed: Path) -> Path:
    """The same after a start and an orderly end."""
    folder = shutil.copytree(killed, killed.with_name("closed"))
    store = Store(folder, readable=lambda _: True)
    store.flush()
    store.close()
    return folder


def log_before(position: Mapping[int, int]) -> list[Record]:
    return [r for batch in log_of_the_store() for r in batch if r.offset < position.get(r.partition, 0)]


def plainly_read(folder: Path) -> tuple[set[bytes], dict[int, int]]:
    """The keys and the position that RocksDB gives without a word to whoever asks for no status."""
    families = dict.fromkeys(("rows", "others", "kept", "places"), store_options())
    plain = Rdict(str(folder), store_options(), column_families=families)
    try:
        raw = {p: plain.get_column_family("places").get(PARTITION.pack(p)) for p in range(PARTITIONS)}
        position = {p: unpack_partition_state(place).position for p, place in raw.items() if isinstance(place, bytes)}
        return {bytes(key) for key in cast(Iterable[bytes], plain.get_column_family("rows").keys())}, position
    finally:
        plain.close()


def wrong_answers(store: Store) -> list[str]:
    """Where an open store is not the fold of the records before its position: the oracle of this file."""
    records = log_before(store.position)
    expected = fold(records)
    found = []
    if (scanned := len(rows := list(store.scan()))) != len(expected):
        found.append(f"a scan gives {scanned} rows of {len(expected)}")
    elif rows != [expected[key] for key in sorted(expected)]:
        found.append("a scan gives other rows")
    if len(store) != len(expected):
        found.append(f"the count is {len(store)}, not {len(expected)}")
    if store.count_keys() != len(expected):
        found.append("counting gives another number")
    half = sorted(expected)[len(expected) // 2]
    if [record.key for record in store.scan(half)] != [key for key in sorted(expected) if key >= half]:
        found.append("the second half of a scan")
    by_partition = [sorted(k for k, r in expected.items() if r.partition == p) for p in range(PARTITIONS)]
    if [list(store.keys_of(p)) for p in range(PARTITIONS)] != by_partition:
        found.append("the keys of a partition")
    if [key for key in sorted({r.key or b"" for r in records}) if store.get(key) != expected.get(key)]:
        found.append("point reads")
    return found


def outcome(folder: Path) -> str:
    """What becomes of a store: `damaged`, `right`, or what is wrong with it."""
    try:
        store = Store(folder, readable=lambda _: True)
    except StoreDamaged:
        return "damaged"
    try:
        return ", ".join(wrong_answers(store)) or "right"
    except StoreDamaged:
        return "damaged" if store.damage is not None else "damage that the store does not know of"
    finally:
        store.close()


@pytest.mark.soak
@pytest.mark.parametrize("left_behind", ["killed", "closed"])
def test_no_damage_to_a_file_makes_an_answer_wrong(
    left_behind: str, killed: Path, closed: Path, tmp_path: Path
) -> None:
    whole = {"killed": killed, "closed": closed}[left_behind]
    assert outcome(shutil.copytree(whole, tmp_path / "whole")) == "right"
    chance, outcomes = random.Random(f"{left_behind} {SOAK}"), []
    for number in range(DAMAGES):
        # Each in a place of its own: RocksDB locks by the path, and an error may hold a store open for a while.
        folder = shutil.copytree(whole, tmp_path / f"store-{number}")
        done = damage(folder, chance)
        outcomes.append(outcome(folder))
        assert outcomes[-1] in ("right", "damaged"), f"{done}: {outcomes[-1]}"
        shutil.rmtree(folder, ignore_errors=True)
    # Enough of both, or nothing was tried.
    assert outcomes.count("damaged") > DAMAGES / 4
    assert outcomes.count("right") > 0


def test_a_store_that_is_damaged_while_it_is_open_says_so_in_every_way_of_reading(closed: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(closed, tmp_path / "store")
    heard = list[str]()
    store = Store(folder, readable=lambda _: True, on_damage=lambda _, damage: heard.append(damage))
    try:
        before = list(store.scan())
        table = largest_table(folder)
    finally:
        store.close()
    flip(table, table.stat().st_size // 3)
    store = Store(folder, readable=lambda _: True, on_damage=lambda _, damage: heard.append(damage))
    try:
        for read in (
            lambda: list(store.scan()),
            lambda: list(store.scan(before[0].key or b"")),
            lambda: list(store.keys_of(0)) + list(store.keys_of(1)),
            store.count_keys,
            lambda: [store.get(record.key or b"") for record in before],
        ):
            with pytest.raises(StoreDamaged, match="block checksum mismatch"):
                read()
        assert len(heard) == 1
        assert store.damage == heard[0]
        # The folder's name may not be for those who are told.
        assert str(folder) not in heard[0]
    finally:
        store.close()


def test_a_listing_that_ends_early_for_no_known_reason_is_an_error_all_the_same(closed: Path, tmp_path: Path) -> None:
    store = Store(shutil.copytree(closed, tmp_path / "store"), readable=lambda _: True)
    try:
        count = len(store)
        store.database.rocksdb.get_column_family("rows").delete(next(store.scan()).key or b"")
        with pytest.raises(StoreDamaged, match=f"{count - 1} rows were found, and there should be {count}"):
            list(store.scan())
    finally:
        store.close()


def test_rows_that_come_after_a_listing_began_are_not_in_it_and_are_no_damage(closed: Path, tmp_path: Path) -> None:
    store = Store(shutil.copytree(closed, tmp_path / "store"), readable=lambda _: True)
    try:
        before, begun, listing = list(store.scan()), store.scan(), RowListing(store)
        of_one_partition = store.keys_of(0)
        next(begun), next(of_one_partition)
        position, first = store.partitions[0].position, before[0].key or b""
        late = [Record(b"zzz", b"late", 0, position, 0), Record(first, None, before[0].partition, 10**6, 0)]
        store.apply(late, {record.partition: PartitionState(position=record.offset + 1) for record in late})
        assert list(begun) == before[1:]
        assert list(of_one_partition) == [record.key for record in before if record.partition == 0][1:]
        found = list[bytes]()
        while True:
            part = listing.next_slice(lambda row: row.key, most_rows=100, most_bytes=10**6)
            # The same again, until it is taken.
            assert listing.next_slice(lambda row: row.key, most_rows=100, most_bytes=10**6) == part
            found += part.rows
            listing.advance(part)
            if part.is_last:
                break
        assert found == [record.key for record in before]
        assert store.damage is None
    finally:
        store.close()


def test_a_log_that_is_gone_is_missed_by_the_inventory_and_by_nobody_else(killed: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(killed, tmp_path / "store")
    oldest = min(folder.glob("*.log"))
    oldest.unlink()
    with pytest.raises(StoreDamaged, match=f"{oldest.name} is missing"):
        Store(folder, readable=lambda _: True)
    assert is_silently_wrong(folder)


def test_a_manifest_that_lost_its_end_is_missed_by_the_inventory_and_mostly_by_nobody_else(
    killed: Path, tmp_path: Path
) -> None:
    whole, at, wrong = max(killed.glob("MANIFEST-*")).read_bytes(), 0, 0
    while (at := at + 7 + int.from_bytes(whole[at + 4 : at + 6], "little")) < len(whole):
        # Cut where one of its records ends: RocksDB takes what is left for all of it.
        folder = shutil.copytree(killed, tmp_path / f"store-{at}")
        os.truncate(max(folder.glob("MANIFEST-*")), at)
        with pytest.raises(StoreDamaged, match=f"was {len(whole)} bytes long and now has {at}"):
            Store(folder, readable=lambda _: True)
        wrong += is_silently_wrong(folder)
    assert wrong > 0


def is_silently_wrong(folder: Path) -> bool:
    """The negative control: whether RocksDB opens the store without a word, and its rows are not the fold."""
    try:
        rows, position = plainly_read(folder)
    except Exception:
        return False
    return rows != set(fold(log_before(position)))


def test_the_oracle_objects_to_a_listing_that_ends_at_a_bad_block(closed: Path, tmp_path: Path) -> None:
    """The negative control: plain iteration of the same damaged store is short, and says nothing."""
    folder = shutil.copytree(closed, tmp_path / "store")
    table = largest_table(folder)
    flip(table, table.stat().st_size // 3)
    rows, position = plainly_read(folder)
    assert 0 < len(rows) < len(fold(log_before(position)))


if __name__ == "__main__":
    write_and_die(Path(sys.argv[1]))

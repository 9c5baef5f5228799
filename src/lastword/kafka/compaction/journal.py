"""The compaction journal: settings of a topic that a compaction changes for a while, and how they are restored.

Before a setting is changed, an entry under the home gets the value before and the value during the compaction. The
entry belongs to the process that holds the lock beside it. The kernel frees the lock when that process ends, also after
a kill. So an entry with a free lock was left behind, and the next command that reaches the cluster undoes the changes.
Undoing may be interrupted anywhere and done again: it writes the same values, and removes the entry last.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO

import msgspec
from confluent_kafka.admin import AdminClient

from lastword.core.durable import sync, write_durably
from lastword.core.errors import AlterRefused, LastwordError, NotFound
from lastword.core.home import private_folder
from lastword.core.record import NUDGE_KEY
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import alter_settings, settings_now, topic_identity
from lastword.kafka.compaction.nudge import nudger

Report = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class SettingChange:
    """One setting: its value on the topic before (None: not set there) and during the compaction."""

    before: str | None
    during: str


@dataclass(frozen=True, kw_only=True)
class JournalEntry:
    """The settings of one topic of one cluster that a compaction has changed, or was about to change."""

    cluster_id: str
    topic: str
    topic_id: str
    changes: dict[str, SettingChange]


@dataclass(frozen=True, kw_only=True)
class NudgeLeftovers:
    """The partitions of one topic in which records of a nudge may be left, visible to readers of uncommitted data."""

    topic_id: str
    partitions: list[int]


@dataclass(frozen=True, kw_only=True)
class TopicClaim:
    """The right of one live process to change one topic for a while. It ends with the process, however that ends."""

    path: Path

    def write(self, entry: JournalEntry) -> None:
        """Writes the entry so that it survives a crash of the machine: the whole entry is on the disk on return."""
        write_durably(self.path, msgspec.json.encode(entry))

    def entry(self) -> JournalEntry | None:
        """The entry on the disk; None when nothing was left behind."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=JournalEntry)
        except FileNotFoundError:
            return None
        except (msgspec.MsgspecError, UnicodeDecodeError) as damage:
            raise LastwordError(
                f"journal entry {self.path} can't be read ({damage}): a topic may still have settings of an "
                "interrupted command; check it with  lastword topic describe,  then delete the file"
            ) from None

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)
        sync(self.path.parent)

    def write_left(self, topic_id: str, partitions: Iterable[int]) -> None:
        """Notes for the next compaction which partitions may keep records of a nudge; if none do, removes the note."""
        with_leftovers = sorted(partitions)
        if with_leftovers:
            write_durably(
                self._left_path, msgspec.json.encode(NudgeLeftovers(topic_id=topic_id, partitions=with_leftovers))
            )
        else:
            self._left_path.unlink(missing_ok=True)

    def left(self, topic_id: str) -> set[int]:
        """The partitions in which an earlier compaction of the topic with this id may have left records of a nudge."""
        try:
            left = msgspec.json.decode(self._left_path.read_bytes(), type=NudgeLeftovers)
        except (FileNotFoundError, msgspec.MsgspecError, UnicodeDecodeError):
            # A damaged file counts as none: a compaction that has something to remove finds the records all the same.
            return set()
        return set(left.partitions) if left.topic_id == topic_id else set()

    @property
    def _left_path(self) -> Path:
        return self.path.with_suffix(".left")


@contextmanager
def claimed(home: Path, cluster_id: str, topic: str) -> Iterator[TopicClaim]:
    """The claim on a topic; LastwordError while another live process holds it."""
    path = _path(home, cluster_id, topic)
    private_folder(path.parent)
    with _held(path) as claim:
        if isinstance(claim, _Owner):
            raise LastwordError(f"{topic} is being compacted by {claim.name}: wait for it")
        yield claim


def has_entry(home: Path, cluster_id: str, topic: str) -> bool:
    """Whether a topic may have settings of a compaction, of a running or of an interrupted one."""
    return _path(home, cluster_id, topic).exists()


@dataclass(frozen=True, kw_only=True)
class PutBack:
    """What happened to the changed settings, one sentence for each."""

    restored: tuple[str, ...] = ()
    left_alone: tuple[str, ...] = ()
    # Whether the topic does not exist any more.
    topic_is_gone: bool = False


def undo(connection: Connection, admin: AdminClient, entry: JournalEntry) -> PutBack:
    """Undoes the changes of an interrupted compaction; a topic that was deleted, or made again, is left alone."""
    since = f"since a compaction of it was interrupted: nothing to put back on {entry.topic}"
    try:
        if topic_identity(admin, entry.topic) != entry.topic_id:
            return PutBack(left_alone=(f"{entry.topic} was made again {since}",), topic_is_gone=True)
        # First: readers of committed data are held back for as long as the transaction is open.
        nudger(connection, entry.topic)
        return put_back(admin, entry)
    except NotFound:
        return PutBack(left_alone=(f"{entry.topic} was deleted {since}",), topic_is_gone=True)


def put_back(admin: AdminClient, entry: JournalEntry) -> PutBack:
    """Restores the value of each setting, except where someone else has changed it since."""
    present = settings_now(admin, entry.topic)
    back: dict[str, str | None] = {}
    restored, left_alone = [], []
    for name, change in entry.changes.items():
        if name not in present:
            left_alone.append(f"{entry.topic}: this Kafka has no setting {name}: nothing to put back")
            continue
        value = present[name].on_topic
        if value == change.during:
            restored.append(f"{entry.topic}: {name} put back from {value} to {change.before or 'the default'}")
        elif value != change.before:
            left_alone.append(
                f"{entry.topic}: someone else changed {name} to {value or 'the default'}: that value stays"
            )
            continue
        # Written even if the broker already shows the old value: the broker may lag behind.
        back[name] = change.before
    try:
        if back:
            alter_settings(admin, entry.topic, back)
    except AlterRefused:
        if restored:
            raise
    return PutBack(restored=tuple(restored), left_alone=tuple(left_alone))


def restore_left_behind(connection: Connection, home: Path, report: Report) -> list[JournalEntry]:
    """Undoes what interrupted compactions left behind on this cluster; returns the entries that are settled.

    Without such entries this lists one folder and makes no connection. An entry that can't be undone now is reported
    and stays for the next command; it never stops the command that runs.
    """
    settled: list[JournalEntry] = []
    try:
        for path in sorted(_entries(home / "journal")):
            with _held(path) as claim:
                # A live owner restores its own changes, and another command may be restoring them right now.
                if not isinstance(claim, _Owner) and (entry := _settle(connection, claim, report)) is not None:
                    settled.append(entry)
    except OSError as failure:
        report(f"the journal at {failure.filename or home} can't be read: {failure.strerror or failure}")
    return settled


def _path(home: Path, cluster_id: str, topic: str) -> Path:
    # Hashed, because a topic's name can be as long as a file's name may be.
    return home / "journal" / f"{sha256(f'{cluster_id}/{topic}'.encode()).hexdigest()[:32]}.json"


def _entries(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*.json") if path.is_file()] if folder.is_dir() else []


def _settle(connection: Connection, claim: TopicClaim, report: Report) -> JournalEntry | None:
    try:
        entry = claim.entry()
    except LastwordError as damage:
        report(str(damage))
        return None
    if entry is None:
        return None
    admin = connection.admin()
    if str(connection.reach(admin).cluster_id) != entry.cluster_id:
        return None
    try:
        outcome = undo(connection, admin, entry)
    except LastwordError as failure:
        report(
            f"{entry.topic} still has settings of an interrupted compaction: {failure}; the next command tries again"
        )
        return None
    claim.forget()
    for sentence in outcome.restored + outcome.left_alone:
        report(sentence)
    if outcome.topic_is_gone:
        claim.write_left(entry.topic_id, ())
    elif claim.left(entry.topic_id):
        report(
            f"{entry.topic}: readers of uncommitted data may see records under {NUDGE_KEY.decode()} that the "
            f"interrupted compaction left: remove them with  lastword topic compact {entry.topic}"
        )
    return entry


@dataclass(frozen=True, kw_only=True)
class _Owner:
    """The process that holds a claim at this moment."""

    name: str


@contextmanager
def _held(path: Path) -> Iterator[TopicClaim | _Owner]:
    """The claim on an entry, or its owner while the owner lives."""
    # The lock file is never removed: two processes could then hold two files of one name.
    with path.with_suffix(".lock").open("a+", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield _Owner(name=_owner_name(lock))
            return
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield TopicClaim(path=path)


def _owner_name(lock: IO[str]) -> str:
    lock.seek(0)
    pid = lock.read().strip()
    return f"process {pid}" if pid else "another process"

"""Jars (the local broker's, Spark's, a benchmark's): locked by sha256, fetched once, verified before every use.

A jar lock names its jars exactly, so what runs is what was tested. The folder of a lock in the cache has the lock's
digest in its name, so two versions of lastword never share a folder. A folder appears in the cache whole or not at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path

from lastword.core.durable import sync
from lastword.core.errors import BadLine, JarsUnavailable
from lastword.jvm.ivy import fetch_module, jar_filename
from lastword.jvm.java import Java


@dataclass(frozen=True, kw_only=True, order=True)
class Jar:
    group: str
    artifact: str
    version: str
    sha256: str
    size: int  # in bytes

    @property
    def coordinate(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def filename(self) -> str:
        return jar_filename(self.group, self.artifact, self.version)

    @property
    def line(self) -> str:
        """The jar as a line of its lock."""
        return f"{self.coordinate} {self.sha256} {self.size}"

    def fault_of(self, path: Path) -> str | None:
        """Why the file is not this jar; None when every byte is right."""
        try:
            with path.open("rb") as file:
                # The size first: it costs nothing, and a cut file is the usual fault.
                size = os.fstat(file.fileno()).st_size
                if size != self.size:
                    return f"has {size} bytes, the lock says {self.size}"
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return "is missing"
        return None if sha256 == self.sha256 else f"has the sha256 {sha256}, the lock says {self.sha256}"


@dataclass(frozen=True, kw_only=True)
class JarLock:
    """Every jar that something needs, none left to be resolved: `name` is what needs them."""

    name: str
    jars: tuple[Jar, ...]

    @cached_property
    def folder_name(self) -> str:
        entries = "".join(f"{jar.line}\n" for jar in self.jars)
        return f"{self.name}-{hashlib.sha256(entries.encode()).hexdigest()[:12]}"


def parse_lock(name: str, text: str) -> JarLock:
    """The lock written as one `group:artifact:version sha256 size` a line; `#` starts a comment."""
    jars = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            coordinate, sha256, size = line.split()
            group, artifact, version = coordinate.split(":")
            jars.append(Jar(group=group, artifact=artifact, version=version, sha256=sha256, size=int(size)))
        except ValueError:
            reason = f"{line!r} is not `group:artifact:version sha256 size`: make the lock again, its header says how"
            raise BadLine(number, reason) from None
    return JarLock(name=name, jars=tuple(jars))


def committed_lock(package: str, name: str) -> JarLock:
    """The lock NAME.lock in a package of lastword."""
    return parse_lock(name, resources.files(package).joinpath(f"{name}.lock").read_text(encoding="utf-8"))


def broker_jar_lock() -> JarLock:
    """The jars of Apache Kafka's broker and tools, as committed with lastword."""
    return committed_lock("lastword.jvm", "broker")


def spark_jar_lock() -> JarLock:
    """The jars of Spark's Kafka connector and of Delta, as committed with lastword."""
    return committed_lock("lastword.jvm", "spark")


def ensure_jars(lock: JarLock, cache: Path, java: Java, report: Callable[[str], None]) -> tuple[Path, ...]:
    """The paths of the lock's jars, just verified; fetches only jars that are missing or differ from the lock."""
    cache = cache.absolute()
    folder = cache / lock.folder_name
    try:
        # A complete cache needs neither the network nor our turn, so it may even be read-only.
        if _faults(lock, folder):
            with _our_turn(cache, lock, report):
                _mend(lock, folder, java, report)
    except OSError as error:
        raise JarsUnavailable(
            f"the {lock.name}'s jars can't be kept in {cache}: {error.strerror or error}: "
            "make room there or point LASTWORD_JARS at another folder"
        ) from error
    return tuple(folder / jar.filename for jar in lock.jars)


def _faults(lock: JarLock, folder: Path) -> dict[Jar, str]:
    faults = {jar: jar.fault_of(folder / jar.filename) for jar in lock.jars}
    return {jar: fault for jar, fault in faults.items() if fault}


@contextlib.contextmanager
def _our_turn(cache: Path, lock: JarLock, report: Callable[[str], None]) -> Iterator[None]:
    """One process at a time fetches into a cache. The kernel ends our turn when we die, however that happens."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".lock").open("w") as turn:
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"waiting for another process that is fetching the {lock.name}'s jars")
            fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def _mend(lock: JarLock, folder: Path, java: Java, report: Callable[[str], None]) -> None:
    """Fetches the missing jars. Only under the lock: then other unfinished fetches are of dead processes."""
    for leftover in folder.parent.glob(".fetch-*"):
        # The Ivy of that fetch may still be writing; what can't be removed now is removed next time.
        shutil.rmtree(leftover, ignore_errors=True)
    # Checked again: the process that held the lock may have fetched them.
    faults = _faults(lock, folder)
    if not faults:
        return
    for jar, fault in faults.items():
        if (folder / jar.filename).exists():
            report(f"{folder / jar.filename} {fault}: fetching it again")
    fetch = Path(tempfile.mkdtemp(prefix=".fetch-", dir=folder.parent))
    try:
        fetched = _fetch(lock, tuple(faults), fetch, java, report)
        _put_in_place(fetched, folder)
    finally:
        shutil.rmtree(fetch, ignore_errors=True)


def _fetch(lock: JarLock, wanted: tuple[Jar, ...], fetch: Path, java: Java, report: Callable[[str], None]) -> Path:
    """The folder with the wanted jars and nothing else, each verified and synced to the disk."""

    def report_count(count: int) -> None:
        report(f"fetching the {lock.name}'s jars: {count} of {len(wanted)}")

    report_count(0)
    outcome = fetch_module(_ivy_module(lock.name, wanted), fetch, java, on_fetched=report_count)
    if not outcome.succeeded:
        missing = outcome.unresolved or tuple(jar.coordinate for jar in wanted)
        raise JarsUnavailable(
            f"{_some(missing)} could not be fetched: {outcome.reason}. The {lock.name}'s jars belong in "
            f"{fetch.parent / lock.folder_name}: connect to the internet once, or copy that folder from a machine "
            "that has it"
        )
    for jar in wanted:
        if fault := jar.fault_of(fetch / "jars" / jar.filename):
            raise JarsUnavailable(
                f"{jar.coordinate}, fetched just now, {fault}: it was discarded. Try again; if it happens again, "
                "something between this machine and the repository alters it"
            )
        sync(fetch / "jars" / jar.filename)
    sync(fetch / "jars")
    return fetch / "jars"


def _some(coordinates: tuple[str, ...]) -> str:
    """The first three and how many more: forty names would hide the reason behind them."""
    named = ", ".join(coordinates[:3])
    return f"{named} and {len(coordinates) - 3} more jars" if len(coordinates) > 3 else named


def _ivy_module(name: str, jars: Iterable[Jar]) -> str:
    dependencies = "\n".join(
        f'    <dependency org="{jar.group}" name="{jar.artifact}" rev="{jar.version}" transitive="false"/>'
        for jar in jars
    )
    return f"""\
<ivy-module version="2.0">
  <info organisation="lastword" module="{name}"/>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


def _put_in_place(fetched: Path, folder: Path) -> None:
    if folder.exists():
        # The folder may be in use: each jar is replaced in one step, and a process that has the old jar open keeps it.
        for jar in fetched.iterdir():
            jar.replace(folder / jar.name)
        sync(folder)
    else:
        # Rename last: the folder is trusted as soon as it exists.
        fetched.rename(folder)
    sync(folder.parent)

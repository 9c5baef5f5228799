"""The folder of an export on local disk: an old export or a new one, whole, and never a mix.

    users/                        the export; `_lastword.json` in it was written last
    .users.exporting-5f0c.../     the next one in the making, locked by the process that makes it
    .users.replaced-5f0c.../      the old one, between the two renames that put the new one in its place

The next export cleans up after a crash: it deletes an unlocked `exporting`, and moves a `replaced` one back to its
place if that is empty.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

from lastword.core.durable import sync, write_durably
from lastword.core.errors import AlreadyExists, BadInput, LastwordError

MARKER = "_lastword.json"
# How Spark, Delta and lastword name their files.
_OF_AN_EXPORT = re.compile(r"part-.*|_.*|\..*\.crc|deletion_vector_.*")


class ExportFolder:
    """One export on its way to `path`: written to `unfinished`, then put in place by `finish`."""

    def __init__(self, path: Path, unfinished: Path) -> None:
        self.path = path
        self.unfinished = unfinished

    def finish(self, marker: bytes) -> None:
        """Puts the new export in place of the old one, safe on the disk."""
        for written in sorted(self.unfinished.rglob("*")):
            sync(written)
        write_durably(self.unfinished / MARKER, marker, shared=True)
        replaced = self.path.with_name(f".{self.path.name}.replaced-{uuid4().hex}")
        if self.path.exists():
            self.path.rename(replaced)
        self.unfinished.rename(self.path)
        sync(self.path.parent)
        shutil.rmtree(replaced, ignore_errors=True)


@contextmanager
def export_folder(path: Path, *, overwrite: bool) -> Iterator[ExportFolder]:
    """The folder for a new export; AlreadyExists when something is there, unless it may be overwritten."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            with _locked(path.parent):
                _settle(path)
                refuse_what_is_there(path, names_in(path), overwrite=overwrite)
                unfinished = path.with_name(f".{path.name}.exporting-{uuid4().hex}")
                unfinished.mkdir()
                stack.callback(shutil.rmtree, unfinished, ignore_errors=True)
                stack.enter_context(_locked(unfinished))
            yield ExportFolder(path, unfinished)
    except OSError as refusal:
        raise LastwordError(
            f"{path}: {refusal.strerror or refusal}: check the disk, the folder and its rights"
        ) from None


def names_in(path: Path) -> list[str]:
    """The names in the folder; empty without a folder, BadInput if the path is a file."""
    if path.exists() and not path.is_dir():
        raise BadInput(f"{path} is a file: an export is a folder, give another name")
    return sorted(child.name for child in path.iterdir()) if path.exists() else []


def refuse_what_is_there(path: Path | str, names: Iterable[str], *, overwrite: bool) -> None:
    """Refuses a folder with files, unless `overwrite` is set and an export wrote all of them."""
    names = list(names)
    if names and not overwrite:
        raise AlreadyExists(f"{path} is not empty: give another folder, or replace what is there with --overwrite")
    foreign = [name for name in names if not _OF_AN_EXPORT.fullmatch(name)]
    if foreign:
        raise BadInput(f"{path} holds {foreign[0]}, which no export wrote: give another folder")


def _settle(path: Path) -> None:
    """Deletes what killed exports to this place left behind, and puts back an export that was moved aside."""
    for left in path.parent.glob(f".{_literal(path.name)}.replaced-*"):
        if names_in(path):
            shutil.rmtree(left)
        else:
            left.rename(path)
    for left in path.parent.glob(f".{_literal(path.name)}.exporting-*"):
        try:
            with _locked(left, wait=False):
                shutil.rmtree(left)
        except BlockingIOError:
            raise LastwordError(
                f"{path}: another export is writing it: wait for its end, or give another folder"
            ) from None


@contextmanager
def _locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Locks the folder: the lock belongs to the open folder, so it ends with the process."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)


def _literal(name: str) -> str:
    """A name as a glob that matches only it."""
    return re.sub(r"([*?[])", r"[\1]", name)

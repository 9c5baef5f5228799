"""Damage to files as by disks and people: flipped bits, cut files, missing files."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

# RocksDB opens a store without these, and nothing is read from them.
_NOT_READ = ("LOCK", "LOG", "IDENTITY", "complete")

Kind = Literal["flip", "cut", "gone"]


class Damage(NamedTuple):
    """What was done to which file, for the message of a failed test."""

    kind: Kind
    file: str
    at: int


def files_of(store: Path) -> list[Path]:
    """The files of a store that are read, in the order of their names."""
    return sorted(file for file in store.iterdir() if file.is_file() and not file.name.startswith(_NOT_READ))


def damage(store: Path, chance: random.Random, kinds: Sequence[Kind] = ("flip", "cut", "gone")) -> Damage:
    """Damages one file of the store; tables, logs and the MANIFEST more often than the rest."""
    files = files_of(store)
    of_rows = [file for file in files if file.suffix in (".sst", ".log") or file.name.startswith("MANIFEST")]
    file, kind = chance.choice(of_rows if chance.random() < 0.8 else files), chance.choice(kinds)
    size = file.stat().st_size
    at = chance.randrange(size) if size else 0
    if kind == "gone" or not size:
        file.unlink()
    elif kind == "cut":
        with file.open("r+b") as opened:
            opened.truncate(at)
    else:
        flip(file, at, 1 << chance.randrange(8))
    return Damage(kind, file.name, at)


def flip(file: Path, at: int, bit: int = 1) -> None:
    """Changes one byte of the file in place: processes that have it open see the change."""
    with file.open("r+b") as opened:
        opened.seek(at)
        (byte,) = opened.read(1)
        opened.seek(at)
        opened.write(bytes([byte ^ bit]))


def largest_table(store: Path) -> Path:
    """The file that holds most of the rows."""
    return max(store.glob("*.sst"), key=lambda file: file.stat().st_size)

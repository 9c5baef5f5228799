"""A position: for each partition the offset of the NEXT record to read. In text `0:18,1:5,2:9`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lastword.core.errors import BadInput


class Position(Mapping[int, int]):
    """An immutable map from partition to next offset; a partition that is not named has not been read."""

    __slots__ = ("_next", "_text")

    def __init__(self, next_offsets: Mapping[int, int] | None = None) -> None:
        self._next = dict(sorted((next_offsets or {}).items()))
        # Formatted once: every HTTP answer carries the position, mostly the same one.
        self._text: str | None = None

    @classmethod
    def parse(cls, text: str) -> Position:
        """The position written as `0:18,1:5`; the empty text is the position before everything."""
        next_offsets: dict[int, int] = {}
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            partition, colon, offset = part.partition(":")
            if not (colon and _is_count(partition) and _is_count(offset)):
                raise BadInput(f"position {text!r}: {part!r} is not PARTITION:NEXT_OFFSET: write it like 0:18,1:5")
            if int(partition) in next_offsets:
                raise BadInput(f"position {text!r}: partition {partition} appears twice: keep one of them")
            next_offsets[int(partition)] = int(offset)
        return cls(next_offsets)

    @classmethod
    def after(cls, partition: int, offset: int) -> Position:
        """The position just past one record: a write at offset 17 of partition 2 has the position `2:18`."""
        return cls({partition: offset + 1})

    def covers(self, other: Position) -> bool:
        """Whether everything before `other` is also before this position."""
        return all(self.get(partition, 0) >= offset for partition, offset in other.items())

    def __getitem__(self, partition: int) -> int:
        return self._next[partition]

    def __iter__(self) -> Iterator[int]:
        return iter(self._next)

    def __len__(self) -> int:
        return len(self._next)

    def __str__(self) -> str:
        if self._text is None:
            self._text = ",".join(f"{partition}:{offset}" for partition, offset in self._next.items())
        return self._text

    def __repr__(self) -> str:
        return f"Position({str(self)!r})"

    def __hash__(self) -> int:
        return hash(tuple(self._next.items()))


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 19

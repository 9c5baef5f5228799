"""Keys, values, times and sizes as a person reads them."""

from __future__ import annotations

from datetime import UTC, datetime

from lastword.core.codecs import Codec
from lastword.core.errors import DecodeError


def readable(raw: bytes | None, codec: Codec) -> str:
    """A key or value as a person reads it; for bytes that the codec can't read, the reason in angle brackets."""
    if raw is None:
        return "<tombstone>"
    try:
        text = codec.decode(raw) if codec.name == "string" else codec.to_json(raw).decode()
    except DecodeError as damage:
        return f"<{damage}>"
    return printable(text)


def printable(text: str) -> str:
    """The text on one line, with control and invisible characters as escapes."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def when(timestamp_ms: int) -> str:
    """A record's time in UTC, or `-` for a record without one."""
    if timestamp_ms < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{timestamp_ms % 1000:03d}"


def size(count: int | None) -> str:
    """Bytes in a unit that reads well; `?` for an unknown size."""
    if count is None:
        return "?"
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def counted(number: int, thing: str) -> str:
    """`1 row`, `3 rows`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"

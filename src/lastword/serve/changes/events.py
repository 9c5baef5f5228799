"""Changes as server-sent events: each is one `id`, one `event` and one `data` line, and an empty line ends it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from lastword.core.codecs import Codec
from lastword.core.errors import BadInput
from lastword.core.position import Position
from lastword.core.row_json import row_json
from lastword.core.shapes.rows import SentReset
from lastword.replica.watching import Change
from lastword.serve.http.answers import Headers, Refused

HEADERS: Headers = [
    ("content-type", "text/event-stream"),
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
    # So that a proxy passes on each event as it comes.
    ("x-accel-buffering", "no"),
]
# A client that lost its stream reconnects after a second.
RETRY = b"retry: 1000\n\n"

_text = msgspec.json.Encoder()


def event_maker(key_codec: Codec, value_codec: Codec) -> Callable[[Change, str], bytes]:
    """Makes events of the changes of a table with these codecs."""
    return lambda change, position: change_event(change, position, key_codec, value_codec)


def change_event(change: Change, position: str, key_codec: Codec, value_codec: Codec) -> bytes:
    """The event of a change; `position` is that of the whole table after it."""
    row = row_json(change.shown, key_codec, value_codec, placed=True)
    if b"\n" in row or b"\r" in row:
        # A line break in JSON is space between tokens: inside a string it would be escaped.
        row = row.replace(b"\n", b" ").replace(b"\r", b" ")
    if change.swept:
        row = row[:-1] + b',"swept":true}'
    kind = b"delete" if change.shown.is_tombstone else b"put"
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (position.encode(), kind, row)


def reset_event(position: str) -> bytes:
    """Asks the client to read the rows again: the events so far no longer lead to them."""
    reset = SentReset("the table was built again: drop its rows, read them again, then continue with the next events")
    return b"id: %b\nevent: reset\ndata: %b\n\n" % (position.encode(), _text.encode(reset))


def cut_event(refused: Refused) -> bytes:
    """The last event of a stream that the server ends, in the shape of all errors."""
    return b"event: cut\ndata: %b\n\n" % refused.answer().body


def at_event(position: str) -> bytes:
    """An id without data: the position to resume from. Clients do not report it as an event."""
    return b"id: %b\n\n" % position.encode()


def heartbeat(position: str) -> bytes:
    return b": heartbeat\n" + at_event(position)


def of_table(events: bytes, table: str, positions: Mapping[str, str]) -> bytes:
    """The events of one table in a stream of several: with the name of the table, and the positions of all tables."""
    named_events = []
    for event in events.split(b"\n\n")[:-1]:
        first, _, rest = event.partition(b"\n")
        whole = joined({**positions, table: first.removeprefix(b"id: ").decode()})
        named = rest.replace(b"data: {", b'data: {"table":"%b",' % table.encode(), 1)
        named_events.append(b"id: %b\n%b\n\n" % (whole.encode(), named))
    return b"".join(named_events)


def joined(positions: Mapping[str, str]) -> str:
    """The position of several tables: `a=0:18,1:5;b=0:3`."""
    return ";".join(f"{table}={position}" for table, position in positions.items())


def begins(text: str, tables: list[str], *, several: bool) -> dict[str, Position]:
    """The position of each table in the id of an event; Refused if it is no id, or lacks a table."""
    hint = "send the unchanged id of an event of this stream, or begin without an id"
    positions = dict(part.partition("=")[::2] for part in text.split(";")) if several else {tables[0]: text}
    try:
        if positions.keys() != set(tables):
            raise BadInput("the position is not one of these tables")
        return {table: Position.parse(positions[table]) for table in tables}
    except BadInput as refusal:
        raise Refused("bad_position", str(refusal), hint) from None

"""The verbs that read rows: get, scan, count, dump, watch, records."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lastword.cli import options
from lastword.cli.output import ProgressLine, note, print_json, print_table, shown, styled, when
from lastword.cli.rows.stray_keys import not_found, warn_of_split_keys
from lastword.core.codecs import Codec, codec_named
from lastword.core.errors import DecodeError
from lastword.core.position import Position
from lastword.core.record import Headers, Record
from lastword.core.row_json import row_json

if TYPE_CHECKING:
    from lastword.kafka.client.reading import FoldedTable


def parser(verb: str) -> argparse.ArgumentParser:
    made = {
        "get": _get_parser,
        "scan": _scan_parser,
        "count": _count_parser,
        "dump": _dump_parser,
        "watch": _watch_parser,
        "records": _records_parser,
    }[verb]()
    options.add_codecs(made)
    options.add_connection(made)
    return made


def _get_parser() -> argparse.ArgumentParser:
    made = options.verb_parser(
        "get",
        "Prints the newest value of a key, reading only the key's partition; exit code 1 if it is not there.",
        "lastword get user-profiles user-1\nlastword get user-profiles user-1 --json",
        get,
    )
    made.add_argument("topic")
    made.add_argument("key")
    made.add_argument(
        "--all-partitions", action="store_true", help="for topics whose writers used another partitioner than Java's"
    )
    options.add_json(made)
    return made


def get(args: argparse.Namespace) -> int:
    from lastword.kafka.client.reading import fold_topic

    key_codec, value_codec = _codecs(args)
    key = key_codec.parse(args.key)
    connection = options.connection(args)
    progress = ProgressLine("reading")
    folded = fold_topic(connection, args.topic, key=key, all_partitions=args.all_partitions, progress=progress.count)
    record = folded.rows.get(key)
    if record is None:
        raise not_found(args, connection, key, progress)
    progress.clear()
    warn_of_split_keys(args.topic, folded, key_codec)
    if args.json:
        _print_bytes(row_json(record, key_codec, value_codec, placed=True))
    else:
        print(_readable(record, value_codec))
    return 0


def _scan_parser() -> argparse.ArgumentParser:
    made = options.verb_parser(
        "scan",
        "Prints the rows of a table in key order, at the position where the log ended when the scan began.",
        "lastword scan user-profiles\nlastword scan user-profiles --prefix user-1 --limit 5 --json",
        scan,
    )
    made.add_argument("topic")
    made.add_argument("--prefix", default="", help="only keys that start with this text")
    made.add_argument("--limit", type=options.count_argument, help="at most so many rows")
    options.add_json(made)
    return made


def scan(args: argparse.Namespace) -> int:
    key_codec, value_codec = _codecs(args)
    folded = _folded(args)
    prefix = options.utf8(args.prefix)
    matching = sorted(key for key in folded.rows if key.startswith(prefix))
    rows = [folded.rows[key] for key in matching[: args.limit]]
    if args.json:
        for record in rows:
            _print_bytes(row_json(record, key_codec, value_codec, placed=True))
        return 0
    print_table(
        ["KEY", "PARTITION", "OFFSET", "TIME (UTC)", "VALUE"],
        [
            [shown(r.key, key_codec), r.partition, r.offset, when(r.timestamp), shown(r.value, value_codec)]
            for r in rows
        ],
    )
    of = f"{len(matching)} rows that match" if prefix else f"{len(matching)} rows"
    print(styled(f"{len(rows)} of {of}, at position {folded.position}", "dim"))
    return 0


def _count_parser() -> argparse.ArgumentParser:
    made = options.verb_parser("count", "Prints how many keys are live.", "lastword count user-profiles", count)
    made.add_argument("topic")
    options.add_json(made)
    return made


def count(args: argparse.Namespace) -> int:
    folded = _folded(args)
    if args.json:
        print_json({"count": len(folded.rows), "position": str(folded.position)})
    else:
        print(len(folded.rows))
    return 0


def _dump_parser() -> argparse.ArgumentParser:
    made = options.verb_parser(
        "dump",
        "Prints the live rows as JSON lines that `load` reads back.",
        "lastword dump user-profiles > users.jsonl\nlastword load user-profiles-copy users.jsonl",
        dump,
    )
    made.add_argument("topic")
    return made


def dump(args: argparse.Namespace) -> int:
    key_codec, value_codec = _codecs(args)
    folded = _folded(args)
    write = sys.stdout.buffer.write
    page: list[bytes] = []
    for record in folded.rows.values():
        page.append(row_json(record, key_codec, value_codec, placed=False))
        if len(page) == 1000:
            write(b"\n".join(page) + b"\n")
            page.clear()
    if page:
        write(b"\n".join(page) + b"\n")
    sys.stdout.buffer.flush()
    return 0


def _watch_parser() -> argparse.ArgumentParser:
    made = options.verb_parser(
        "watch",
        "Prints puts and deletes as they are committed, until Ctrl-C.",
        "lastword watch user-profiles\nlastword watch user-profiles --from 0:18,1:5,2:9 --json",
        watch,
    )
    made.add_argument("topic")
    made.add_argument(
        "--from",
        dest="start",
        type=options.position,
        metavar="POSITION",
        help="start there, and now in partitions it does not name",
    )
    made.add_argument("--limit", type=options.count_argument, help="end after so many changes")
    options.add_json(made)
    return made


def watch(args: argparse.Namespace) -> int:
    from lastword.kafka.client.reading import follow, log_bounds

    connection = options.connection(args)
    # Said in full, so that the place to go on from is known for every partition.
    reached = {**log_bounds(connection, args.topic)[1], **(args.start or {})}
    try:
        _print_changes(args, follow(connection, args.topic, start=Position(reached)), reached)
    except KeyboardInterrupt:
        note(f"go on from here with  --from {Position(reached)}")
        raise
    return 0


def _print_changes(args: argparse.Namespace, batches: Iterator[list[Record]], reached: dict[int, int]) -> None:
    key_codec, value_codec = _codecs(args)
    left = args.limit
    for batch in batches:
        for record in batch[:left]:
            if args.json:
                _print_bytes(row_json(record, key_codec, value_codec, placed=True))
            else:
                act = styled("delete", "red") if record.is_tombstone else styled("put   ", "green")
                value = "" if record.is_tombstone else shown(record.value, value_codec)
                print(f"{when(record.timestamp)}  {act}  {_key(record, key_codec)}  {value}".rstrip())
            reached[record.partition] = record.offset + 1
        sys.stdout.flush()
        if left is not None:
            left -= len(batch[:left])
            if left == 0:
                return


def _records_parser() -> argparse.ArgumentParser:
    made = options.verb_parser(
        "records",
        "Prints the raw log, partition by partition: committed records, tombstones as such, gaps as gaps.",
        "lastword records user-profiles\nlastword records user-profiles --partition 2 --from 2:18 --json",
        records,
    )
    made.add_argument("topic")
    made.add_argument("--partition", type=options.count_argument, help="only this one")
    made.add_argument(
        "--from",
        dest="start",
        type=options.position,
        metavar="POSITION",
        help="start there, in the partitions it names (default: log start)",
    )
    made.add_argument("--limit", type=options.count_argument, help="at most so many records")
    options.add_json(made)
    return made


def records(args: argparse.Namespace) -> int:
    from lastword.kafka.client.reading import log_bounds, read_log

    key_codec, value_codec = _codecs(args)
    connection = options.connection(args)
    first, last = log_bounds(connection, args.topic)
    seen = 0
    for partition in _chosen(args, first):
        due = (args.start or first).get(partition, first.get(partition, 0))
        for batch in read_log(connection, args.topic, partitions=[partition], start=args.start, stop=last):
            for record in batch:
                if seen == args.limit:
                    return 0
                if args.json:
                    _print_bytes(row_json(record, key_codec, value_codec, placed=True))
                else:
                    _print_gap(partition, due, record.offset)
                    value = shown(record.value, value_codec)
                    value = styled(value, "dim") if record.is_tombstone else value
                    place = f"{partition:>3}  {record.offset:>8}  {when(record.timestamp):<23}"
                    print(f"{place}  {_key(record, key_codec)}  {value}{_shown_headers(record.headers)}")
                due = record.offset + 1
                seen += 1
        if not args.json:
            _print_gap(partition, due, last[partition])
    if not args.json:
        print(styled(f"{seen} records", "dim"))
    return 0


def _chosen(args: argparse.Namespace, known: Position) -> list[int]:
    """The partition that was asked for, or those that the position names, or all."""
    if args.partition is not None:
        return [args.partition]
    return list(args.start if args.start is not None else known)


def _readable(record: Record, codec: Codec) -> str:
    """The value alone on standard output is data, so what the codec can't read is an error and not a placeholder."""
    try:
        codec.decode(record.value or b"")
    except DecodeError as damage:
        hint = "see it with --value-codec string or bytes, or with --json"
        raise DecodeError(f"the value is {damage}: {hint}") from None
    return shown(record.value, codec)


def _codecs(args: argparse.Namespace) -> tuple[Codec, Codec]:
    return codec_named(args.key_codec), codec_named(args.value_codec)


def _folded(args: argparse.Namespace) -> FoldedTable:
    from lastword.kafka.client.reading import fold_topic

    progress = ProgressLine("reading")
    folded = fold_topic(options.connection(args), args.topic, progress=progress.count)
    progress.clear()
    warn_of_split_keys(args.topic, folded, codec_named(args.key_codec))
    if folded.keyless_records:
        note(f"{folded.keyless_records} records have no key and are in no table: see them with  lastword records")
    return folded


def _key(record: Record, codec: Codec) -> str:
    return "<no key>" if record.key is None else shown(record.key, codec)


def _shown_headers(headers: Headers) -> str:
    pairs = ", ".join(
        f"{name}={'null' if value is None else value.decode(errors='replace')}" for name, value in headers
    )
    return styled(f"  [{pairs}]", "dim") if pairs else ""


def _print_gap(partition: int, due: int, found: int) -> None:
    if found > due:
        span = f"{due}" if found == due + 1 else f"{due}-{found - 1}"
        text = f"{partition:>3}  {span:>8}  -- gap: compacted away, aborted, or transaction markers"
        print(styled(text, "dim"))


def _print_bytes(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")

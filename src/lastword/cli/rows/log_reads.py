"""The verbs that read the log of a topic: watch, records."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from lastword.cli import cluster_choice, options
from lastword.cli.output import note, print_line, styled
from lastword.cli.readable import readable, when
from lastword.core.codecs import Codec
from lastword.core.position import Position
from lastword.core.record import Headers, Record
from lastword.core.row_json import row_json


def parser(verb: str) -> argparse.ArgumentParser:
    parser = {"watch": _watch_parser, "records": _records_parser}[verb]()
    options.add_codecs(parser)
    options.add_connection(parser)
    return parser


def _watch_parser() -> argparse.ArgumentParser:
    parser = options.verb_parser(
        "watch",
        "Prints puts and deletes as they are committed, until Ctrl-C.",
        "lastword watch user-profiles\nlastword watch user-profiles --from 0:18,1:5,2:9 --json",
        watch,
    )
    parser.add_argument("topic", help="name of the topic")
    parser.add_argument(
        "--from",
        dest="start",
        type=options.position,
        metavar="POSITION",
        help="start at this position; partitions that it does not name start now",
    )
    parser.add_argument("--limit", type=options.count_argument, help="stop after this many changes")
    options.add_json(parser)
    return parser


def watch(args: argparse.Namespace) -> int:
    from lastword.kafka.client.reading import follow, log_bounds

    connection = cluster_choice.connection(args)
    # With every partition, so that the position to continue from is complete.
    reached = {**log_bounds(connection, args.topic)[1], **(args.start or {})}
    try:
        _print_changes(args, follow(connection, args.topic, start=Position(reached)), reached)
    except KeyboardInterrupt:
        note(f"continue from here with  --from {Position(reached)}")
        raise
    return 0


def _print_changes(args: argparse.Namespace, batches: Iterator[list[Record]], reached: dict[int, int]) -> None:
    key_codec, value_codec = options.codecs(args)
    left = args.limit
    for batch in batches:
        for record in batch[:left]:
            if args.json:
                print_line(row_json(record, key_codec, value_codec, placed=True))
            else:
                change = styled("delete", "red") if record.is_tombstone else styled("put   ", "green")
                value = "" if record.is_tombstone else readable(record.value, value_codec)
                print(f"{when(record.timestamp)}  {change}  {_key(record, key_codec)}  {value}".rstrip())
            reached[record.partition] = record.offset + 1
        sys.stdout.flush()
        if left is not None:
            left -= len(batch[:left])
            if left == 0:
                return


def _records_parser() -> argparse.ArgumentParser:
    parser = options.verb_parser(
        "records",
        "Prints the raw log, partition by partition: committed records, tombstones and gaps.",
        "lastword records user-profiles\nlastword records user-profiles --partition 2 --from 2:18 --json",
        records,
    )
    parser.add_argument("topic", help="name of the topic")
    parser.add_argument("--partition", type=options.count_argument, help="read only this partition")
    parser.add_argument(
        "--from",
        dest="start",
        type=options.position,
        metavar="POSITION",
        help="start at this position, and read only the partitions that it names (default: the start of the log)",
    )
    parser.add_argument("--limit", type=options.count_argument, help="print at most this many records")
    options.add_json(parser)
    return parser


def records(args: argparse.Namespace) -> int:
    from lastword.kafka.client.reading import log_bounds, read_log

    key_codec, value_codec = options.codecs(args)
    connection = cluster_choice.connection(args)
    first, last = log_bounds(connection, args.topic)
    seen = 0
    for partition in _partitions(args, first):
        expected = (args.start or first).get(partition, first.get(partition, 0))
        for batch in read_log(connection, args.topic, partitions=[partition], start=args.start, stop=last):
            for record in batch:
                if seen == args.limit:
                    return 0
                if args.json:
                    print_line(row_json(record, key_codec, value_codec, placed=True))
                else:
                    _print_gap(partition, expected, record.offset)
                    value = readable(record.value, value_codec)
                    value = styled(value, "dim") if record.is_tombstone else value
                    place = f"{partition:>3}  {record.offset:>8}  {when(record.timestamp):<23}"
                    print(f"{place}  {_key(record, key_codec)}  {value}{_readable_headers(record.headers)}")
                expected = record.offset + 1
                seen += 1
        if not args.json:
            _print_gap(partition, expected, last[partition])
    if not args.json:
        print(styled(f"{seen} records", "dim"))
    return 0


def _partitions(args: argparse.Namespace, log_start: Position) -> list[int]:
    """The partition of --partition, or the partitions of --from, or all."""
    if args.partition is not None:
        return [args.partition]
    return list(args.start if args.start is not None else log_start)


def _key(record: Record, codec: Codec) -> str:
    return "<no key>" if record.key is None else readable(record.key, codec)


def _readable_headers(headers: Headers) -> str:
    pairs = ", ".join(
        f"{name}={'null' if value is None else value.decode(errors='replace')}" for name, value in headers
    )
    return styled(f"  [{pairs}]", "dim") if pairs else ""


def _print_gap(partition: int, expected: int, offset: int) -> None:
    if offset > expected:
        span = f"{expected}" if offset == expected + 1 else f"{expected}-{offset - 1}"
        text = f"{partition:>3}  {span:>8}  -- gap: compacted away, aborted, or transaction markers"
        print(styled(text, "dim"))

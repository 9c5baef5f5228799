"""The verbs that read the rows of a table: get, scan, count, dump."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from lastword.cli import cluster_choice, options
from lastword.cli.json_lines import CountLine
from lastword.cli.output import note, print_json, print_line, print_table, styled
from lastword.cli.progress_line import ProgressLine
from lastword.cli.readable import readable, when
from lastword.cli.rows.stray_keys import not_found, warn_of_split_keys
from lastword.core.codecs import Codec, codec_named
from lastword.core.errors import DecodeError
from lastword.core.record import Record
from lastword.core.row_json import row_json

if TYPE_CHECKING:
    from lastword.kafka.client.reading import FoldedTable


def parser(verb: str) -> argparse.ArgumentParser:
    parser = {
        "get": _get_parser,
        "scan": _scan_parser,
        "count": _count_parser,
        "dump": _dump_parser,
    }[verb]()
    options.add_codecs(parser)
    options.add_connection(parser)
    return parser


def _get_parser() -> argparse.ArgumentParser:
    parser = options.verb_parser(
        "get",
        "Prints the newest value of a key, and reads only the key's partition; exit code 1 if the key does not exist.",
        "lastword get user-profiles user-1\nlastword get user-profiles user-1 --json",
        get,
    )
    parser.add_argument("topic", help="name of the topic")
    parser.add_argument("key", help="key of the row")
    parser.add_argument(
        "--all-partitions",
        action="store_true",
        help="search all partitions, for topics whose writers did not use Java's partitioner",
    )
    options.add_json(parser)
    return parser


def get(args: argparse.Namespace) -> int:
    from lastword.kafka.client.reading import fold_topic

    key_codec, value_codec = options.codecs(args)
    key = key_codec.parse(args.key)
    connection = cluster_choice.connection(args)
    progress = ProgressLine("reading")
    folded = fold_topic(connection, args.topic, key=key, all_partitions=args.all_partitions, progress=progress.count)
    record = folded.rows.get(key)
    if record is None:
        raise not_found(args, connection, key, progress)
    progress.clear()
    warn_of_split_keys(args.topic, folded, key_codec)
    if args.json:
        print_line(row_json(record, key_codec, value_codec, placed=True))
    else:
        print(_readable(record, value_codec))
    return 0


def _scan_parser() -> argparse.ArgumentParser:
    parser = options.verb_parser(
        "scan",
        "Prints the rows of a table in key order, as of the end of the log when the scan began.",
        "lastword scan user-profiles\nlastword scan user-profiles --prefix user-1 --limit 5 --json",
        scan,
    )
    parser.add_argument("topic", help="name of the topic")
    parser.add_argument("--prefix", default="", help="print only keys that start with this text")
    parser.add_argument("--limit", type=options.count_argument, help="print at most this many rows")
    options.add_json(parser)
    return parser


def scan(args: argparse.Namespace) -> int:
    key_codec, value_codec = options.codecs(args)
    folded = _folded(args)
    prefix = options.utf8(args.prefix)
    matching = sorted(key for key in folded.rows if key.startswith(prefix))
    rows = [folded.rows[key] for key in matching[: args.limit]]
    if args.json:
        for record in rows:
            print_line(row_json(record, key_codec, value_codec, placed=True))
        return 0
    print_table(
        ["KEY", "PARTITION", "OFFSET", "TIME (UTC)", "VALUE"],
        [
            [readable(r.key, key_codec), r.partition, r.offset, when(r.timestamp), readable(r.value, value_codec)]
            for r in rows
        ],
    )
    of = f"{len(matching)} rows that match" if prefix else f"{len(matching)} rows"
    print(styled(f"{len(rows)} of {of}, at position {folded.position}", "dim"))
    return 0


def _count_parser() -> argparse.ArgumentParser:
    parser = options.verb_parser("count", "Prints the number of live keys.", "lastword count user-profiles", count)
    parser.add_argument("topic", help="name of the topic")
    options.add_json(parser)
    return parser


def count(args: argparse.Namespace) -> int:
    folded = _folded(args)
    if args.json:
        print_json(CountLine(len(folded.rows), str(folded.position)))
    else:
        print(len(folded.rows))
    return 0


def _dump_parser() -> argparse.ArgumentParser:
    parser = options.verb_parser(
        "dump",
        "Prints the live rows as JSON lines that `load` reads back.",
        "lastword dump user-profiles > users.jsonl\nlastword load user-profiles-copy users.jsonl",
        dump,
    )
    parser.add_argument("topic", help="name of the topic")
    return parser


def dump(args: argparse.Namespace) -> int:
    key_codec, value_codec = options.codecs(args)
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


def _readable(record: Record, codec: Codec) -> str:
    """The value as text. Standard output is data, so an unreadable value is an error and not a placeholder."""
    try:
        codec.decode(record.value or b"")
    except DecodeError as damage:
        hint = "show it with --value-codec string or bytes, or with --json"
        raise DecodeError(f"the {codec.name} codec can't read the value ({damage}): {hint}") from None
    return readable(record.value, codec)


def _folded(args: argparse.Namespace) -> FoldedTable:
    from lastword.kafka.client.reading import fold_topic

    progress = ProgressLine("reading")
    folded = fold_topic(cluster_choice.connection(args), args.topic, progress=progress.count)
    progress.clear()
    warn_of_split_keys(args.topic, folded, codec_named(args.key_codec))
    if folded.keyless_records:
        note(f"{folded.keyless_records} records have no key and are not in the table: show them with  lastword records")
    return folded

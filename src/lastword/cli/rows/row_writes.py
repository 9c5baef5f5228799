"""The verbs that write rows: put, delete, load."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO

from lastword.cli import cluster_choice, options
from lastword.cli.json_lines import LoadLine
from lastword.cli.output import print_json
from lastword.cli.progress_line import ProgressLine
from lastword.core.codecs import codec_named
from lastword.core.errors import BadInput
from lastword.core.record import Headers
from lastword.core.row_json import MAX_LINE_BYTES, Write, lines_of, write_of_json_line, write_of_kv_line
from lastword.core.shapes.rows import WriteAnswer


def parser(verb: str) -> argparse.ArgumentParser:
    parser = {"put": _put_parser, "delete": _delete_parser, "load": _load_parser}[verb]()
    options.add_codecs(parser)
    options.add_connection(parser)
    return parser


def _put_parser() -> argparse.ArgumentParser:
    parser = options.verb_parser(
        "put",
        "Writes a row, and prints its partition and offset when all in-sync replicas have it.",
        """lastword put user-profiles user-1 '{"name": "Alice"}'
lastword put settings theme dark --value-codec string --header source=cli""",
        put,
    )
    parser.add_argument("topic", help="name of the topic")
    parser.add_argument("key", help="key of the row")
    parser.add_argument("value", help="the value, as JSON unless --value-codec chooses another codec")
    _add_headers(parser)
    options.add_json(parser)
    return parser


def put(args: argparse.Namespace) -> int:
    value = codec_named(args.value_codec).parse(args.value)
    return _write(args, value)


def _delete_parser() -> argparse.ArgumentParser:
    parser = options.verb_parser(
        "delete",
        "Deletes a row by writing a tombstone, whether or not the key exists.",
        "lastword delete user-profiles user-5",
        delete,
    )
    parser.add_argument("topic", help="name of the topic")
    parser.add_argument("key", help="key of the row")
    _add_headers(parser)
    options.add_json(parser)
    return parser


def delete(args: argparse.Namespace) -> int:
    return _write(args, None)


def _load_parser() -> argparse.ArgumentParser:
    parser = options.verb_parser(
        "load",
        "Writes rows from a file (- for standard input), one row on each line. A JSON line is "
        '{"key": "user-1", "value": {"age": 25}}, with "headers": [["source", "crm"]] if the record has headers. '
        '{"key": "user-1", "tombstone": true} deletes the row; "value": null is the JSON value null, and deletes '
        'nothing. Raw bytes are "key_base64" and "value_base64". In a key:value line the value of --null-marker '
        "deletes the row. Blank lines are skipped. A mistake stops the load and the error names the line; the rows "
        f"before it are written. A line has at most {MAX_LINE_BYTES // 2**20} MiB.",
        """lastword load user-profiles users.jsonl
echo '{"key": "user-5", "tombstone": true}' | lastword load user-profiles -
printf 'user-1:{"age": 25}\\nuser-2:NULL\\n' | lastword load user-profiles - --null-marker NULL
lastword dump user-profiles | lastword load user-profiles-copy -""",
        load,
    )
    parser.add_argument("topic", help="name of the topic")
    parser.add_argument("file", help="file to read, or - for standard input")
    parser.add_argument(
        "--format",
        choices=["auto", "kv", "jsonl"],
        default="auto",
        help="jsonl: JSON lines; kv: key:value lines; auto (default): JSON lines if the first character is {",
    )
    parser.add_argument("--separator", default=":", help="text between key and value in kv lines (default :)")
    parser.add_argument("--null-marker", metavar="TEXT", help="value that deletes the row in kv lines")
    options.add_json(parser)
    return parser


def load(args: argparse.Namespace) -> int:
    from lastword.kafka.client import loading

    if not args.separator:
        raise BadInput("--separator is empty: set it to the text between key and value")
    connection = cluster_choice.connection(args)
    progress = ProgressLine("loading")
    times: list[float] = []
    with _opened(args.file) as file:
        size = os.fstat(file.fileno()).st_size if file.seekable() else 0
        loaded = loading.load(
            connection,
            args.topic,
            _writes(args, lines_of(file), at_start=lambda: times.append(time.monotonic())),
            progress=lambda done: progress.share(done, _share_read(file, size)),
        )
    progress.clear()
    if args.json:
        print_json(LoadLine(loaded, round(time.monotonic() - times[0], 6)))
    else:
        print(f"{loaded} records acknowledged")
    return 0


def _write(args: argparse.Namespace, value: bytes | None) -> int:
    from lastword.kafka.client.writing import Writer

    key_codec = codec_named(args.key_codec)
    key = key_codec.parse(args.key)
    if value is not None:
        key_codec.checked_key(key)
    headers = _headers(args.header)
    with Writer(cluster_choice.connection(args), args.topic) as writer:
        ack = writer.write(key, value, headers)
    if args.json:
        print_json(WriteAnswer(ack.partition, ack.offset, str(ack.position)))
    else:
        print(f"{args.topic}[{ack.partition}] offset {ack.offset}, position {ack.position}")
    return 0


def _add_headers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--header", action="append", default=[], metavar="K=V", help="add a header; may be repeated")


def _headers(arguments: list[str]) -> Headers:
    pairs = []
    for text in arguments:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise BadInput(f"--header {text!r}: write it like source=cli")
        options.utf8(name)
        pairs.append((name, options.utf8(value)))
    return tuple(pairs)


def _opened(name: str) -> AbstractContextManager[BinaryIO]:
    if name == "-" and sys.stdin is None:
        raise BadInput("standard input is closed: name a file instead of -")
    if name == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(name).open("rb", buffering=1024 * 1024)
    except OSError as failure:
        raise BadInput(f"{name}: {failure.strerror}: name a readable file, or - for standard input") from None


def _share_read(file: BinaryIO, size: int) -> float | None:
    """The part of a file that has been read, from 0 to 1; None for a pipe, whose length is unknown."""
    return min(1.0, file.tell() / size) if size else None


def _writes(args: argparse.Namespace, lines: Iterable[bytes], *, at_start: Callable[[], None]) -> Iterator[Write]:
    """The writes of the lines; blank lines are skipped."""
    key_codec, value_codec = options.codecs(args)
    line_format = None if args.format == "auto" else args.format
    at_start()
    for number, line in enumerate(lines, 1):
        text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if text.isspace():
            continue
        if line_format is None:
            line_format = "jsonl" if text.lstrip().startswith(b"{") else "kv"
        if line_format == "jsonl":
            yield write_of_json_line(text, number, key_codec, value_codec)
        else:
            yield write_of_kv_line(
                text.rstrip(b"\r\n"),
                number,
                key_codec,
                value_codec,
                separator=args.separator,
                null_marker=args.null_marker,
            )

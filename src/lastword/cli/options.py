"""Parsers of verbs, and the options that many verbs share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from lastword.core.codecs import Codec, codec_named
from lastword.core.errors import BadInput
from lastword.core.position import Position

if TYPE_CHECKING:
    # The type of add_subparsers(): argparse has no public name for it. If the name moves, only mypy fails.
    Subs = argparse._SubParsersAction

Run = Callable[[argparse.Namespace], int]


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of examples."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32, width=110)


class Parser(argparse.ArgumentParser):
    """Reports a mistake in one line; argparse would print the whole usage first."""

    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{self.prog}: {message}: see  {self.prog} --help")


def verb_parser(verb: str, summary: str, example: str, run: Run | None = None) -> argparse.ArgumentParser:
    parser = Parser(
        prog=f"lastword {verb}",
        description=summary,
        epilog="example:\n" + "\n".join(f"  {line}" for line in example.strip().splitlines()),
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    if run is not None:
        parser.set_defaults(run=run)
    return parser


def sub_parser(
    subs: Subs[argparse.ArgumentParser], name: str, summary: str, example: str, run: Run
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subs.add_parser(
        name,
        help=summary,
        description=summary,
        epilog="example:\n" + "\n".join(f"  {line}" for line in example.strip().splitlines()),
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    return parser


def add_connection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("cluster")
    group.add_argument(
        "--bootstrap-servers", metavar="HOST:PORT", help="address of the cluster (default: the local cluster)"
    )
    group.add_argument(
        "--cluster", metavar="NAME", help="name of a local cluster, used as its administrator (default: default)"
    )
    group.add_argument(
        "--config", metavar="FILE", help="file of client settings, with librdkafka's names (default: $LASTWORD_CONFIG)"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_codecs(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("codecs")
    choices = "string, json, bytes (base64) or int"
    group.add_argument(
        "--key-codec", default="string", metavar="CODEC", help=f"codec of keys: {choices} (default string)"
    )
    group.add_argument(
        "--value-codec", default="json", metavar="CODEC", help=f"codec of values: {choices} (default json)"
    )


def codecs(args: argparse.Namespace) -> tuple[Codec, Codec]:
    """The key codec and the value codec."""
    return codec_named(args.key_codec), codec_named(args.value_codec)


def utf8(text: str) -> bytes:
    """The text as bytes; BadInput for an argument that is not UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadInput(f"{text!r} is not valid UTF-8 text: check the argument") from None


def settings(arguments: list[str], *, like: str = "segment.ms=10s") -> dict[str, str]:
    """The settings of all `--set KEY=VALUE`, by name."""
    pairs: dict[str, str] = {}
    for text in arguments:
        utf8(text)
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"--set {text!r}: write it like {like}")
        pairs[name.strip()] = value.strip()
    return pairs


def position(text: str) -> Position:
    try:
        return Position.parse(text)
    except BadInput as refusal:
        raise argparse.ArgumentTypeError(str(refusal)) from None


def count_argument(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)

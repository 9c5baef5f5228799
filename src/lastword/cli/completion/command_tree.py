"""The command line as plain data: every verb and action with its options and arguments, read from the parsers.

argparse has no public way to read a parser, so this uses its `_actions`, `_SubParsersAction` and `_AppendAction`. If a
new Python moves them, `lastword completion` fails, and the man page can't be made; every other verb still works.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Literal

from lastword.cli import VERBS
from lastword.core.codecs import CODECS

Files = Literal["", "file", "folder"]


@dataclass(frozen=True, kw_only=True)
class Argument:
    """An option, or without option names an argument by its place."""

    names: tuple[str, ...]
    # What the help calls the value; empty for an option without a value.
    value: str
    help: str
    choices: tuple[str, ...] = ()
    # What kind of path the value is, if it is one.
    files: Files = ""
    may_repeat: bool = False


@dataclass(frozen=True, kw_only=True)
class Command:
    """A verb or an action; `words` leads to it, without the name of the program."""

    words: tuple[str, ...]
    summary: str
    # The text of its help above the options.
    description: str
    example: str
    options: tuple[Argument, ...]
    places: tuple[Argument, ...]
    actions: tuple[Command, ...]

    @property
    def name(self) -> str:
        return self.words[-1]

    def with_actions(self) -> Iterator[Command]:
        """The command itself, and all commands below it."""
        yield self
        for action in self.actions:
            yield from action.with_actions()


def verbs() -> tuple[Command, ...]:
    """Every verb. The module of each verb is imported; none of them loads Spark, the client or the server."""
    return tuple(
        _command((verb,), summary, import_module(f"lastword.cli.{module}").parser(verb))
        for verb, (module, summary) in VERBS.items()
    )


def all_commands() -> list[Command]:
    return [command for verb in verbs() for command in verb.with_actions()]


def _command(words: tuple[str, ...], summary: str, parser: argparse.ArgumentParser) -> Command:
    options: list[Argument] = []
    places: list[Argument] = []
    actions: list[Command] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                actions.append(_command((*words, name), inner.description or "", inner))
        else:
            (options if action.option_strings else places).append(_argument(action))
    return Command(
        words=words,
        summary=summary,
        description=parser.description or summary,
        example=parser.epilog or "",
        options=tuple(options),
        places=tuple(places),
        actions=tuple(actions),
    )


def _argument(action: argparse.Action) -> Argument:
    value = "" if action.nargs == 0 else str(action.metavar or action.dest).upper()
    choices = tuple(map(str, action.choices or ()))
    return Argument(
        names=tuple(action.option_strings),
        value=value,
        help=action.help or "",
        choices=tuple(CODECS) if value == "CODEC" else choices,
        files="file" if value == "FILE" else "folder" if value in ("DIR", "PATH") else "",
        may_repeat=isinstance(action, argparse._AppendAction),
    )

"""The reference of the command line as a page, made from the parsers themselves."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module

from lastword.cli import VERBS

_HEAD = """\
# The command line

<!-- Made by scripts/write_docs.py from the parsers of src/lastword/cli. -->

Exit codes: 0 done; 1 the thing asked for is not so (no such key or topic, a check failed); 2 bad usage or input;
3 the cluster or server can't be reached; 130 Ctrl-C, 143 SIGTERM (128 and the signal's number; a second one ends a verb
at once, without putting things in order). Errors are one line on stderr: what, where, what next. Data goes to stdout.

A verb speaks to the local cluster that `--cluster` names, as its administrator, whatever the environment says; else to
the address of `--bootstrap-servers`, `LASTWORD_BOOTSTRAP_SERVERS` or `bootstrap.servers` in the settings file
(`--config`, `LASTWORD_CONFIG`), in this order; else to the local cluster named `default`. An empty address is an error.
Positions are written `0:18,1:5,2:9`: for each partition the next offset.
"""


def command_line_markdown() -> str:
    """Every verb with its actions, arguments and an example."""
    lines = [_HEAD]
    for verb, (module, summary) in VERBS.items():
        parser = import_module(f"lastword.cli.{module}").parser(verb)
        lines += [f"## lastword {verb}\n", f"{_sentence(parser.description or summary)}\n"]
        lines += _arguments(parser)
        lines += [_example(parser)]
        for name, sub in _actions(parser):
            lines += [f"### lastword {verb} {name}\n", f"{_sentence(sub.description or '')}\n"]
            lines += _arguments(sub)
            lines += [_example(sub)]
    return "\n".join(lines)


def _actions(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def _arguments(parser: argparse.ArgumentParser) -> list[str]:
    rows = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction | argparse._HelpAction):
            continue
        name = ", ".join(action.option_strings) or str(action.metavar or action.dest).upper()
        choices = "|".join(map(str, action.choices)) if action.choices else ""
        value = "" if action.nargs == 0 else choices or str(action.metavar or action.dest).upper()
        told = f"{name} {value}" if action.option_strings and value else name
        rows.append(f"| `{told.replace('|', chr(92) + '|')}` | {(action.help or '').replace('|', chr(92) + '|')} |")
    return ["| argument | meaning |", "|---|---|", *rows, ""] if rows else []


def _example(parser: argparse.ArgumentParser) -> str:
    example, _, more = (parser.epilog or "").removeprefix("example:\n").partition("\n\n")
    shown = "```sh\n" + "\n".join(line.strip() for line in example.splitlines()) + "\n```\n"
    return f"{shown}\n{more[:1].upper()}{more[1:]}\n" if more else shown


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", ")")) else ".")

"""The reference of the command line as a page, made from the parsers themselves."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module

from lastword.cli import VERBS

EXIT_CODES = {
    "0": "done",
    "1": "not found, or a check failed",
    "2": "bad usage or input",
    "3": "the cluster or server can't be reached",
    "130, 143": "Ctrl-C or SIGTERM (128 + the signal's number); a second signal ends a verb at once, without a clean "
    "stop",
}
# Markdown, and the description of the man page.
DESCRIPTION = """\
An error is one line on stderr: what happened, where, and what to do next. Data goes to stdout.

A verb works on the local cluster that `--cluster` names, as its administrator, and then ignores the environment.
Without `--cluster` it uses the first of these addresses: `--bootstrap-servers`, `LASTWORD_BOOTSTRAP_SERVERS`,
`bootstrap.servers` in the settings file (`--config` or `LASTWORD_CONFIG`). Without any address it uses the local
cluster named `default`. An empty address is an error.

A position is written `0:18,1:5,2:9`: for each partition the next offset.
"""
_HEAD = """\
# The command line

<!-- Made by scripts/write_docs.py from the parsers of src/lastword/cli. -->

| exit code | meaning |
|---|---|
{codes}

{description}"""


def command_line_markdown() -> str:
    """Every verb with its actions, arguments and an example."""
    codes = "\n".join(f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items())
    lines = [_HEAD.format(codes=codes, description=DESCRIPTION)]
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
    """The actions of a verb by name, each followed by its own actions: `user`, `user add`."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                yield name, sub
                for inner, inner_sub in _actions(sub):
                    yield f"{name} {inner}", inner_sub


def _arguments(parser: argparse.ArgumentParser) -> list[str]:
    rows = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction | argparse._HelpAction):
            continue
        name = ", ".join(action.option_strings) or str(action.metavar or action.dest).upper()
        choices = f"{{{','.join(map(str, action.choices))}}}" if action.choices else ""
        value = "" if action.nargs == 0 else choices or str(action.metavar or action.dest).upper()
        usage = f"{name} {value}" if action.option_strings and value else name
        rows.append(f"| `{usage}` | {action.help or ''} |")
    return ["| argument | meaning |", "|---|---|", *rows, ""] if rows else []


def _example(parser: argparse.ArgumentParser) -> str:
    example, _, more = (parser.epilog or "").removeprefix("example:\n").partition("\n\n")
    commands = "```sh\n" + "\n".join(line.strip() for line in example.splitlines()) + "\n```\n"
    return f"{commands}\n{more[:1].upper()}{more[1:]}\n" if more else commands


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", ")")) else ".")

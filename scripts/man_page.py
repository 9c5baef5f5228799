"""The man page `lastword.1`, made from the same parsers as the completion, and from the table of docs/settings.md."""

from __future__ import annotations

import re
from collections.abc import Iterator

from command_reference import DESCRIPTION, EXIT_CODES

from lastword import __version__
from lastword.cli.completion.command_tree import Argument, Command, verbs

_SUMMARY = "log-compacted Kafka topics as tables that you can write, read, watch, serve and trust"
_VARIABLE = re.compile(r"^\| `([A-Z_]+)` \| (.*) \| (.*) \|$", re.MULTILINE)
_HEAD = rf"""
.\" Made by scripts/write_docs.py from the parsers of src/lastword/cli.
.TH LASTWORD 1 "" "lastword {__version__}" "User Commands"
.SH NAME
lastword \- {_SUMMARY}
.SH SYNOPSIS
.B lastword
.I VERB
[\fIACTION\fR] [\fIOPTIONS\fR] ...
.br
.B lastword
.I VERB
.B \-\-help
.br
.B lastword \-\-version"""


def man_page(settings: str) -> str:
    """The page; `settings` is the text of docs/settings.md, whose first table has the environment."""
    lines = [_HEAD.lstrip("\n"), ".SH DESCRIPTION", *_paragraphs(DESCRIPTION), ".SH VERBS"]
    for verb in verbs():
        lines += [line for command in verb.with_actions() for line in _command(command)]
    lines += [".SH EXIT STATUS", *_terms(EXIT_CODES), ".SH ENVIRONMENT"]
    lines += _terms({name: f"{meaning} (default: {default})" for name, meaning, default in _VARIABLE.findall(settings)})
    return "\n".join(lines) + "\n"


def _command(command: Command) -> Iterator[str]:
    yield f".SS lastword {_text(' '.join(command.words))}"
    description = command.description
    yield _line(description[:1].upper() + description[1:] + ("" if description.endswith((".", ")")) else "."))
    for argument in (*command.places, *command.options):
        if argument.names[:1] != ("-h",):
            yield from (".TP", _usage(argument), _line(argument.help or "see the example"))
    example, _, more = command.example.removeprefix("example:\n").partition("\n\n")
    if example:
        yield from (".P", ".RS 4", ".EX", *(_line(line.strip()) for line in example.splitlines()), ".EE", ".RE")
    if more:
        yield from (".P", _line(" ".join(more.split())))


def _usage(argument: Argument) -> str:
    names = ", ".join(rf"\fB{_text(name)}\fR" for name in argument.names)
    # The help of a codec names its choices.
    choices = () if argument.value == "CODEC" else argument.choices
    text = f"{{{','.join(choices)}}}" if choices else argument.value
    value = rf"\fI{_text(text)}\fR" if text else ""
    return f"{names} {value}".strip()


def _terms(meanings: dict[str, str]) -> Iterator[str]:
    for name, meaning in meanings.items():
        yield from (".TP", rf"\fB{_text(name)}\fR", _line(_plain(meaning)))


def _paragraphs(markdown: str) -> Iterator[str]:
    first, *others = map(_plain, markdown.strip().split("\n\n"))
    yield _line(first)
    for paragraph in others:
        yield from (".P", _line(paragraph))


def _plain(markdown: str) -> str:
    """Markdown without links and code marks, in one line."""
    return " ".join(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", markdown).replace("`", "").split())


def _text(text: str) -> str:
    # A bare - is typeset as a hyphen, which nobody can paste; ' and ` as curly quotes, ^ and ~ as accents.
    marks = {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}
    return "".join(marks.get(sign, sign) for sign in text)


def _line(text: str) -> str:
    """One line of text: a dot at its start would be a request."""
    return (r"\&" if text.startswith(".") else "") + _text(text)

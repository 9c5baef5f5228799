"""The line of each key of a TOML text: tomllib gives the values without their lines."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field

# From the top: ("rules", 2, "value", "team") is the key `team` of the third rule's value.
KeyPath = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_HEADER = re.compile(r"\[\[?")
_KEY = re.compile(r'"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|[A-Za-z0-9_-]+')
# A text in three quotes may end in one or two more of them.
_TEXT = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'',
    re.DOTALL,
)
# A number, a truth or a time; a time may have a blank in it.
_BARE = re.compile(r"[^,\]}#\n]+")


@dataclass(frozen=True, kw_only=True)
class KeyLines:
    """The line of a key, and the lines on which its value begins and ends."""

    line: int
    first: int
    last: int


@dataclass(frozen=True, kw_only=True)
class Places:
    """The places of all keys and elements; lines count from 1."""

    known: Mapping[KeyPath, KeyLines] = field(default_factory=dict)

    def line(self, *path: str | int) -> int:
        """The line of a key; for a missing key, the line of the table that it is missing from."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.known:
                return self.known[path[:length]].line
        return 1

    def line_within(self, *path: str | int, after: int) -> int:
        """The line `after` this many lines of a key's text; in a text with escapes, a line near it."""
        place = self.known.get(path)
        return self.line(*path) if place is None else min(place.first + after, place.last)


def places_in(text: str) -> Places:
    """The places of a text that tomllib takes, with ends of line as tomllib has them (`\\n`)."""
    scan = _Scan(text)
    scan.document()
    return Places(known=scan.known)


class _Scan:
    """One pass over a text that is known to be TOML, so nothing is checked again."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._elements: dict[KeyPath, int] = {}
        self.known: dict[KeyPath, KeyLines] = {}

    def document(self) -> None:
        table: KeyPath = ()
        self._take(_BLANK)
        while self._at < len(self._text):
            if self._text.startswith("[", self._at):
                table = self._header()
            else:
                self._pair(table)
            self._take(_BLANK)

    def _header(self) -> KeyPath:
        line = self._line()
        is_element = self._take(_HEADER) == "[["
        *above, last = self._names()
        self._at += 2 if is_element else 1
        path: KeyPath = ()
        for name in above:
            path = (*path, name)
            self._add(path, line)
            # `[rules.value]` after `[[rules]]` is about its last element.
            if path in self._elements:
                path = (*path, self._elements[path] - 1)
        path = (*path, last)
        self._add(path, line)
        if is_element:
            number = self._elements.get(path, 0)
            self._elements[path] = number + 1
            path = (*path, number)
            self._add(path, line)
        return path

    def _pair(self, table: KeyPath) -> None:
        line = self._line()
        path = table
        for name in self._names():
            path = (*path, name)
            self._add(path, line)
        # The sign `=`.
        self._at += 1
        self._take(_BLANK)
        self._value(path, line)

    def _value(self, path: KeyPath, line: int) -> None:
        first = self._line()
        if self._text.startswith("[", self._at):
            self._array(path)
        elif self._text.startswith("{", self._at):
            self._inline_table(path)
        elif self._text.startswith(('"', "'"), self._at):
            # A line that ends right after three quotes is no part of the text.
            first += self._text.startswith(('"""\n', "'''\n"), self._at)
            self._take(_TEXT)
        else:
            self._take(_BARE)
        self.known[path] = KeyLines(line=line, first=first, last=self._line())

    def _array(self, path: KeyPath) -> None:
        number = 0
        self._at += 1
        while self._goes_on("]"):
            self._value((*path, number), self._line())
            number += 1

    def _inline_table(self, path: KeyPath) -> None:
        self._at += 1
        while self._goes_on("}"):
            self._pair(path)

    def _goes_on(self, closing: str) -> bool:
        """Whether there is another element; stops at it, or past the end."""
        self._take(_BLANK)
        if self._text.startswith(",", self._at):
            self._at += 1
            self._take(_BLANK)
        if not self._text.startswith(closing, self._at):
            return True
        self._at += 1
        return False

    def _names(self) -> list[str]:
        """The parts of a key with dots, or of a header; stops at what ends it."""
        names = []
        while True:
            self._take(_BLANK)
            written = self._take(_KEY)
            names.append(tomllib.loads(f"key = {written}")["key"] if written[0] in "\"'" else written)
            self._take(_BLANK)
            if not self._text.startswith(".", self._at):
                return names
            self._at += 1

    def _add(self, path: KeyPath, line: int) -> None:
        self.known.setdefault(path, KeyLines(line=line, first=line, last=line))

    def _take(self, pattern: re.Pattern[str]) -> str:
        token = pattern.match(self._text, self._at)
        if token is None:
            raise AssertionError(f"no TOML at line {self._line()}")
        self._at = token.end()
        return token[0]

    def _line(self) -> int:
        return self._text.count("\n", 0, self._at) + 1

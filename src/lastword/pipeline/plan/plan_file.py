"""Reading a pipeline file: the plan in it, and all mistakes in its form, each with its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lastword.core.errors import BadInput
from lastword.core.nearest import did_you_mean
from lastword.pipeline.plan.mistakes import Mistake, label
from lastword.pipeline.plan.plan import KeptTable, Pipeline, Rule, Source
from lastword.pipeline.plan.plan_names import name_mistakes
from lastword.pipeline.plan.toml_lines import KeyPath, Places, places_in

_SYNTAX_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
# The keys of each part of a file, and how they are written.
_FILE = {"app": 'app = "teams"', "source": "[source]", "rules": "[[rules]]", "tables": "[[tables]]"}
_SOURCE = {"topic": 'topic = "new_users"', "schema": 'schema = "email STRING NOT NULL, credit INT"'}
_RULE = {
    "name": 'name = "in-debt"',
    "when": 'when = "credit < 0"',
    "to": 'to = "actions"',
    "key": 'key = "email"',
    "value": 'value = { customer = "email", team = "rule" }',
}
_TABLE = {
    "topic": 'topic = "team_stats"',
    "key": 'key = "team"',
    "counters": 'counters = { processed = "1", flagged = "if(matched, 1, 0)" }',
}
_KINDS = {str: "text", bool: "true or false", int: "a whole number", float: "a number", list: "a list", dict: "a table"}


@dataclass(frozen=True, kw_only=True)
class PlanFile:
    """A file as far as it could be read: a text with a mistake is empty in the pipeline.

    Rules and tables are numbered as in the file, so that a number leads to a line.
    """

    path: str
    pipeline: Pipeline
    places: Places
    mistakes: tuple[Mistake, ...]

    @property
    def is_toml(self) -> bool:
        return bool(self.places.known)


def read_plan(path: Path | str) -> PlanFile:
    """The file's plan, with all mistakes in its form; BadInput if there is no such file."""
    try:
        raw = Path(path).read_bytes()
    except OSError as failure:
        raise BadInput(f"pipeline file {path}: {failure.strerror}: check the path") from None
    try:
        # Line ends as tomllib has them.
        text = raw.decode().replace("\r\n", "\n")
        content = tomllib.loads(text)
    except UnicodeDecodeError as damage:
        line = raw.count(b"\n", 0, damage.start) + 1
        return _unreadable(path, Mistake(line=line, text="not UTF-8 text: save the file as UTF-8"))
    except tomllib.TOMLDecodeError as damage:
        return _unreadable(path, _syntax_mistake(str(damage), text))
    except (ValueError, RecursionError):
        # Python gives no line for these.
        text = "a number with too many digits, or too many brackets: no pipeline needs them"
        return _unreadable(path, Mistake(line=1, text=text))
    reading = _Reading(places_in(text))
    pipeline = reading.pipeline(content)
    mistakes = [*reading.mistakes, *name_mistakes(pipeline, reading.places)]
    mistakes.sort(key=lambda mistake: mistake.line)
    return PlanFile(path=str(path), pipeline=pipeline, places=reading.places, mistakes=tuple(mistakes))


def _unreadable(path: Path | str, mistake: Mistake) -> PlanFile:
    nothing = Pipeline(app="", source=Source(topic="", schema=""), rules=(), tables=())
    return PlanFile(path=str(path), pipeline=nothing, places=Places(), mistakes=(mistake,))


def _syntax_mistake(reason: str, text: str) -> Mistake:
    place = _SYNTAX_PLACE.search(reason)
    line = int(place[1]) if place and place[1] else text.rstrip().count("\n") + 1
    return Mistake(line=line, text=f"not TOML: {reason}: correct it to see other mistakes")


class _Reading:
    def __init__(self, places: Places) -> None:
        self.places = places
        self.mistakes: list[Mistake] = []

    def wrong(self, path: KeyPath, text: str) -> None:
        self.mistakes.append(Mistake(line=self.places.line(*path), text=text))

    def pipeline(self, content: Mapping[str, Any]) -> Pipeline:
        top = _FileTable(self, content, (), "", _FILE, optional="tables")
        rules, tables = top.entries("rules"), top.entries("tables")
        if "rules" in content and content["rules"] == []:
            self.wrong(("rules",), "no rules: add one, like  [[rules]]")
        return Pipeline(
            app=top.text("app"),
            source=self._source(top.table("source")),
            rules=tuple(self._rule(rule, number) for number, rule in enumerate(rules)),
            tables=tuple(self._table(table, number) for number, table in enumerate(tables)),
        )

    def _source(self, content: Mapping[str, Any] | None) -> Source:
        if content is None:
            return Source(topic="", schema="")
        part = _FileTable(self, content, ("source",), "source", _SOURCE)
        return Source(topic=part.text("topic"), schema=part.text("schema"))

    def _rule(self, content: Mapping[str, Any], number: int) -> Rule:
        part = _FileTable(
            self, content, ("rules", number), label("rule", content.get("name"), number), _RULE, optional="key"
        )
        return Rule(
            name=part.text("name"),
            when=part.text("when"),
            to=part.text("to"),
            value=part.texts("value"),
            key=part.text("key") if "key" in content else None,
        )

    def _table(self, content: Mapping[str, Any], number: int) -> KeptTable:
        part = _FileTable(self, content, ("tables", number), label("table", content.get("topic"), number), _TABLE)
        return KeptTable(topic=part.text("topic"), key=part.text("key"), counters=part.texts("counters"))


class _FileTable:
    """One table of the file with a fixed set of keys; a value with a mistake is reported, and read as empty."""

    def __init__(
        self,
        reading: _Reading,
        content: Mapping[str, Any],
        at: KeyPath,
        name: str,
        known: Mapping[str, str],
        *,
        optional: str = "",
    ) -> None:
        self._reading, self._content, self._at, self._name, self._known = reading, content, at, name, known
        where = f"{name}: " if name else ""
        for key in content:
            if key not in known:
                hint = did_you_mean(key, known) or f"it takes {', '.join(known)}"
                reading.wrong((*at, key), f"{where}unknown key {key!r}: {hint}")
        for key, like in known.items():
            if key not in content and key != optional:
                reading.wrong(at, f"{where}{key!r} is missing: add it, like  {like}")

    def text(self, key: str) -> str:
        text = self._content.get(key, "")
        if not isinstance(text, str):
            self._wrong(key, text, "text")
            return ""
        if key in self._content and not text.strip():
            self._empty(key)
            return ""
        return text

    def texts(self, key: str) -> dict[str, str]:
        content = self.table(key)
        if content is None:
            return {}
        if not content:
            self._empty(key)
        known = {name: f'{name} = "..."' for name in content}
        part = _FileTable(self._reading, content, (*self._at, key), f"{self._name}, {key}", known)
        return {name: part.text(name) for name in content}

    def table(self, key: str) -> Mapping[str, Any] | None:
        content = self._content.get(key)
        if content is None or isinstance(content, dict):
            return content
        self._wrong(key, content, "a table")
        return None

    def entries(self, key: str) -> list[Mapping[str, Any]]:
        content = self._content.get(key, [])
        if isinstance(content, list) and all(isinstance(entry, dict) for entry in content):
            return content
        self._wrong(key, content, "a list of tables")
        return []

    def _wrong(self, key: str, value: object, expected: str) -> None:
        kind = _KINDS.get(type(value), "a time")
        self._reading.wrong(
            (*self._at, key), f"{self._what(key)}: is {kind}, not {expected}: write it like  {self._known[key]}"
        )

    def _empty(self, key: str) -> None:
        self._reading.wrong((*self._at, key), f"{self._what(key)}: is empty: write it like  {self._known[key]}")

    def _what(self, key: str) -> str:
        return f"{self._name}, {key}" if self._name else key

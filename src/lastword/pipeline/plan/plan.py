"""What a pipeline does: the source it reads, the rules it applies to every record, and the tables it keeps of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Source:
    """The topic that is read, and the fields of its JSON values, as DDL; NOT NULL says that a field is required."""

    topic: str
    schema: str


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A condition, and the record that each match emits.

    `when`, `key` and the expressions of `value` are Spark SQL over the source's fields; `key` and `value` also know
    `rule`, the rule's name. The record's value is a JSON object with those fields; without `key` it has none.
    """

    name: str
    when: str
    to: str
    value: Mapping[str, str]
    key: str | None = None


@dataclass(frozen=True, kw_only=True)
class KeptTable:
    """One row for each rule, under the rule's name, which the field `key` repeats; the other fields are counters.

    A counter is a Spark SQL expression over the source's fields and `matched` (does the rule's condition hold), added
    up over every valid record.
    """

    topic: str
    key: str
    counters: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    app: str
    source: Source
    rules: tuple[Rule, ...]
    tables: tuple[KeptTable, ...]

    @property
    def changelog(self) -> str:
        return f"{self.app}-progress-changelog"

    @property
    def rejects(self) -> str:
        return f"{self.app}-rejects"

    @property
    def status(self) -> str:
        return f"{self.app}-status"

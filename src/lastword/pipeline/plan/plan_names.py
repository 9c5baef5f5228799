"""Mistakes in the names of a pipeline file: illegal names, names that come twice, topics with two uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from lastword.core.errors import BadInput
from lastword.kafka.topics.topic_names import LONGEST_NAME, refuse_illegal, refuse_internal
from lastword.pipeline.plan.mistakes import Mistake, label
from lastword.pipeline.plan.plan import Pipeline
from lastword.pipeline.plan.toml_lines import KeyPath, Places


def name_mistakes(pipeline: Pipeline, places: Places) -> list[Mistake]:
    """All mistakes in names; an empty name is reported already."""
    mistakes = [*_illegal(pipeline), *_repeated(pipeline, places), *_shared(pipeline)]
    return [Mistake(line=places.line(*path), text=text) for path, text in mistakes]


def _illegal(pipeline: Pipeline) -> Iterator[tuple[KeyPath, str]]:
    # The name of the app is the beginning of its topics' names.
    longest = LONGEST_NAME - (len(pipeline.changelog) - len(pipeline.app))
    named: list[tuple[KeyPath, str, Callable[[str], None]]] = [
        (("app",), pipeline.app, lambda name: refuse_illegal(name, "pipeline", longest)),
        (("source", "topic"), pipeline.source.topic, refuse_illegal),
    ]
    for number, rule in enumerate(pipeline.rules):
        named.append((("rules", number, "name"), rule.name, lambda name: refuse_illegal(name, "rule")))
        named.append((("rules", number, "to"), rule.to, _refuse_target))
    for number, table in enumerate(pipeline.tables):
        named.append((("tables", number, "topic"), table.topic, _refuse_target))
    for path, name, refuse in named:
        try:
            if name:
                refuse(name)
        except BadInput as refusal:
            yield path, f"{_label_of(pipeline, path)}: {refusal}"


def _repeated(pipeline: Pipeline, places: Places) -> Iterator[tuple[KeyPath, str]]:
    for name, first, number in _again(rule.name for rule in pipeline.rules):
        before = f"(the first one: line {places.line('rules', first, 'name')})"
        yield ("rules", number, "name"), f"a second rule called {name!r} {before}: give it another name"
    for name, first, number in _again(table.topic for table in pipeline.tables):
        before = f"(the first one: line {places.line('tables', first, 'topic')})"
        yield ("tables", number, "topic"), f"a second table in the topic {name!r} {before}: give it another topic"
    for number, table in enumerate(pipeline.tables):
        if table.key in table.counters:
            taken = f"the counter {table.key!r} has the name of the table's key: rename one of them"
            yield ("tables", number, "counters", table.key), f"{label('table', table.topic, number)}: {taken}"


def _again(names: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    """Each repeated name, with the number of its first use and of this one."""
    first: dict[str, int] = {}
    for number, name in enumerate(names):
        # A missing name is reported already.
        if name and first.setdefault(name, number) != number:
            yield name, first[name], number


def _shared(pipeline: Pipeline) -> Iterator[tuple[KeyPath, str]]:
    """Topics that would be written to for two purposes, or read and written."""
    own = {pipeline.changelog, pipeline.rejects, pipeline.status} if pipeline.app else set()
    tables = {table.topic for table in pipeline.tables}
    named: list[tuple[KeyPath, str]] = [(("source", "topic"), pipeline.source.topic)]
    named += [(("rules", number, "to"), rule.to) for number, rule in enumerate(pipeline.rules)]
    named += [(("tables", number, "topic"), table.topic) for number, table in enumerate(pipeline.tables)]
    for path, topic in named:
        use = f"{_label_of(pipeline, path)}: {topic!r}"
        if topic in own:
            yield path, f"{use} is a topic of the pipeline itself: name another topic"
        elif path[0] != "source" and topic and topic == pipeline.source.topic:
            yield path, f"{use} is the source, and the pipeline would read its own records: name another topic"
        elif path[0] == "rules" and topic and topic in tables:
            yield path, f"{use} is a table of this file, for counters alone: name another topic"


def _label_of(pipeline: Pipeline, path: KeyPath) -> str:
    """`rule team-3, to`, for the path of a key."""
    match path:
        case ("rules", int(number), key):
            return f"{label('rule', pipeline.rules[number].name, number)}, {key}"
        case ("tables", int(number), key):
            return f"{label('table', pipeline.tables[number].topic, number)}, {key}"
    return ", ".join(map(str, path))


def _refuse_target(topic: str) -> None:
    refuse_illegal(topic)
    refuse_internal(topic, "write to")

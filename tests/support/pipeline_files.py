"""A pipeline as the text of its file."""

from __future__ import annotations

import json
from collections.abc import Mapping

from lastword.pipeline.plan.plan import Pipeline


def toml_of(plan: Pipeline) -> str:
    lines = [f"app = {json.dumps(plan.app)}", "[source]", f"topic = {json.dumps(plan.source.topic)}"]
    lines.append(f"schema = {json.dumps(plan.source.schema)}")
    for rule in plan.rules:
        lines += ["[[rules]]", f"name = {json.dumps(rule.name)}", f"when = {json.dumps(rule.when)}"]
        lines += [f"to = {json.dumps(rule.to)}", f"value = {_table(rule.value)}"]
        lines += [] if rule.key is None else [f"key = {json.dumps(rule.key)}"]
    for table in plan.tables:
        lines += ["[[tables]]", f"topic = {json.dumps(table.topic)}", f"key = {json.dumps(table.key)}"]
        lines.append(f"counters = {_table(table.counters)}")
    return "\n".join(lines) + "\n"


def _table(fields: Mapping[str, str]) -> str:
    return "{ " + ", ".join(f"{name} = {json.dumps(text)}" for name, text in fields.items()) + " }"

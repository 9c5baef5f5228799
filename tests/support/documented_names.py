"""What a reader may search the documentation for: every verb, setting, route and error code."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

from lastword.cli import VERBS
from lastword.kafka.topics.cleaner_settings import CLEANER_SETTINGS
from lastword.kafka.topics.settings_table import TOPIC_SETTINGS
from lastword.replica.settings import ReplicaSettings
from lastword.serve.http.error_codes import ERROR_CODES
from lastword.serve.http.limits import Limits
from lastword.serve.http.routes import Route
from lastword.serve.route_table import ROUTES
from lastword.teams.serving.board_guest import AbsentBoard

ROOT = Path(__file__).parents[2]
_READ_FROM_ENVIRONMENT = re.compile(r'environ(?:\.get\(|\[)"([A-Z_]+)"')


def documented_names() -> list[str]:
    """The names as the pages write them: `lastword put`, `delete.retention.ms`, `GET /tables`, `bad_key`."""
    variables = {
        name for path in (ROOT / "src").rglob("*.py") for name in _READ_FROM_ENVIRONMENT.findall(path.read_text())
    }
    fields = [*dataclasses.fields(ReplicaSettings), *dataclasses.fields(Limits)]
    routes: list[Route[Any]] = [*ROUTES, *AbsentBoard().routes]
    return [
        *(f"lastword {verb}" for verb in VERBS),
        *sorted(variables),
        *TOPIC_SETTINGS,
        *CLEANER_SETTINGS,
        *(field.name for field in fields),
        *(f"{route.method} {route.path.replace('{short}', 'NAME')}" for route in routes),
        *ERROR_CODES,
    ]

"""Waits until the parts are ready, and reports those that end meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable

from lastword.core.errors import NotReady
from lastword.up.control import Ends, Upkeep
from lastword.up.scenario import Scenario

_LOOK_EVERY_S = 0.2
# One end may be an accident; a second one has a cause.
_TOO_MANY_ENDS = 2


def await_ready(
    upkeep: Upkeep,
    scenario: Scenario,
    *,
    within_s: float,
    on_progress: Callable[[str], None],
    report: Callable[[str], None],
) -> None:
    """Returns when all parts are ready; NotReady with a part's last words when it fails."""
    began = time.monotonic()
    ends = Ends(upkeep)
    while True:
        for part in ends.news():
            if ends.of(part.name) >= _TOO_MANY_ENDS:
                raise NotReady(f"{part.last_end}: it is tried again and again; see {part.log} and  lastword status")
            report(f"{part.last_end}: starting it again")
        name = scenario.part_not_ready(upkeep)
        if name is None:
            return
        seconds = time.monotonic() - began
        if not upkeep.wanted.is_wanted:
            raise NotReady("ended by another command: run  lastword up  again")
        if seconds > within_s:
            log = upkeep.part(name).log
            late = f"{name} is not ready after {seconds:.0f} s, and keeps starting"
            raise NotReady(f"{late}: watch it with  lastword status; its log is {log}")
        on_progress(f"waiting for {name}: {seconds:.0f} s")
        time.sleep(_LOOK_EVERY_S)

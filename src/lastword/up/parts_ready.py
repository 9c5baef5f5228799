"""When the parts are ready: the server answers so, and the pipeline that runs has told its generation."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from lastword.core.errors import NotReady, ServerUnreachable
from lastword.core.http_client import Address, Server, ServerRefused
from lastword.core.shapes.pipeline_status import PipelineStatus
from lastword.teams.parts import PIPELINE, SERVE
from lastword.up.control import Ends, Upkeep

_LOOK_EVERY_S = 0.2
# Once may be an accident; twice is a reason.
_TOO_MANY_ENDS = 2


class _StatusRow(msgspec.Struct):
    value: PipelineStatus


class Asking:
    """What the server says about itself and the pipeline; None while there is nothing to hear."""

    def __init__(self, url: str, status: str, app: str, *, token: str | None = None) -> None:
        self._server = Server(Address.parse(url), token=token, timeout_s=5)
        self._row = f"/tables/{status}/rows/{app}"

    def is_ready(self) -> bool:
        try:
            self._server.get("/ready", {}, dict)
        except (ServerUnreachable, ServerRefused):
            return False
        return True

    def pipeline_status(self) -> PipelineStatus | None:
        try:
            return self._server.get(self._row, {}, _StatusRow).value
        except (ServerUnreachable, ServerRefused):
            return None

    def close(self) -> None:
        self._server.close()


def await_ready(
    upkeep: Upkeep, asking: Asking, *, within_s: float, show: Callable[[str], None], tell: Callable[[str], None]
) -> int:
    """The pipeline's generation, once all is ready; NotReady with a part's last words when it fails."""
    began = time.monotonic()
    ends = Ends(upkeep)
    while True:
        for part in ends.news():
            if ends.of(part.name) >= _TOO_MANY_ENDS:
                raise NotReady(f"{part.told}: it is tried again and again; see {part.log} and  lastword status")
            tell(f"{part.told}: starting it again")
        waits_for = _waits_for(upkeep, asking)
        if isinstance(waits_for, int):
            return waits_for
        seconds = time.monotonic() - began
        if not upkeep.wanted.is_wanted:
            raise NotReady("ended by another command: run  lastword up  again")
        if seconds > within_s:
            log = upkeep.part(waits_for).log
            raise NotReady(
                f"{waits_for} is not ready after {seconds:.0f} s and goes on: see {log} and  lastword status"
            )
        show(f"waiting for {waits_for}: {seconds:.0f} s")
        time.sleep(_LOOK_EVERY_S)


def await_all_read(asking: Asking, *, since_ms: int, within_s: float) -> bool:
    """Whether the pipeline has read, in time, all that was written before `since_ms`."""
    give_up_at = time.monotonic() + within_s
    while time.monotonic() < give_up_at:
        status = asking.pipeline_status()
        if status is None:
            return False
        if status.at > since_ms and status.lag == 0:
            return True
        time.sleep(_LOOK_EVERY_S)
    return False


def _waits_for(upkeep: Upkeep, asking: Asking) -> str | int:
    """The part that is not ready yet, or the generation of the pipeline if all are."""
    if upkeep.part(SERVE).pid is None or not asking.is_ready():
        return SERVE
    since_ms = upkeep.part(PIPELINE).since_ms
    status = asking.pipeline_status()
    # What an earlier one has told is still in the table.
    if since_ms is None or status is None or status.started < since_ms or status.generation == 0:
        return PIPELINE
    return status.generation

"""Parts that are kept running: `sleep` and small shell commands stand where the real ones run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lastword.core.errors import LastwordError
from lastword.processes.process_lock import end_process, running_pid
from lastword.processes.warden import spawn
from lastword.up.control import Ends, PartStatus, Upkeep
from lastword.up.desired_state import (
    NOTHING_WANTED,
    DesiredState,
    Part,
    PartFiles,
    load_desired_state,
    save_desired_state,
)
from lastword.up.part_supervisor import Backoff
from support.processes import alive, running_with
from support.waiting import eventually


@pytest.fixture
def upkeep(tmp_path: Path) -> Iterator[Upkeep]:
    made = Upkeep(folder=tmp_path / "up")
    yield made
    if made.folder.exists():
        made.end()
    # A process that has let go of its lock takes a moment to be gone.
    eventually(lambda: running_with(tmp_path) == [])


def sleeper(name: str) -> Part:
    return Part(name=name, command=("sleep", "60"))


def shell(name: str, script: str) -> Part:
    return Part(name=name, command=("/bin/sh", "-c", script))


def start(upkeep: Upkeep, *parts: Part) -> bool:
    return upkeep.start(DesiredState(parts=parts, start_cluster=()), dict(os.environ))


def part(upkeep: Upkeep, name: str, is_so: Callable[[PartStatus], bool] = lambda part: part.pid is not None) -> int:
    """Waits until it is so of the part, and gives its pid, 0 for one that does not run."""
    eventually(lambda: is_so(upkeep.part(name)))
    return upkeep.part(name).pid or 0


def pid_in(file: Path) -> int:
    """What a shell writes there; the shell makes the file before it writes to it."""
    eventually(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())


def kill_supervisor(upkeep: Upkeep) -> int:
    supervisor = upkeep.part("supervisor").pid
    assert supervisor is not None
    os.kill(supervisor, signal.SIGKILL)
    return supervisor


def supervisors(upkeep: Upkeep) -> list[int]:
    return [int(line.split()[0]) for line in running_with(f"lastword.up.supervisor {upkeep.folder}")]


def test_the_wait_before_a_start_doubles_up_to_30_s_and_is_short_again_after_a_minute_that_went_well() -> None:
    backoff = Backoff()
    assert [backoff.after(0.5) for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    assert backoff.after(59) == 30
    assert [backoff.after(60), backoff.after(1)] == [1, 2]


def test_a_part_that_is_killed_is_started_again_and_its_end_is_shown(upkeep: Upkeep) -> None:
    start(upkeep, sleeper("a"), sleeper("b"))
    first, other = part(upkeep, "a"), part(upkeep, "b")
    os.kill(first, signal.SIGKILL)
    second = part(upkeep, "a", lambda part: part.pid not in (None, first))
    shown = upkeep.part("a")
    assert (shown.state, shown.pid, shown.health.restarts) == ("running", second, 1)
    assert shown.last_end == "a was ended by SIGKILL"
    assert upkeep.part("b").pid == other
    assert [part.name for part in upkeep.status()] == ["a", "b", "supervisor"]


def test_a_part_that_fails_waits_longer_each_time_and_shows_its_last_words(upkeep: Upkeep) -> None:
    ends = Ends(upkeep)
    start(upkeep, shell("a", "echo begun; echo 'lastword: no such topic: make it' >&2; echo tidied; exit 3"))
    eventually(lambda: upkeep.part("a").health.restarts == 1)
    eventually(lambda: upkeep.part("a").state == "starting again")
    health = upkeep.part("a").health
    assert health.last_exit is not None and health.next_start_ms is not None  # noqa: PT018
    assert upkeep.part("a").last_end == "a ended with exit code 3: no such topic: make it"
    # After its second end.
    assert health.next_start_ms - health.last_exit.at_ms == 2000
    assert [part.name for part in ends.news()] == ["a"]
    assert ends.of("a") == 1


def test_a_killed_part_takes_along_what_it_had_started(upkeep: Upkeep, tmp_path: Path) -> None:
    start(upkeep, shell("a", f"sleep 61 & echo $! >{tmp_path}/below; wait"))
    first = part(upkeep, "a")
    below = pid_in(tmp_path / "below")
    os.kill(first, signal.SIGKILL)
    eventually(lambda: not alive(below))


def test_when_the_supervisor_is_killed_its_stand_by_takes_over_and_keeps_what_runs(upkeep: Upkeep) -> None:
    start(upkeep, sleeper("a"))
    kept = part(upkeep, "a")
    eventually(lambda: len(supervisors(upkeep)) == 2)
    for _ in range(2):
        gone = kill_supervisor(upkeep)
        part(upkeep, "supervisor", lambda part: part.pid not in (None, gone))  # noqa: B023
        # And has one of its own in turn.
        eventually(lambda: len(supervisors(upkeep)) == 2)
    assert upkeep.part("a").pid == kept
    # It is nobody's child by now, and kept all the same.
    os.kill(kept, signal.SIGKILL)
    part(upkeep, "a", lambda part: part.pid not in (None, kept))
    assert upkeep.part("a").last_end == "a ended"


def test_when_all_supervisors_are_killed_the_next_start_keeps_what_runs(upkeep: Upkeep) -> None:
    start(upkeep, sleeper("a"))
    kept = part(upkeep, "a")
    eventually(lambda: len(supervisors(upkeep)) == 2)
    for pid in sorted(supervisors(upkeep), key=lambda pid: pid == upkeep.part("supervisor").pid):
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: supervisors(upkeep) == [])
    assert start(upkeep, sleeper("a"))
    assert not start(upkeep, sleeper("a"))
    assert upkeep.part("a").pid == kept


def test_a_second_start_is_none_and_one_with_another_command_ends_the_first(upkeep: Upkeep) -> None:
    assert start(upkeep, sleeper("a"))
    first = part(upkeep, "a")
    assert not start(upkeep, sleeper("a"))
    assert upkeep.part("a").pid == first
    assert start(upkeep, shell("a", "exec sleep 59"))
    assert part(upkeep, "a") != first
    # A process that ends gives up its lock a moment before it is gone.
    eventually(lambda: not alive(first))


def test_the_end_begins_with_the_part_that_was_started_last_and_leaves_nothing(upkeep: Upkeep, tmp_path: Path) -> None:
    slow = f"trap 'sleep 0.3; echo NAME >>{tmp_path}/ends; exit' TERM; while :; do sleep 0.05; done"
    start(upkeep, *(shell(name, slow.replace("NAME", name)) for name in ("a", "b", "c")))
    pids = [part(upkeep, name) for name in ("a", "b", "c")]
    said: list[str] = []
    assert upkeep.end(said.append) == ["c", "b", "a"] == said
    assert (tmp_path / "ends").read_text().split() == ["c", "b", "a"]
    eventually(lambda: not any(alive(pid) for pid in pids))
    eventually(lambda: supervisors(upkeep) == [])
    assert (upkeep.status(), upkeep.end()) == ([], [])


def test_parts_that_lost_their_supervisors_are_ended_too(upkeep: Upkeep) -> None:
    start(upkeep, sleeper("a"))
    kept = part(upkeep, "a")
    eventually(lambda: len(supervisors(upkeep)) == 2)
    for pid in sorted(supervisors(upkeep), key=lambda pid: pid == upkeep.part("supervisor").pid):
        os.kill(pid, signal.SIGKILL)
    assert upkeep.end() == ["a"]
    eventually(lambda: not alive(kept))


def test_a_process_that_does_not_end_when_asked_to_is_killed_with_what_it_started(tmp_path: Path) -> None:
    files = PartFiles(folder=tmp_path)
    command = ["/bin/sh", "-c", "trap '' TERM; sleep 61 & echo $! >below; wait; wait"]
    with spawn(command, lock=str(files.running), pid=str(files.pid), output=str(files.log)) as process:
        below = pid_in(tmp_path / "below")
        assert not end_process(files, 0.5)
        assert process.wait() == -signal.SIGKILL
    eventually(lambda: not alive(below))
    assert running_pid(files) is None


def test_what_a_killed_owner_had_started_is_ended(upkeep: Upkeep, tmp_path: Path) -> None:
    owner = textwrap.dedent(f"""
        import os, time
        from pathlib import Path
        from lastword.up.control import Upkeep
        from lastword.up.desired_state import Part, DesiredState
        upkeep = Upkeep(folder=Path({str(upkeep.folder)!r}))
        with upkeep.owned():
            part = Part(name="a", command=("sleep", "60"))
            environment = {{**os.environ, "LASTWORD_HOME": {str(tmp_path)!r}}}
            upkeep.start(DesiredState(is_owned=True, parts=(part,), start_cluster=()), environment)
            print("owning", flush=True)
            time.sleep(60)
    """)
    with subprocess.Popen([sys.executable, "-c", owner], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "owning\n"
        kept = part(upkeep, "a")
        process.kill()
    eventually(lambda: not alive(kept))
    eventually(lambda: supervisors(upkeep) == [])
    assert not upkeep.wanted.is_wanted


def test_parts_whose_folder_is_removed_end(upkeep: Upkeep, tmp_path: Path) -> None:
    start(upkeep, sleeper("a"))
    kept = part(upkeep, "a")
    upkeep.folder.rename(tmp_path / "away")
    eventually(lambda: not alive(kept))
    eventually(lambda: supervisors(upkeep) == [])


def test_what_is_wanted_is_read_as_it_was_saved_and_damage_is_told(tmp_path: Path) -> None:
    assert load_desired_state(tmp_path) == NOTHING_WANTED
    wanted = DesiredState(
        is_wanted=True, is_owned=True, parts=(sleeper("a"),), start_cluster=(), cluster="/c", choices={"rate": 5}
    )
    save_desired_state(tmp_path, wanted)
    assert load_desired_state(tmp_path) == wanted
    (tmp_path / "wanted.json").write_text("{")
    with pytest.raises(LastwordError, match=r"wanted\.json can't be read"):
        load_desired_state(tmp_path)

"""Who holds a broker's lock, who knows its pid and who ends it: `sleep` stands where the broker runs."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from lastword.core.errors import BrokerFailed
from lastword.kafka.broker.broker_process import Warden, start_detached
from lastword.kafka.broker.cluster_files import NodeFiles
from lastword.processes.process_lock import is_running, running_pid, wait_until_ended
from support.processes import alive, running_with
from support.waiting import eventually


@pytest.fixture
def files(tmp_path: Path) -> NodeFiles:
    return NodeFiles(folder=tmp_path)


def sleeping(files: NodeFiles) -> tuple[list[str], NodeFiles]:
    return ["sleep", "60"], files


def pid_of(files: NodeFiles) -> int:
    eventually(lambda: running_pid(files) is not None)
    pid = running_pid(files)
    assert pid is not None
    return pid


def start_owner(files: NodeFiles, *, then: str, remove: bool = False) -> subprocess.Popen[str]:
    """Another process that owns a sleeper, prints `owning` and goes on with `then`."""
    owner = textwrap.dedent(f"""
        import os, sys, time
        from pathlib import Path
        from lastword.kafka.broker.broker_process import Warden
        from lastword.kafka.broker.cluster_files import NodeFiles
        files = NodeFiles(folder=Path({str(files.folder)!r}))
        warden = Warden(files.folder if {remove} else None)
        warden.start([(["sleep", "60"], files)])
        print("owning", flush=True)
    """)
    started = subprocess.Popen(
        [sys.executable, "-c", owner + textwrap.dedent(then)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "owning\n"
    return started


def test_a_detached_process_is_nobodys_child_and_knows_its_own_pid(files: NodeFiles) -> None:
    start_detached([sleeping(files)])
    pid = pid_of(files)
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    os.kill(pid, signal.SIGKILL)
    assert wait_until_ended(files, 5)
    assert running_pid(files) is None


def test_a_lock_held_by_a_live_process_means_running_whatever_the_pid_file_says(files: NodeFiles) -> None:
    assert not is_running(files)
    start_detached([sleeping(files)])
    pid = pid_of(files)
    files.pid.write_text("")
    assert is_running(files)
    assert running_pid(files) is None
    os.kill(pid, signal.SIGKILL)
    assert wait_until_ended(files, 5)


def test_asking_whether_it_lives_leaves_no_file_behind(files: NodeFiles) -> None:
    assert not is_running(files)
    assert list(files.folder.iterdir()) == []


def test_someone_who_asks_whether_it_lives_does_not_keep_it_from_starting(files: NodeFiles) -> None:
    files.running.touch()
    with files.running.open("rb") as asked:
        fcntl.flock(asked, fcntl.LOCK_SH)
        letting_go = threading.Timer(0.3, lambda: fcntl.flock(asked, fcntl.LOCK_UN))
        letting_go.start()
        start_detached([sleeping(files)])
        letting_go.join()
    os.kill(pid_of(files), signal.SIGKILL)


def test_a_second_process_for_the_same_folder_is_refused(files: NodeFiles) -> None:
    start_detached([sleeping(files)])
    first = pid_of(files)
    with pytest.raises(BlockingIOError):
        start_detached([sleeping(files)])
    assert running_pid(files) == first
    os.kill(first, signal.SIGKILL)


def test_a_warden_says_in_one_line_what_could_not_be_started(files: NodeFiles) -> None:
    start_detached([sleeping(files)])
    warden = Warden(None)
    with pytest.raises(BrokerFailed, match=r"^the brokers could not be started: BlockingIOError: .*: try again$"):
        warden.start([sleeping(files)])
    warden.dismiss()
    os.kill(pid_of(files), signal.SIGKILL)


def test_a_dismissed_warden_takes_its_processes_and_the_folder_along(files: NodeFiles) -> None:
    warden = Warden(files.folder)
    warden.start([sleeping(files)])
    pid = pid_of(files)
    warden.dismiss()
    assert not alive(pid)
    assert not files.folder.exists()


def test_a_warden_removes_the_folder_also_when_the_process_ended_before_the_owner(files: NodeFiles) -> None:
    with start_owner(files, then="time.sleep(60)", remove=True) as owner:
        os.kill(pid_of(files), signal.SIGKILL)
        assert wait_until_ended(files, 5)
        time.sleep(0.5)  # longer than the warden's round
        assert files.folder.exists()
        owner.kill()
    eventually(lambda: not files.folder.exists())


def test_a_killed_owner_takes_along_what_it_owned(files: NodeFiles) -> None:
    with start_owner(files, then="time.sleep(60)") as owner:
        pid = pid_of(files)
        owner.kill()
    eventually(lambda: not alive(pid))


def test_a_process_that_the_owner_forked_does_not_keep_it_alive(files: NodeFiles) -> None:
    forks = """
        if os.fork() == 0:
            os.close(1)
            sys.stdin.read()
            os._exit(0)
        time.sleep(60)
    """
    with start_owner(files, then=forks) as owner:
        pid = pid_of(files)
        owner.kill()
        owner.wait()
        eventually(lambda: not alive(pid))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux binds a child's life to its parent's")
def test_a_killed_warden_takes_along_what_it_ran(files: NodeFiles) -> None:
    with start_owner(files, then="time.sleep(60)") as owner:
        pid = pid_of(files)
        (warden,) = running_with(f"warden.py {owner.pid}")
        os.kill(int(warden.split()[0]), signal.SIGKILL)
        eventually(lambda: not alive(pid))
        owner.kill()


def test_a_warden_that_is_asked_to_end_ends_what_it_ran(files: NodeFiles) -> None:
    with start_owner(files, then="time.sleep(60)") as owner:
        pid = pid_of(files)
        (warden,) = running_with(f"warden.py {owner.pid}")
        os.kill(int(warden.split()[0]), signal.SIGTERM)
        eventually(lambda: not alive(pid))
        owner.kill()

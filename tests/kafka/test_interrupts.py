"""A verb that is ended by a signal, at any instant: exit code 128 + its number, one line at most, nothing left.

LASTWORD_SOAK says how many times ten instants are tried for each verb and signal (two without it, one with Spark).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_changes import create_topic
from support.command_line import CommandLine

RUNS = 10 * int(os.environ.get("LASTWORD_SOAK", "0"))
# From the first import of ours on: what Python does before that is its own.
PROGRAM = "from lastword.program import run; print('begun', flush=True); run()"
# From the first imports to well into the work of each verb, on a machine that has nothing else to do.
SPANS_S = {"load": 0.6, "watch": 0.6, "scan": 0.4, "sql": 8.0 if RUNS else 3.0}


def started(line: CommandLine, *words: str) -> subprocess.Popen[str]:
    """The program at its first import."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words],
        env=line.environment(),
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # As from a terminal: what runs in the background of a shell inherits that interrupts are ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no thread of ours runs
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


# These may have nothing left to do before the signal comes.
END_BY_THEMSELVES = ("scan", "sql")


def check_end(process: subprocess.Popen[str], verb: str, number: signal.Signals, after_s: float) -> None:
    """It ended by the signal, or before it came, if the verb ends by itself."""
    try:
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
    # In its last moments Python gives signals back to the system, which ends it: to a shell that is 128 + number, too.
    ends = (128 + number, -number, *((0,) if verb in END_BY_THEMSELVES else ()))
    assert process.returncode in ends, f"{process.returncode} after {after_s:.3f} s: {said}"
    assert len(said.splitlines()) <= 1, f"after {after_s:.3f} s: {said}"
    assert "Traceback" not in said


def words_of(verb: str, topic: str) -> list[str]:
    return {
        "load": ["load", topic, "-"],
        "watch": ["watch", topic, "--json"],
        "scan": ["scan", topic],
        "sql": ["sql", f"SELECT * FROM `{topic}`"],
    }[verb]


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("verb", SPANS_S)
def test_a_signal_at_any_instant_ends_a_verb_without_a_stack(
    lastword: CommandLine, connection: Connection, topic_name: str, verb: str, number: signal.Signals
) -> None:
    create_topic(connection, topic_name, partitions=1)
    lastword("load", topic_name, "-", given="".join(f"key-{n}:{n}\n" for n in range(1000)))
    instants = random.Random(f"{verb} {number}")
    for _ in range(RUNS or (1 if verb == "sql" else 2)):
        after_s = instants.uniform(0, SPANS_S[verb])
        process = started(lastword, *words_of(verb, topic_name))
        # The instant itself: there is nothing to wait for.
        time.sleep(after_s)
        process.send_signal(number)
        check_end(process, verb, number, after_s)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_inside_an_import_is_raised_after_it_and_never_becomes_another_error(
    lastword: CommandLine, number: signal.Signals
) -> None:
    # A module that makes another error of whatever goes wrong while it is loaded, as large ones do.
    (lastword.home / "odd").mkdir(parents=True)
    (lastword.home / "odd" / "clumsy.py").write_text(
        "import os, signal\n"
        f"try:\n    os.kill(os.getpid(), {int(number)})\n    sum(range(10000))\n"
        "except BaseException as failure:\n    raise ImportError('a part of clumsy is missing') from failure\n"
    )
    program = (
        "import sys; sys.argv = ['lastword', 'count', 't']\n"
        "from lastword import program\n"
        "def main():\n    import clumsy\n    print('loaded', flush=True)\n    import time\n    time.sleep(60)\n"
        "program.run(main)"
    )
    environ = {**lastword.environment(), "PYTHONPATH": str(lastword.home / "odd")}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (128 + number, "")


def test_an_interrupt_that_python_drops_in_a_destructor_is_raised_once_more(lastword: CommandLine) -> None:
    program = (
        "import sys; sys.argv = ['lastword', 'count', 't']\n"
        "from lastword import program\n"
        "import os, time\n"
        "class Odd:\n    def __del__(self):\n        os.kill(os.getpid(), 15)\n        sum(range(10000))\n"
        "def main():\n    Odd()\n    time.sleep(60)\n"
        "program.run(main)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=lastword.environment(), capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (143, "")


def test_a_second_signal_ends_at_once_what_the_first_could_not_end(lastword: CommandLine) -> None:
    program = (
        "import sys; sys.argv = ['lastword', 'count', 't']\n"
        "from lastword import program\n"
        "import time\n"
        "def main():\n"
        "    try:\n        print('at work', flush=True)\n        time.sleep(60)\n"
        "    except KeyboardInterrupt:\n        print('putting in order', flush=True)\n        time.sleep(60)\n"
        "program.run(main)"
    )
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", program], env=lastword.environment(), text=True, stdout=pipe)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "putting in order\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 143

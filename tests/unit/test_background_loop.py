"""A background loop: it works until it is stopped, and rests in between."""

from __future__ import annotations

import threading
import time

import pytest

from lastword.processes.background_loop import BackgroundLoop
from support.waiting import eventually

LONG_S = 60.0


class Worker:
    """Counts its rounds, with a rest after each."""

    def __init__(self, rest_s: float) -> None:
        self.rest_s = rest_s
        self.rounds = 0
        self.has_ended = False
        self.loop = BackgroundLoop("worker", self.work)

    def work(self) -> None:
        while not self.loop.is_stopping:
            self.rounds += 1
            self.loop.rest(self.rest_s)
        self.has_ended = True


def test_it_works_again_and_again_until_it_is_stopped() -> None:
    worker = Worker(rest_s=0.001)
    worker.loop.start()
    eventually(lambda: worker.rounds > 3)
    worker.loop.stop()
    assert worker.has_ended
    rounds = worker.rounds
    time.sleep(0.02)
    assert worker.rounds == rounds


def test_a_stop_ends_a_long_rest_and_waits_for_the_end() -> None:
    worker = Worker(rest_s=LONG_S)
    worker.loop.start()
    eventually(lambda: worker.rounds == 1)
    worker.loop.stop(LONG_S / 2)
    assert (worker.rounds, worker.has_ended) == (1, True)


def test_it_is_woken_from_its_rest_and_goes_on() -> None:
    worker = Worker(rest_s=LONG_S)
    worker.loop.start()
    eventually(lambda: worker.rounds == 1)
    worker.loop.wake()
    eventually(lambda: worker.rounds == 2)
    worker.loop.stop(LONG_S / 2)
    assert worker.has_ended


def test_after_a_stop_every_rest_returns_at_once() -> None:
    loop = BackgroundLoop("never started", lambda: None)
    loop.ask_to_stop()
    began_s = time.monotonic()
    for _ in range(3):
        loop.rest(LONG_S)
    assert time.monotonic() - began_s < LONG_S / 2


@pytest.mark.parametrize("is_woken", [False, True])
def test_a_stop_just_before_a_rest_is_not_missed(is_woken: bool) -> None:
    class StoppedBeforeItsRest(Worker):
        def work(self) -> None:
            while not self.loop.is_stopping:
                if is_woken:
                    self.loop.wake()
                self.loop.ask_to_stop()
                self.loop.rest(self.rest_s)
            self.has_ended = True

    worker = StoppedBeforeItsRest(rest_s=LONG_S)
    worker.loop.start()
    worker.loop.stop(LONG_S / 2)
    assert worker.has_ended


def test_a_stop_is_not_missed_while_the_loop_is_being_woken() -> None:
    # The stop comes while the loop rests, while it forgets that it was woken, or while it works.
    for _ in range(200):
        worker = Worker(rest_s=LONG_S)
        worker.loop.start()
        worker.loop.wake()
        worker.loop.stop(LONG_S / 2)
        assert worker.has_ended


def test_a_stop_waits_no_longer_than_it_is_given() -> None:
    release = threading.Event()

    def work() -> None:
        release.wait(LONG_S)

    loop = BackgroundLoop("stubborn", work)
    loop.start()
    began_s = time.monotonic()
    loop.stop(0.05)
    assert time.monotonic() - began_s < LONG_S / 2
    release.set()


def test_a_loop_that_was_never_started_stops_at_once() -> None:
    loop = BackgroundLoop("never started", lambda: None)
    loop.stop()
    assert (loop.is_started, loop.is_stopping) == (False, True)


def test_its_thread_has_its_name_and_ends_with_the_process() -> None:
    threads: list[threading.Thread] = []
    loop = BackgroundLoop("named", lambda: threads.append(threading.current_thread()))
    loop.start()
    loop.stop()
    assert [(thread.name, thread.daemon) for thread in threads] == [("named", True)]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_ends_it_and_is_reported_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[tuple[str, str]] = []

    def report(failure: threading.ExceptHookArgs) -> None:
        assert failure.thread is not None
        reported.append((failure.thread.name, str(failure.exc_value)))

    monkeypatch.setattr(threading, "excepthook", report)

    def work() -> None:
        raise ValueError("broken")

    loop = BackgroundLoop("failing", work)
    loop.start()
    loop.stop()
    assert reported == [("failing", "broken")]

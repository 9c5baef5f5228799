"""Looking at the cluster: when it was seen so, and how it is ended."""

from __future__ import annotations

import threading
import time

import pytest

from lastword.core.clock import now_ms
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.cluster_description import ClusterDescription, Describe
from lastword.kafka.topics.topic_description import PartitionDescription, TopicDescription
from lastword.serve.cluster.cluster_watch import ClusterWatch
from support.waiting import eventually

NOWHERE = Connection(bootstrap_servers="127.0.0.1:1")


def watch_of(**steps: Describe) -> ClusterWatch:
    return ClusterWatch(NOWHERE, home=None, lags=lambda _: None, lag_of_all=lambda: None, looked=lambda: None, **steps)


def test_what_took_long_to_find_out_is_as_old_as_the_question() -> None:
    partition = PartitionDescription(
        partition=0,
        leader=1,
        replicas=(1,),
        in_sync=(1,),
        start_offset=0,
        end_offset=9,
        stable_offset=9,
        bytes_on_disk=1,
    )
    topic = TopicDescription(name="t", topic_id="id", settings={}, partitions=(partition,), no_sizes_because=None)
    found = ClusterDescription(cluster_id="c", brokers=(), controller=None, topics={"t": topic})
    asked_ms = list[int]()

    def slowly(*_: object) -> ClusterDescription:
        asked_ms.append(now_ms())
        eventually(lambda: now_ms() > asked_ms[0])
        return found

    watch = watch_of(describe=slowly)
    watch.start()
    eventually(lambda: watch.last is not None)
    watch.close()
    assert watch.last is not None
    assert watch.last.at <= asked_ms[0]


@pytest.mark.parametrize(("why", "rests"), [(None, True), ("no cluster answers", False)])
def test_after_a_long_look_it_rests_four_times_as_long_unless_it_only_waited(why: str | None, rests: bool) -> None:
    watch = watch_of()
    watch.asked()
    watch.why = why
    # A look of 2.2 seconds: the next is due already.
    resting = threading.Thread(target=watch._rest, args=(time.monotonic() - 2.2,))
    resting.start()
    resting.join(1)
    assert resting.is_alive() is rests
    watch.close()
    resting.join(120)
    assert not resting.is_alive()


def test_a_stop_is_not_missed_while_a_request_wakes_it() -> None:
    # The stop comes before the rest, during it, or just after the wake.
    for _ in range(100):
        watch = watch_of()
        resting = threading.Thread(target=watch._rest, args=(time.monotonic(),))
        resting.start()
        watch.asked()
        watch.close()
        resting.join(120)
        assert not resting.is_alive()

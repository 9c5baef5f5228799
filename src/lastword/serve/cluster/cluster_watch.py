"""Watches the cluster from its own thread: often while requests come, seldom otherwise."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

from lastword.core.clock import now_ms
from lastword.core.errors import ClusterUnreachable, LastwordError
from lastword.core.shapes.cluster import ClusterSample
from lastword.core.shapes.topics import TopicSample
from lastword.kafka.broker.cluster_files import is_of_home
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.cluster_description import ClusterDescription, Describe, describe_cluster
from lastword.kafka.topics.topic_description import TopicDescription, total
from lastword.processes.background_loop import BackgroundLoop
from lastword.serve.cluster.samples import EVERY_S, Growth, Samples
from lastword.serve.http.answers import public_message

_OFTEN_S, _SELDOM_S = 2.0, 10.0
# How long after a request the cluster is still watched often.
_WATCHED_S = 60.0
_PATIENCE_S = 3.0
# A pause is this many times as long as the look before it, so that watching never burdens a large cluster.
_REST = 4.0
# How long a stop waits for the thread: a cluster that hangs must not hold up a stop.
_STOP_S = 5.0
# The most topics whose samples are kept.
_MOST_TOPICS = 1000
_AWAY = (
    "no cluster answers, or it refuses this server; the server keeps trying. Is a local broker running?  "
    "lastword broker status.  Does the cluster ask for a password? The server reads it from the file of --config"
)
_FAILED = "reading the state of the cluster failed: see the server's log"

_log = logging.getLogger(__name__)

# topic -> the lag of the replica that serves it; None when no replica does, and while the lag is not known.
Lags = Callable[[str], int | None]


class Look(NamedTuple):
    """The cluster at one moment."""

    # When the question was sent: a broker that hangs may answer many seconds later.
    at: int
    cluster: ClusterDescription
    is_local: bool


@dataclass
class _Measured:
    """The samples of one topic; a topic that was created again is another topic."""

    topic_id: str
    ends: Growth = field(default_factory=Growth)
    samples: Samples[TopicSample] = field(default_factory=lambda: Samples(TopicSample))


class ClusterWatch:
    """The last snapshot may be read from any thread."""

    def __init__(
        self,
        connection: Connection,
        *,
        home: Path | None,
        lags: Lags,
        lag_of_all: Callable[[], int | None],
        looked: Callable[[], None],
        describe: Describe = describe_cluster,
    ) -> None:
        self._connection = replace(connection, patience_s=min(_PATIENCE_S, connection.patience_s))
        self._home = home
        self._lags = lags
        self._lag_of_all = lag_of_all
        self._looked = looked
        self._describe = describe
        self._topics: dict[str, _Measured] = {}
        self._sampled_s = -EVERY_S
        self._asked_s = -_WATCHED_S
        self.samples = Samples(ClusterSample)
        self.last: Look | None = None
        # Why the last look failed, in words for a client; None when it succeeded.
        self.why: str | None = None
        self._loop = BackgroundLoop("cluster", self._run)

    @property
    def state(self) -> Literal["connecting", "connected", "away"]:
        if self.last is None:
            return "connecting"
        return "connected" if self.why is None else "away"

    def start(self) -> None:
        self._loop.start()

    def asked(self) -> None:
        """A request came: the cluster is watched often for a while."""
        now_s = time.monotonic()
        was_watched, self._asked_s = now_s - self._asked_s < _WATCHED_S, now_s
        if not was_watched:
            self._loop.wake()

    def records_per_s(self, topic: str) -> float | None:
        measured = self._topics.get(topic)
        return None if measured is None else measured.ends.per_s

    def samples_of(self, topic: str) -> Samples[TopicSample]:
        measured = self._topics.get(topic)
        return Samples(TopicSample) if measured is None else measured.samples

    def close(self) -> None:
        self._loop.stop(_STOP_S)

    def _run(self) -> None:
        # One client for all looks: making a client takes longer than a look.
        admin = None
        while not self._loop.is_stopping:
            began_s, began_ms = time.monotonic(), now_ms()
            try:
                admin = self._connection.admin() if admin is None else admin
                self._take(self._describe(self._connection, admin), began_s, began_ms)
                self.why = None
            except ClusterUnreachable:
                self.why = _AWAY
            except LastwordError as failure:
                self.why = public_message(str(failure), self._connection.bootstrap_servers, _FAILED)
            except Exception:
                # Logged once, not every two seconds.
                if self.why != _FAILED:
                    _log.exception("reading the state of the cluster failed")
                self.why = _FAILED
            self._tell()
            self._rest(began_s)

    def _tell(self) -> None:
        try:
            self._looked()
        except Exception:
            # The thread must keep running: otherwise nothing would watch the cluster.
            _log.exception("preparing the answer about the cluster failed")

    def _rest(self, began_s: float) -> None:
        ended_s = time.monotonic()
        # After a failure the next look comes soon, so that a returning cluster is seen soon.
        rested_s = ended_s + _REST * (ended_s - began_s) if self.why is None else ended_s
        while not self._loop.is_stopping:
            now_s = time.monotonic()
            every_s = _OFTEN_S if now_s - self._asked_s < _WATCHED_S else _SELDOM_S
            if (left_s := max(began_s + every_s, rested_s) - now_s) <= 0:
                return
            self._loop.rest(left_s)

    def _take(self, cluster: ClusterDescription, at_s: float, at: int) -> None:
        known = self.last
        if known is not None and known.cluster.cluster_id == cluster.cluster_id:
            is_local = known.is_local
        else:
            is_local = self._home is not None and is_of_home(self._home, cluster.cluster_id)
        look = Look(at, cluster, is_local)
        self._measure(look, at_s)
        self.last = look

    def _measure(self, look: Look, now_s: float) -> None:
        topics = look.cluster.topics
        kept = {
            name: self._topics.get(name) or _Measured(topic.topic_id)
            for name, topic in list(topics.items())[:_MOST_TOPICS]
        }
        for name, measured in kept.items():
            if measured.topic_id != topics[name].topic_id:
                kept[name] = _Measured(topics[name].topic_id)
            kept[name].ends.seen(now_s, topics[name].end)
        # In one assignment, because other threads read it.
        self._topics = kept
        if now_s - self._sampled_s >= EVERY_S - _OFTEN_S / 2:
            self._sampled_s = now_s
            self._sample(look.at, topics)

    def _sample(self, at: int, topics: Mapping[str, TopicDescription]) -> None:
        size = total([topic.bytes_on_disk for topic in topics.values()])
        self.samples.add(ClusterSample(at, size, self._lag_of_all()))
        for name, measured in self._topics.items():
            topic = topics[name]
            measured.samples.add(TopicSample(at, topic.bytes_on_disk, topic.end, self._lags(name)))

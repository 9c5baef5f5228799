"""Compacts topics of a local cluster on request: one at a time, in a thread, with the status of each."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from lastword.core.clock import now_ms
from lastword.core.errors import ClusterUnreachable, LastwordError, NotFound
from lastword.core.shapes.topics import CompactionStatus, TopicSize
from lastword.kafka.client.connection import Connection
from lastword.kafka.compaction.journal import has_entry, restore_left_behind
from lastword.kafka.compaction.on_demand import Compaction, compact_topic
from lastword.kafka.topics.topic_description import total
from lastword.serve.http.answers import Refused, public_message, stopping

# How long a stop waits until the settings are put back. After that, the next command that reaches the cluster does it.
_STOP_S = 5.0
# The pause between attempts to put settings back after a compaction that could not.
_AGAIN_S = 10.0
_MOST_KEPT = 200
_AWAY = "the cluster stopped answering: once it is back, the server puts the settings back; then compact again"
_FAILED = "the compaction failed: see the server's log"

_log = logging.getLogger(__name__)


class _CompactionStopped(Exception):
    pass


class Compacting:
    """Asked from any thread."""

    def __init__(
        self, connection: Connection, home: Path | None, *, ended: Callable[[str], None], again_s: float = _AGAIN_S
    ) -> None:
        self._connection = connection
        self._home = home
        self._ended = ended
        self._again_s = again_s
        self._lock = threading.Lock()
        # By the id of the topic, because a topic that was created again is another topic.
        self._last: OrderedDict[str, CompactionStatus] = OrderedDict()
        self._running: str | None = None
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    def of(self, topic_id: str) -> CompactionStatus | None:
        """The last compaction of a topic that this server ran; None when there was none."""
        return self._last.get(topic_id)

    def begin(self, topic: str, before: TopicSize, *, topic_id: str, cluster_id: str) -> CompactionStatus:
        """Starts a compaction; Refused while another one runs, and for a cluster of another home."""
        home = self._home
        if home is None:
            raise not_local()
        with self._lock:
            if self._stopping.is_set():
                raise stopping()
            if self._running is not None:
                raise Refused("already_running", f"{self._running} is being compacted")
            begun = CompactionStatus(
                state="running", began=now_ms(), ended=None, step=None, why=None, before=before, after=None
            )
            # A daemon, because a cluster that hangs must not hold up a stop. The journal has the settings to put back.
            thread = threading.Thread(
                target=self._run, args=(topic, topic_id, cluster_id, home), name="compacting", daemon=True
            )
            self._last.pop(topic_id, None)
            self._keep(topic_id, begun)
            try:
                thread.start()
            except BaseException:
                # The system refused a thread: this compaction does not run, and a later one may.
                del self._last[topic_id]
                raise
            self._running, self._thread = topic, thread
            return begun

    def close(self) -> None:
        with self._lock:
            self._stopping.set()
            thread = self._thread
        if thread is not None:
            thread.join(_STOP_S)

    def _run(self, topic: str, topic_id: str, cluster_id: str, home: Path) -> None:
        def at_step(step: str) -> None:
            self._keep(topic_id, replace(self._last[topic_id], step=step))

        try:
            done = compact_topic(self._connection, topic, home=home, at_step=at_step, check_wanted=self._check_wanted)
            status = _done(self._last[topic_id], done)
        except _CompactionStopped:
            status = self._failed(topic_id, "the server was stopped")
        except ClusterUnreachable:
            status = self._failed(topic_id, _AWAY)
        except NotFound:
            status = self._failed(topic_id, "the topic is gone")
        except LastwordError as failure:
            status = self._failed(topic_id, public_message(str(failure), self._connection.bootstrap_servers, _FAILED))
            if status.why == _FAILED:
                _log.warning("compacting %s: %s", topic, failure)
        except Exception:
            _log.exception("compacting %s failed", topic)
            status = self._failed(topic_id, _FAILED)
        with self._lock:
            self._keep(topic_id, status)
            self._running = None
        self._ended(topic)
        self._put_back(topic, cluster_id, home)

    def _put_back(self, topic: str, cluster_id: str, home: Path) -> None:
        """Puts settings back that a compaction could not put back at its end: a next command may never come."""
        while has_entry(home, cluster_id, topic) and not self._stopping.wait(self._again_s):
            with suppress(LastwordError):
                restore_left_behind(self._connection, home, _log.info)

    def _failed(self, topic_id: str, why: str) -> CompactionStatus:
        return replace(self._last[topic_id], state="failed", ended=now_ms(), why=why)

    def _keep(self, topic_id: str, status: CompactionStatus) -> None:
        self._last[topic_id] = status
        while len(self._last) > _MOST_KEPT:
            self._last.popitem(last=False)

    def _check_wanted(self) -> None:
        if self._stopping.is_set():
            raise _CompactionStopped


def not_local() -> Refused:
    return Refused("not_local", "only a local cluster in this server's home can be compacted over HTTP")


def _done(begun: CompactionStatus, done: Compaction) -> CompactionStatus:
    # Most partitions have the same reason.
    whys = dict.fromkeys([*(partition.why for partition in done.partitions if partition.why), *done.notes])
    return replace(
        begun,
        state="done",
        ended=now_ms(),
        why="; ".join(whys) or None,
        before=TopicSize(
            bytes=total([partition.bytes_before for partition in done.partitions]),
            records=sum(partition.before.records for partition in done.partitions),
        ),
        after=TopicSize(
            bytes=total([partition.bytes_after for partition in done.partitions]),
            records=sum(partition.after.records for partition in done.partitions),
        ),
    )

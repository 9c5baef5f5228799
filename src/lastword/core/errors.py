"""Everything that can go wrong, as one tree. Each message says what happened, where, and what to do next.

LastwordError                    exit 1: the thing asked for is not so
├── BadInput                     exit 2: a usage, key, value, setting or file that can't be taken
│   ├── BadLine                  a line of a file, with its number
│   └── DecodeError              bytes that the codec can't read
├── ExtraMissing                 exit 2: an optional part is not installed
├── NotFound                     exit 1: no such topic, key or cluster
├── AlreadyExists                exit 1: a topic of that name is there
├── AlterRefused                 exit 1: the cluster refused a change of settings; nothing was changed
├── WriteFailed                  exit 1: the cluster did not acknowledge a record
│   ├── NotEnoughReplicas        fewer in-sync replicas than min.insync.replicas
│   └── TopicChanged             the topic was deleted, or another one was made under its name
├── BrokerFailed                 exit 1: a local broker would not start or stop
│   └── PortTaken                another process took its port while it started
├── JarsUnavailable              exit 1: the broker's jars could not be fetched or verified
├── PositionGone                 exit 1: an offset that was asked for is not in the log any more
├── ReplicaUnusable              exit 1: a replica's folder is in use, of another format or of another table
├── StoreDamaged                 exit 1: a replica's store has other bytes than were written; it is built again
├── DiskFull                     exit 1: no space is left for a replica's store; it goes on when there is some
├── NotReady                     exit 1: the replica has nothing to show yet, or did not get there in time
├── FellBehind                   exit 1: a watcher was too slow and was cut off; it can go on from its position
├── HistoryLost                  exit 1: records or tombstones that were needed are gone from the log
├── HorizonPassed                exit 1: a past state that compaction may have erased a part of
├── SourceGap                    exit 1: what a pipeline had yet to read is gone, or its source is another one now
├── Fenced                       exit 1: another process has taken the transactional id of this one
├── TakenOver                    exit 1: another process does now what this one did
├── ServerUnreachable            exit 3: no HTTP server answers at the address, or it went away
└── ClusterUnreachable           exit 3: nobody answers at the address
"""

from __future__ import annotations

from collections.abc import Sequence


class LastwordError(Exception):
    """The root: catch this to catch them all."""

    exit_code = 1


class BadInput(LastwordError):
    exit_code = 2


class BadLine(BadInput):
    """A line that can't be taken; `number` counts from 1."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"line {number}: {reason}")
        self.number = number
        self.reason = reason


class DecodeError(BadInput):
    pass


class ExtraMissing(LastwordError):
    exit_code = 2

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} is not installed: run  pip install 'lastword[{extra}]'")


class NotFound(LastwordError):
    pass


class AlreadyExists(LastwordError):
    pass


class AlterRefused(LastwordError):
    pass


class WriteFailed(LastwordError):
    pass


class NotEnoughReplicas(WriteFailed):
    pass


class TopicChanged(WriteFailed):
    pass


class BrokerFailed(LastwordError):
    """A local broker would not start or stop; `log_tail` holds the last lines it said."""

    def __init__(self, message: str, log_tail: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.log_tail = tuple(log_tail)


class PortTaken(BrokerFailed):
    """Another process took a port between the moment in which it was free and the broker's own start."""


class JarsUnavailable(LastwordError):
    pass


class PositionGone(LastwordError):
    pass


class ReplicaUnusable(LastwordError):
    pass


class StoreDamaged(LastwordError):
    pass


class DiskFull(LastwordError):
    pass


class NotReady(LastwordError):
    pass


class FellBehind(LastwordError):
    pass


class HistoryLost(LastwordError):
    pass


class HorizonPassed(LastwordError):
    pass


class SourceGap(LastwordError):
    pass


class Fenced(LastwordError):
    pass


class TakenOver(LastwordError):
    pass


class ServerUnreachable(LastwordError):
    exit_code = 3


class ClusterUnreachable(LastwordError):
    exit_code = 3

"""All errors, as one tree with their exit codes. Each message says what happened, where, and what to do next.

LastwordError                    exit 1: not found, or a check failed
├── BadInput                     exit 2: a bad option, key, value, setting or file
│   ├── BadLine                  a bad line of a file, with its number
│   └── DecodeError              bytes that the codec can't read
├── ExtraMissing                 exit 2: an optional package is not installed
├── NotFound                     exit 1: no such topic, key or cluster
├── AlreadyExists                exit 1: a topic of that name exists
├── AlterRefused                 exit 1: the cluster refused a change of settings and changed nothing
├── WriteFailed                  exit 1: the cluster did not acknowledge a record
│   ├── NotEnoughReplicas        fewer in-sync replicas than min.insync.replicas
│   └── TopicChanged             the topic was deleted, or deleted and created again
├── BrokerFailed                 exit 1: a local broker did not start or stop
│   └── PortTaken                another process took the port while the broker started
├── JarsUnavailable              exit 1: the broker's jars could not be fetched or verified
├── PositionGone                 exit 1: a requested offset is no longer in the log
├── ReplicaUnusable              exit 1: a replica's folder is in use, or has another format or another table
├── StoreDamaged                 exit 1: a replica's store is damaged on disk; the replica rebuilds it
├── DiskFull                     exit 1: the disk of a replica's store is full; the replica resumes when there is space
├── NotReady                     exit 1: the replica has no rows to show yet, or missed a deadline
├── FellBehind                   exit 1: a watcher was too slow and was cut off; it can resume from its position
├── HistoryLost                  exit 1: needed records or tombstones are gone from the log
├── HorizonPassed                exit 1: compaction may have erased a part of the requested past state
├── SourceGap                    exit 1: records are gone that a pipeline had not read, or its source was recreated
├── Fenced                       exit 1: another process took this process's transactional id
├── TakenOver                    exit 1: another process took over this process's work
├── ServerUnreachable            exit 3: no HTTP server answers at the address
└── ClusterUnreachable           exit 3: no Kafka cluster answers at the address
"""

from __future__ import annotations

from collections.abc import Sequence


class LastwordError(Exception):
    """The root: catch it to catch every error of lastword."""

    exit_code = 1


class BadInput(LastwordError):
    exit_code = 2


class BadLine(BadInput):
    """A bad line of a file or a request body; `number` counts from 1."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"line {number}: {reason}")
        self.number = number
        self.reason = reason


class DecodeError(BadInput):
    pass


class ExtraMissing(LastwordError):
    exit_code = 2

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: run  pip install 'lastword[{extra}]'")


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
    """A local broker did not start or stop; `log_tail` holds the last lines of its log."""

    def __init__(self, message: str, log_tail: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.log_tail = tuple(log_tail)


class PortTaken(BrokerFailed):
    """Another process took a port after the check that the port was free, and before the broker started."""


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

"""A store from nothing, fast: worker processes fold the partitions into sorted files, and the store takes them over.

Only for a table where each key lives in one partition, as in nearly every table. A key in two partitions needs
`store.apply_batch`: then the whole store is built by reading on from the log's start, which is slower.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from lastword.core.clock import now_ms
from lastword.core.codecs import codec_named, readable_by
from lastword.core.errors import LastwordError
from lastword.core.position import Position
from lastword.kafka.client.connection import Connection
from lastword.replica.building.fold_worker import ERRORS, Failed, Folded, Job, Passed, Split, WorkerMessage
from lastword.replica.building.long_work import Stopped
from lastword.replica.store.identity import Identity
from lastword.replica.store.row_layout import PartitionState, partition_state_at
from lastword.replica.store.store import Store

_LOOK_S = 0.1


def build(
    connection: Connection,
    identity: Identity,
    folder: Path,
    *,
    start: Position,
    stop: Position,
    memory_mb: int,
    progress: Callable[[int, int], None],
    stopping: threading.Event,
) -> bool:
    """A whole store in `folder`, at `stop`, flushed and closed again; `ReplicaFolder.adopt` syncs its files.

    Raises Stopped when `stopping` is set. False when a key lives in two partitions, so that the
    store can't be built this way; the folder must then be deleted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    jobs = _jobs(connection, identity, folder, start=start, stop=stop, memory_mb=memory_mb)
    results = _work(jobs, progress, stopping)
    if results is None:
        return False
    states = {p: partition_state_at(end, log_start=start[p], caught_up_at=now_ms()) for p, end in stop.items()}
    for result in results:
        for partition, fold in result.partitions.items():
            states[partition] = states[partition]._replace(
                leader_epoch=fold.leader_epoch,
                epoch_end=fold.epoch_end,
                live_rows=fold.live_rows,
                poison_rows=fold.poison_rows,
                caught_up_at=result.began_ms,
                # Workers do not check for missing offsets, so one may have been missing.
                holes=True,
            )
    return _taken_over(folder, identity, [Path(job.file) for job in jobs], states)


def _jobs(
    connection: Connection, identity: Identity, folder: Path, *, start: Position, stop: Position, memory_mb: int
) -> list[Job]:
    shares = spread({p: stop[p] - start[p] for p in stop if start[p] < stop[p]}, usable_cpus())
    return [
        Job(
            owner=os.getpid(),
            bootstrap_servers=connection.bootstrap_servers,
            properties=dict(connection.properties),
            patience_s=connection.patience_s,
            topic=identity.topic,
            start={p: start[p] for p in share},
            stop={p: stop[p] for p in share},
            value_codec=identity.value_codec,
            memory_bytes=memory_mb * 1024 * 1024 // len(shares),
            file=str(folder / f"rows-{number}.fold"),
        )
        for number, share in enumerate(shares)
    ]


def spread(to_read: Mapping[int, int], workers: int) -> list[list[int]]:
    """The partitions in at most `workers` shares, with about equally many offsets to read."""
    shares: list[list[int]] = [[] for _ in range(min(workers, len(to_read)))]
    sizes = [0] * len(shares)
    for partition in sorted(to_read, key=lambda p: (-to_read[p], p)):
        least = sizes.index(min(sizes))
        shares[least].append(partition)
        sizes[least] += to_read[partition]
    return shares


def usable_cpus() -> int:
    # On Linux only the CPUs that this process may use.
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _taken_over(folder: Path, identity: Identity, files: list[Path], states: Mapping[int, PartitionState]) -> bool:
    """Makes the store, and says whether it has all rows: of a key in two files only one row is left."""
    store = Store(folder, readable=readable_by(codec_named(identity.value_codec)))
    try:
        store.declare(identity)
        store.ingest([file for file in files if file.exists()], states)
        if store.count_keys() < len(store):
            return False
        store.flush()
    finally:
        store.close()
    return True


def _work(jobs: list[Job], progress: Callable[[int, int], None], stopping: threading.Event) -> list[Folded] | None:
    """The result of each worker, or None as soon as one has found a key in two partitions."""
    total = sum(end - job.start[p] for job in jobs for p, end in job.stop.items())
    passed, results = [0] * len(jobs), dict[int, Folded]()
    messages: queue.SimpleQueue[tuple[int, WorkerMessage]] = queue.SimpleQueue()
    with _workers(jobs, messages):
        while len(results) < len(jobs):
            if stopping.is_set():
                raise Stopped
            try:
                number, message = messages.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            match message:
                case Passed(offsets):
                    passed[number] = offsets
                    progress(sum(passed), total)
                case Folded():
                    results[number] = message
                case Split():
                    return None
                case Failed(kind, text):
                    raise ERRORS[kind](text)
    return [results[number] for number in range(len(jobs))]


@contextmanager
def _workers(jobs: list[Job], messages: queue.SimpleQueue[tuple[int, WorkerMessage]]) -> Iterator[None]:
    """Runs the jobs; `messages` gets each message with the number of its worker. No worker outlives the block."""
    workers: list[subprocess.Popen[bytes]] = []
    listeners: list[threading.Thread] = []
    try:
        for number, job in enumerate(jobs):
            # Never multiprocessing: it would import the user's program again, and rocksdict hangs after a fork.
            worker = subprocess.Popen(
                # -P: no file of the current folder is taken for a module.
                [sys.executable, "-P", "-m", "lastword.replica.building.fold_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Ctrl-C reaches the whole foreground group; ending is the owner's decision.
                process_group=0,
                umask=0o077,
            )
            workers.append(worker)
            listener = threading.Thread(target=_listen, args=(number, job, worker, messages), daemon=True)
            listener.start()
            listeners.append(listener)
        yield
    finally:
        for worker in workers:
            worker.kill()
        for listener in listeners:
            listener.join()
        for worker in workers:
            worker.wait()
            for pipe in filter(None, (worker.stdin, worker.stdout)):
                with suppress(BrokenPipeError):
                    pipe.close()


def _listen(
    number: int, job: Job, worker: subprocess.Popen[bytes], messages: queue.SimpleQueue[tuple[int, WorkerMessage]]
) -> None:
    assert worker.stdin is not None  # noqa: S101
    assert worker.stdout is not None  # noqa: S101
    # Its input stays open: the worker ends when this end of the pipe is closed.
    with suppress(BrokenPipeError):
        worker.stdin.write(msgspec.json.encode(job) + b"\n")
        worker.stdin.flush()
    for line in worker.stdout:
        message = msgspec.json.decode(line, type=WorkerMessage)
        messages.put((number, message))
        if not isinstance(message, Passed):
            return
    status = worker.wait()
    how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
    text = f"a process that reads {job.topic} {how} in the middle of its work: free some memory if that was short"
    messages.put((number, Failed(LastwordError.__name__, f"{text}, and try again")))

"""The metrics for Prometheus: the status of each table, requests and streams. No key is ever a label."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from lastword.core.position import Position
from lastword.replica.reads import TableReads
from lastword.serve.changes.change_streams import Streams
from lastword.serve.guest import Guest
from lastword.serve.http.answers import Answer, Refused
from lastword.serve.tables.row_streams import RowStreams
from lastword.serve.tables.served_table import ServedTable

_BUCKETS_S = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_TEXTS = [*(str(bound) for bound in _BUCKETS_S), "+Inf"]


class Requests:
    """How many requests there were and how long they took, counted as cheaply as possible."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, int]] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(_TEXTS))

    def note(self, route: str, method: str, status: int, seconds: float) -> None:
        self.counts[route, method, status] += 1
        self.seconds[route] += seconds
        self.buckets[route][bisect_left(_BUCKETS_S, seconds)] += 1


class Metrics(Collector):
    """The answer to `/metrics`, made for each request."""

    def __init__(
        self,
        tables: Iterable[ServedTable],
        requests: Requests,
        streams: Streams,
        row_streams: RowStreams,
        guests: Iterable[Guest] = (),
    ) -> None:
        self._tables = tables
        self._requests = requests
        self._streams = streams
        self._row_streams = row_streams
        self._guests = guests
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def answer(self) -> Answer:
        headers = [("content-type", CONTENT_TYPE_LATEST), ("x-content-type-options", "nosniff")]
        return Answer(200, headers, generate_latest(self._registry))

    def collect(self) -> Iterator[Metric]:
        yield from self._of_tables()
        yield from self._of_requests()
        yield GaugeMetricFamily("lastword_streams", "Open change streams.", value=self._streams.open)
        under_way = len(self._row_streams.open)
        yield GaugeMetricFamily("lastword_row_streams", "Answers with all rows that are under way.", value=under_way)
        cut = CounterMetricFamily("lastword_streams_cut", "Change streams that the server ended.", labels=["reason"])
        rows_cut = CounterMetricFamily(
            "lastword_row_streams_cut", "Answers with all rows that the server cut off.", labels=["reason"]
        )
        for metric, reasons in ((cut, self._streams.cut), (rows_cut, self._row_streams.cut)):
            for reason, count in reasons.items():
                metric.add_metric([reason], count)
            yield metric
        for guest in self._guests:
            yield from guest.metrics()

    def _of_tables(self) -> Iterator[Metric]:
        ready = GaugeMetricFamily("lastword_ready", "1 when the table is ready, else 0.", labels=["table"])
        rows = GaugeMetricFamily("lastword_rows", "Live keys of the table.", labels=["table"])
        lag = GaugeMetricFamily("lastword_lag_offsets", "Offsets that the topic is ahead.", labels=["table"])
        position = GaugeMetricFamily(
            "lastword_position", "The next offset to read of a partition.", labels=["table", "partition"]
        )
        applied = CounterMetricFamily(
            "lastword_applied_records", "Records applied since the store was opened.", labels=["table"]
        )
        poison = GaugeMetricFamily("lastword_poison_rows", "Rows whose value the codec can't read.", labels=["table"])
        damages = CounterMetricFamily(
            "lastword_store_damages", "How often the table's store was found damaged and built again.", labels=["table"]
        )
        for table in self._tables:
            ready.add_metric([table.name], table.replica.state.name == "ready")
            damages.add_metric([table.name], table.replica.damages_found)
            if (behind := table.lag) is not None:
                lag.add_metric([table.name], behind)
            try:
                at, count, records, unread = table.ask(_numbers)
            except Refused:
                continue  # a table that can't be read has no numbers
            rows.add_metric([table.name], count)
            applied.add_metric([table.name], records)
            poison.add_metric([table.name], unread)
            for partition, offset in at.items():
                position.add_metric([table.name, str(partition)], offset)
        yield from (ready, rows, lag, position, applied, poison, damages)

    def _of_requests(self) -> Iterator[Metric]:
        counts = CounterMetricFamily("lastword_requests", "Requests answered.", labels=["route", "method", "status"])
        for (route, method, status), count in self._requests.counts.items():
            counts.add_metric([route, method, str(status)], count)
        took = HistogramMetricFamily(
            "lastword_request_seconds", "From a request to its answer; of a stream, to its begin.", labels=["route"]
        )
        for route, buckets in self._requests.buckets.items():
            counts_up_to = list(zip(_TEXTS, accumulate(buckets), strict=True))
            took.add_metric([route], counts_up_to, sum_value=self._requests.seconds[route])
        yield from (counts, took)


def _numbers(reads: TableReads) -> tuple[Position, int, int, int]:
    return reads.position, len(reads), reads.applied_records, reads.poison_rows

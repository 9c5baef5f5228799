"""The requests about the cluster and its topics."""

from __future__ import annotations

from lastword.serve.cluster.cluster_answers import ServedCluster
from lastword.serve.http.answers import Answer, Refused
from lastword.serve.http.queries import NoQuery
from lastword.serve.http.requests import Request
from lastword.serve.tables.row_streams import OffLoop


class ClusterRequests:
    """Refuses every request when the server has no cluster to watch."""

    def __init__(self, cluster: ServedCluster | None, off_loop: OffLoop) -> None:
        self._cluster = cluster
        self._off_loop = off_loop

    async def read_cluster(self, _request: Request, _query: NoQuery) -> Answer:
        return self._served().answer()

    async def read_topic(self, _request: Request, _query: NoQuery, topic: str) -> Answer:
        answer: Answer = await self._off_loop(self._served().topic_answer, topic)
        return answer

    async def compact(self, _request: Request, _query: NoQuery, topic: str) -> Answer:
        answer: Answer = await self._off_loop(self._served().compact, topic)
        return answer

    def _served(self) -> ServedCluster:
        if self._cluster is None:
            raise Refused(
                "no_such_route", "this server does not watch the cluster", "use a server that  lastword serve  started"
            )
        return self._cluster

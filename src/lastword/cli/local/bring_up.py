"""`up` with all its parts: brought up and waited for, attended in the foreground, and ended in order."""

from __future__ import annotations

import argparse
import os
import signal
import time
from contextlib import ExitStack, closing, nullcontext, suppress
from typing import TYPE_CHECKING

from lastword.cli import cluster_choice
from lastword.cli.local import this_machine
from lastword.cli.local.try_commands import print_try
from lastword.cli.local.up_status import locked_line
from lastword.cli.output import note
from lastword.cli.progress_line import ProgressLine
from lastword.core.errors import BadInput, LastwordError
from lastword.core.home import default_home, default_jars
from lastword.demo.people import TABLE

if TYPE_CHECKING:
    from lastword.kafka.broker.cluster_start import Started
    from lastword.pipeline.plan.plan import Pipeline
    from lastword.pipeline.running.takeover import Choice
    from lastword.teams.parts import Choices
    from lastword.teams.scenario import TeamsScenario
    from lastword.up.http_tokens import HttpTokens

# Spark alone may take a minute on a machine that has much to do.
_READY_S = 300.0


class Everything:
    """The cluster and the parts, as the verbs `up` and `down` see them."""

    def __init__(self) -> None:
        self._progress = ProgressLine()
        self._cluster = this_machine.local_cluster(cluster_choice.DEFAULT_CLUSTER, self._progress.line)
        self._upkeep = this_machine.upkeep(self._progress)
        # The claim of this process on the parts: they end when it is closed.
        self._ownership = ExitStack()
        self._is_ours = False
        self._is_ready = False

    def up(self, args: argparse.Namespace) -> int:
        if args.detach:
            self._bring_up(args)
            return 0
        with self._ownership:
            try:
                self._bring_up(args)
                if self._is_ours:
                    print("\nCtrl-C ends it all.", flush=True)
                    self._attend()
                else:
                    print("\nIt was running already and keeps running; end it with  lastword down")
            except BaseException as reason:
                if self._is_ours:
                    self._end_ours()
                if not (self._is_ready and isinstance(reason, KeyboardInterrupt)):
                    raise
        return 0

    def end(self) -> None:
        """Ends the parts, then the cluster if an `up` started it, and says what ran."""
        # Without a folder nothing was ever started, and `turn` would make the folder.
        with self._upkeep.turn() if self._upkeep.folder.is_dir() else nullcontext():
            ended = self._upkeep.end(self._after_end_of)
            stopped = self._cluster.stop() if self._upkeep.wanted.ends_cluster else ()
            self._upkeep.disclaim_cluster()
        self._progress.clear()
        if ended:
            print(f"ended {', '.join(ended)}")
        if stopped:
            print(f"{len(stopped)} broker(s) stopped")
        runs_on = any(broker.pid for broker in self._cluster.status())
        if not ended and not stopped:
            print(
                "nothing that  lastword up  started was running"
                if runs_on
                else f"nothing was running in {default_home()}"
            )
        if runs_on:
            print(
                f"cluster {self._cluster.name} keeps running: it was not started by  lastword up ; stop it with  "
                "lastword broker stop"
            )

    def _bring_up(self, args: argparse.Namespace) -> None:
        from lastword.teams.parts import pipeline
        from lastword.up.parts_ready import await_ready
        from lastword.up.scenario import desired_state

        plan = pipeline()
        with self._upkeep.turn():
            choices = self._choices(args)
            is_running = self._upkeep.is_running
            if not args.detach and not is_running:
                self._ownership.enter_context(self._upkeep.owned())
                self._is_ours = True
            self._upkeep.claim_cluster(self._cluster)
            began = self._cluster.start(port=args.port, security=this_machine.security(args))
            self._progress.clear()
            tell_start(began)
            rows = self._make_topics(plan)
            if args.begin is not None:
                self._begin_at(args.begin, plan)
            # Parts of an `up` in another foreground still belong to it, even with other choices.
            is_owned = self._upkeep.is_owned if is_running else self._is_ours
            scenario = self._scenario(choices)
            self._upkeep.start(desired_state(self._cluster, scenario, is_owned=is_owned), _environment())
        with closing(scenario):
            await_ready(self._upkeep, scenario, within_s=_READY_S, on_progress=self._progress.step, report=self._report)
        self._is_ready = True
        self._progress.clear()
        print(f"ready: table {TABLE} with {rows} rows at {began.bootstrap_servers}, {scenario.summary()}")
        tokens = self._tokens()
        if tokens.file is not None:
            print(locked_line(tokens.file, self._cluster.client_file))
        print_try(scenario.suggestions())

    def _choices(self, args: argparse.Namespace) -> Choices:
        """The choices of this run; BadInput if another process has its HTTP port."""
        from lastword.processes.ports import PortPicker, await_free
        from lastword.teams.parts import SERVE, Choices

        known = self._upkeep.wanted
        http_port = args.http_port
        if http_port == 0:
            with PortPicker() as ports:
                http_port = ports.free()
        given = {"http_port": http_port, "rate": args.rate}
        choices = Choices.of(known, given, is_running=self._upkeep.is_running)
        is_served_there = self._upkeep.part(SERVE).pid and known.choices.get("http_port") == choices.http_port
        if not is_served_there and not await_free(choices.http_port, self._progress.line):
            raise BadInput(
                f"port {choices.http_port} is taken by another process: choose another for HTTP with --http-port, or "
                "--http-port 0 for a free one"
            )
        return choices

    def _make_topics(self, plan: Pipeline) -> int:
        """The number of profiles."""
        from lastword.demo.demo_topics import fill_profiles
        from lastword.pipeline.running.own_topics import make_own_topics
        from lastword.teams.users.fraud_topics import make_fraud_topics
        from lastword.teams.users.user_topic import ensure_first_users

        self._progress.step("making topics")
        connection = self._cluster.connection
        make_fraud_topics(connection)
        ensure_first_users(connection)
        make_own_topics(connection, plan)
        return fill_profiles(connection)

    def _tokens(self) -> HttpTokens:
        from lastword.up.http_tokens import http_tokens

        return http_tokens(self._upkeep.folder, is_locked=self._cluster.client_file is not None)

    def _scenario(self, choices: Choices) -> TeamsScenario:
        from lastword.teams.scenario import TeamsScenario

        return TeamsScenario(choices, self._tokens(), profiles=TABLE)

    def _begin_at(self, choice: Choice, plan: Pipeline) -> None:
        """Once, and not at each start of the pipeline: a later start would skip records that expired meanwhile."""
        from lastword.pipeline.running.takeover import new_owner, take_over

        taken = take_over(self._cluster.connection, plan, owner=new_owner(), choice=choice)
        for line in taken.skipped:
            self._report(line)

    def _attend(self) -> None:
        """Reports ends and restarts until another command stops everything."""
        from lastword.up.control import Ends

        ends = Ends(self._upkeep)
        while self._upkeep.wanted.is_wanted:
            for part in ends.news():
                self._report(f"{part.last_end}: starting it again")
            time.sleep(0.5)
        self._is_ours = False
        print("ended by another command", flush=True)

    def _report(self, line: str) -> None:
        self._progress.clear()
        note(line)

    def _end_ours(self) -> None:
        # The end takes a bounded time, and an interrupted end would leave some parts running.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self._progress.clear()
        print("stopping", flush=True)
        self.end()

    def _after_end_of(self, part: str) -> None:
        from lastword.teams.parts import Choices

        # An error of the scenario must not keep the other parts from stopping.
        with suppress(LastwordError), closing(self._scenario(Choices(**self._upkeep.wanted.choices))) as scenario:
            scenario.after_end_of(part, self._upkeep)


def tell_start(began: Started) -> None:
    for warning in began.warnings:
        note(warning)
    if began.recovery is not None:
        print(began.recovery)
    if began.started:
        print(f"Kafka started in {began.seconds:.1f} s", flush=True)


def _environment() -> dict[str, str]:
    """For the parts: this process's variables with absolute folders, except those that name another cluster."""
    home = default_home()
    own = {name: text for name, text in os.environ.items() if name not in _OTHER_CLUSTERS}
    return {**own, "LASTWORD_HOME": str(home), "LASTWORD_JARS": str(default_jars(home))}


_OTHER_CLUSTERS = ("LASTWORD_CONFIG", "LASTWORD_BOOTSTRAP_SERVERS")

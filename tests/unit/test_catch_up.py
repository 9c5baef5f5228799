"""When a session is ready: goals, late arrivals and open transactions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lastword.replica.catch_up import CatchUp
from lastword.replica.store.row_layout import PartitionState
from lastword.replica.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path, readable=lambda _: True)
    store.apply([], {0: PartitionState(position=0), 1: PartitionState(position=0)})
    yield store
    store.close()


def arrive(made: CatchUp, store: Store, partition: int, position: int, stable_end: int) -> None:
    store.apply([], {partition: PartitionState(position=position)})
    made.note(partition, stable_end)


def test_a_table_is_as_ready_as_its_least_ready_partition(store: Store) -> None:
    made = CatchUp("t", store, 30)
    made.expect({0: 5, 1: 5})
    arrive(made, store, 0, 5, 5)
    state = made.state()
    assert (state.name, state.done, state.total) == ("catching-up", 5, 10)
    arrive(made, store, 1, 7, 5)
    assert made.state().name == "ready"


def test_goals_that_took_long_to_reach_are_asked_for_again_but_not_for_ever(store: Store) -> None:
    made = CatchUp("t", store, 30, fresh_s=-1.0)
    for end in (1, 2):
        made.expect({0: end})
        arrive(made, store, 0, end, end)
        assert (made.wants_new_goals, made.state().name) == (True, "catching-up")
    made.expect({0: 3})
    arrive(made, store, 0, 3, 3)
    assert (made.wants_new_goals, made.state().name) == (False, "ready")
    made.start_over({0: 4})
    arrive(made, store, 0, 4, 4)
    assert made.wants_new_goals


def test_an_open_transaction_is_named_and_waited_for_only_so_long(store: Store) -> None:
    made = CatchUp("t", store, 0.0)
    made.expect({0: 9})
    arrive(made, store, 0, 5, 5)
    state = made.state()
    assert (state.name, "open in t[0] since offset 5" in str(state.why)) == ("ready", True)
    arrive(made, store, 0, 9, 9)
    assert made.state().why is None

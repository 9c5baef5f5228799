"""Spark's trees, as Catalyst (its optimizer) has them in the JVM: plans of queries, and expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any


def items(sequence: Any) -> Iterator[Any]:
    """The items of a sequence of Scala's."""
    return (sequence.apply(index) for index in range(sequence.size()))


def children(node: Any) -> Iterator[Any]:
    return items(node.children())


def nodes_of(tree: Any, below: Callable[[Any], Iterable[Any]] = children) -> Iterator[Any]:
    """Every node of a tree, from the root down; `below` gives the nodes directly below a node."""
    yield tree
    for node in below(tree):
        yield from nodes_of(node, below)


def class_name(node: Any) -> str:
    """The name of the node's class, without its package."""
    return str(node.getClass().getName()).rpartition(".")[2].rstrip("$")

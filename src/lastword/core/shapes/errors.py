"""The shape of every refusal over HTTP, and the short form that the short routes use."""

from __future__ import annotations

from msgspec import Struct


class ErrorBody(Struct, frozen=True):
    """`code` is for programs, the message and the hint are for people."""

    code: str
    message: str
    hint: str


class ErrorAnswer(Struct, frozen=True):
    error: ErrorBody


class ShortErrorAnswer(Struct, frozen=True):
    """The message alone."""

    error: str

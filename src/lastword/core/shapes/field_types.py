"""Types that many shapes share: counts, times, rates, positions, base64, headers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

_INT64 = {"format": "int64"}
_PARTITION_AND_OFFSET = "[0-9]{1,19}:[0-9]{1,19}"
_BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"

Count = Annotated[int, Meta(ge=0, extra_json_schema=_INT64)]
# Kafka has -1 where a record has no time.
TimeMs = Annotated[int, Meta(ge=-1, description="In ms.", extra_json_schema=_INT64)]
Rate = Annotated[float, Meta(ge=0)]
Int64 = Annotated[
    int,
    Meta(
        ge=-(2**63),
        le=2**63 - 1,
        description="Written without a fraction or an exponent.",
        extra_json_schema=_INT64,
    ),
]
PositionText = Annotated[
    str,
    Meta(
        pattern=f"^({_PARTITION_AND_OFFSET}(,{_PARTITION_AND_OFFSET})*)?$",
        description="For each partition the offset of the next record: everything before it is meant.",
        examples=["0:18,1:5,2:9"],
    ),
]
Base64Text = Annotated[str, Meta(pattern=_BASE64, extra_json_schema={"contentEncoding": "base64"})]


class Base64(Struct, frozen=True, forbid_unknown_fields=True):
    """A header's value that is not UTF-8 text."""

    base64: str


HeadersJson = list[tuple[str, str | Base64 | None]]

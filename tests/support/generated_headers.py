"""Headers of generated records: most records have none, names repeat, values are any bytes or null."""

from __future__ import annotations

from hypothesis import strategies as st

from lastword.core.record import Headers

_names = st.sampled_from(["", "a", "trace", "ü"]) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4
)
_values = st.none() | st.sampled_from([b"", b"text", b"\xff\x00", b"\x00" * 300]) | st.binary(max_size=8)

headers: st.SearchStrategy[Headers] = st.just(()) | st.lists(st.tuples(_names, _values), max_size=3).map(tuple)

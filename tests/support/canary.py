"""A fake password: a place that shows it would also show a real one."""

from __future__ import annotations

CANARY = "canary-7f3a91c4"

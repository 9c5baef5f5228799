"""A password that is no password: whatever shows it would show a real one."""

from __future__ import annotations

CANARY = "canary-7f3a91c4"

"""The badges of a team. A team that has earned a badge keeps it, with the time."""

from __future__ import annotations

CONNECTED, FIRST_ACTION, SHARED_WORK, FIRST_STATS = "connected", "first_action", "shared_work", "first_stats"

# In the order in which they are shown.
SYMBOLS: dict[str, str] = {
    CONNECTED: "🔌",
    FIRST_ACTION: "📤",
    SHARED_WORK: "⚖️",
    FIRST_STATS: "📊",
}

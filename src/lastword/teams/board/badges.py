"""The badges that a team earns: once earned they are kept, with the time."""

from __future__ import annotations

CONNECTED, FIRST_ACTION, SHARED_WORK, FIRST_STATS = "connected", "first_action", "shared_work", "first_stats"

# In the order in which they are shown.
SYMBOLS: dict[str, str] = {
    CONNECTED: "🔌",
    FIRST_ACTION: "📤",
    SHARED_WORK: "⚖️",
    FIRST_STATS: "📊",
}

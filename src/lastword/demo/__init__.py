"""Scenarios that play themselves: read `people` (who they are about), then `profiles` (the story)."""

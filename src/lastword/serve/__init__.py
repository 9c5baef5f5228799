"""HTTP over one or more replicas.

The inner rooms in reading order: `http`, `tables`, `changes`, `cluster`, `openapi`. Then `guest` (what another
room adds), `metrics`, `service` (a request in, an answer out), `server` (granian) and `running` (several tables in one
process).
"""

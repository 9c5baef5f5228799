"""HTTP over one or more replicas.

The inner rooms in reading order: `http`, `tables`, `changes`, `cluster`, `openapi`. Then `guest` (what another room
adds), `metrics`, `server_status` (health, readiness), `route_table` (every route), `service` (a request in, an answer
out), `server` (granian) and `running` (several tables in one process).
"""

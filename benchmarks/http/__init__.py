"""The benchmark `http`: point reads beside FastAPI and nginx, reads under writes, freshness and change streams.

Read `benchmark` (the order of the measurements), `servers` (who answers), `wrk` with `point_reads.lua` (who asks),
`freshness` and `change_readers` (each a process) and `report` (figures, targets and the text of the page).
"""

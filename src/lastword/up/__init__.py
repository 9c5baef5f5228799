"""What `lastword up` runs: each part a process of its own, kept by a supervisor.

Read `wanted` (what should run, on disk), `health` (how a part has fared), `keeping` (one part that is started again),
`supervisor` (the process that keeps them all), `upkeep` (starting, ending and asking, from the command line), then
`teams` (the parts of the fraud scenario) and `readiness` (when they are ready).
"""

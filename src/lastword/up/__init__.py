"""What `lastword up` runs: each part a process of its own, kept by a supervisor.

Read in this order: `desired_state`, `http_tokens`, `part_health`, `part_supervisor`, `supervisor`, `control`,
`scenario`, `parts_ready`.
"""

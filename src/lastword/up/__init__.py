"""What `lastword up` runs: each part is a process, and a supervisor keeps it running.

Read in this order: `desired_state`, `http_tokens`, `part_health`, `part_supervisor`, `supervisor`, `control`,
`scenario`, `parts_ready`.
"""

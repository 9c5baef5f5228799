"""The local cluster: its files, its processes, its security and users.

Read in this order:

- `local_cluster` (start, stop, status); `start_request` (which cluster a start asks for), `cluster_start` (one start)
- `cluster_files` (all that is on disk), `broker_process` (format, launch, stop), `readiness`, `broker_log`
- `first_start` makes the class archive of Kafka on a new machine
- `security` (passwords, who is let in), `certificates`, `users` (accounts and rights), `logins` (for other clients)
"""

"""The local cluster: its files, its processes, its security and users.

Read in this order: `broker_log`, `certificates`, `security`, `cluster_files`, `broker_process`, `logins`,
`readiness`, `local_cluster`, `first_start`, `users`.
"""

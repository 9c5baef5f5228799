"""Changes over HTTP: server-sent events, made once for all subscribers, and resumed by position.

Read in this order: `events`, `broadcast`, `subscription`, `change_streams`, `snapshot_stream`, `change_requests`.
"""

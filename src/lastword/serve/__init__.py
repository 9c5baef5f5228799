"""HTTP over one or more replicas.

Read in this order: limits, answers, routes, keys; writes, tables, rows, pages, standing, waiting for reads and writes;
events, broadcast, listening, streams, outlet for changes; tokens, compression, metrics, access; service, server,
running. `compare` is a client: client, sides, explaining, merging, comparing.
"""

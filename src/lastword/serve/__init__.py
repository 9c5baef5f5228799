"""HTTP over one or more replicas.

Read in this order: limits, answers, routes, keys; writes, tables, rows, pages, standing, waiting for reads and writes;
events, broadcast, listening, streams, outlet for changes; bodies, tokens, compression, metrics, access; openapi;
service, server, running. `compare` is a client: client, sides, explaining, merging, comparing.
"""

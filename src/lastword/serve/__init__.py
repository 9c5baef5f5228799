"""HTTP over one or more replicas.

Read in this order: limits, answers, routes, keys, writes, tables, rows, pages, standing, openapi, service, server,
running.
The other side, for `lastword compare`: client, explaining, sides, merging, comparing.
"""

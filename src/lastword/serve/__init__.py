"""HTTP over one or more replicas.

Read in this order: limits, answers, routes, keys, writes, tables, rows, pages, standing, openapi, service, server,
running.
"""

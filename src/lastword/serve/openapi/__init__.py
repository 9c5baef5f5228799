"""The service as an OpenAPI document.

Read in this order: `schemas`, `operations`, `change_paths`, `cluster_paths`, `console_paths`, `document`.
"""

"""Spark SQL over topics, and a table as files.

Read in this order: `as_text`, `export_folder`, `remote_folder`, `export`, `statements`, `query_reach`, `sql`.
"""

"""Spark SQL over topics, and a table as files.

Read in this order:

- a query: `sql`, `statements` (only statements that read), `query_reach` (what a query may reach: topics, no files)
- its rows: `rows_as_text` (rows as JSON lines, CSV, cells)
- a table as files: `export`, `export_folder` (on local disk, by rename), `remote_folder` (behind a URL)
"""

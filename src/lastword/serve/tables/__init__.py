"""Tables over HTTP: rows, pages, counts, writes, waiting for a position.

Read in this order: `keys`, `writes`, `served_table`, `position_wait`, `row_answer`, `pages`, `row_streams`,
`table_status`, `table_requests`.
"""

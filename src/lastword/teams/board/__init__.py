"""The board of the teams: exact counts of their records, and the records that were refused.

Read in this order: `board_shapes`, `board_topics`, `judging`, `rates`, `side_topic`, `tally`, `board_rows`, `presence`,
`group_watch`, `ranking`, `reader_view`, `registering`, `source`, `status_source`, `board_session`,
`live`.
"""

"""The board of the teams: what they have done, counted exactly, and what of theirs was refused.

Read in this order: `badges`, `board_topics`, `judging`, `rates`, `side_topic`, `tally`, `board_rows`, `presence`,
`group_watch`, `ranking`, `reader_view`, `registering`, `source`, `board_session`, `live`.
"""

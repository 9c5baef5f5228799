"""The board of the teams: what they have done, counted exactly, and what of theirs was refused.

Read in this order: `judging` (what a record must be), `tally` (the fold), `rows` (what is kept of it in `board_state`),
`shown` (the same for a reader beside the writer), `presence` and `outside` (who is there now), `ranking` (the board),
and `source`, `session` and `live`, which do it all the time. `registering` gives an outside team its place.
"""

"""The verbs of the fraud scenario: `board`, `team`.

Read in this order: `board_drawing`, `board`, `team`.
"""

"""The fraud scenario: generated users, a pipeline with a rule for each team, and their board.

Read in this order: `parts`.
"""

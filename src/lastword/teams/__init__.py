"""The fraud scenario: generated users, a pipeline with a rule for each team, and their board.

The inner rooms in reading order: `users`, `board`, `serving`. Then `parts`, `scenario`.
"""

"""What lastword is measured against: each file is a program of its own, short enough to check by reading it."""

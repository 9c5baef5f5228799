"""Scenarios that play themselves.

Read in this order: `people`, `demo_topics`, `profiles`.
"""

"""Demo scenarios: the profile store step by step, and the topics of the fraud scenario.

Read in this order: `people` (the ten users), `demo_topics`, `profiles` (the scenario).
"""

"""Generated users, and the topics of the fraud scenario.

Read in this order: `pace`, `user_words`, `generated_users`, `fraud_topics`, `user_topic`.
"""

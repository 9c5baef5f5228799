"""Generated users, and how they come to their topic.

Read in this order: `pace`, `user_words`, `generated_users`, `fraud_topics`, `user_topic`.
"""

"""Scenarios that play themselves, and generated users.

Read `people` (who the first is about), then `profiles` (the story); `user_words` and `users` (who they are), then
`pace` and `user_topic` (how they come to Kafka); `topics` (what is made for all of them).
"""

"""Connections, reading, writing, transactions, following a topic, consumer groups.

Read in this order: `connection`, `groups`, `live_settings`, `group_members`, `messages`, `bounded_read`, `feed`,
`reading`, `same_topic`, `write_failures`, `writing`, `loading`, `transactions`.
"""

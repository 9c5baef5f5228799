"""Connections, reading, writing, transactions, following a topic, consumer groups.

Read in this order:

- `connection` makes every client; `client_errors` translates their errors; `admin_types` has the types of admin clients
- `messages` (as records), `bounded_read` (up to a captured end), `reading` (log, fold, follow), `feed` (for a replica)
- `same_topic` (was the topic deleted and made again?), `write_failures`, `writing`, `loading` (a file), `transactions`
- `live_settings` (of topics and brokers, in force now), `groups` (commits), `group_members` (how far each group is)
"""

"""The cluster over HTTP: brokers, topics, pipelines, counting a topic and compacting one.

Read in this order: `pipelines`, `samples`, `cluster_watch`, `topic_compactions`, `topic_counts`, `topic_answers`,
`cluster_answers`, `cluster_requests`.
"""

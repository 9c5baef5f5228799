"""A pipeline that runs: the driver, its takeover, the tasks and their transactions, its status.

Read in this order: `output_topics`, `own_topics`, `parallel`, `progress`, `counter_tables`, `pipeline_status`,
`source`, `isolation`, `source_ends`, `status_reports`, `takeover`, `transaction_buffer`, `task`, `batch_frames`,
`driver`.
"""

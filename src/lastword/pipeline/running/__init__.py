"""A pipeline that runs: the driver, its takeover, the tasks and their transactions, its status.

Read in this order:

- the start: `driver` (batch after batch, and restarts), `takeover` (from the driver before), `own_topics`
- a batch: `source_ends`, `source` (which offsets each task reads), `batch_frames` (one plan for all batches),
  `isolation` (the search for a record that fails its task), `parallel` (threads)
- the exactly-once commit: `commit_task` (results and progress in one transaction), `transaction_buffer`,
  `output_topics`, `progress` (the checkpoint in the changelog)
- what others see: `counter_tables`, `pipeline_status`, `status_reports` (to `{app}-status` every two seconds)
"""

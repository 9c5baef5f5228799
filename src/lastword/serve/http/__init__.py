"""HTTP itself: requests and answers, routes, limits, tokens, the access log, slow readers.

Read in this order: `error_codes`, `answers`, `limits`, `queries`, `unsent_answers`, `host_check`, `requests`,
`backpressure`, `routes`; then `tokens`, `bodies`, `compression`, `etags`, `console_files`, `access_log`.
"""

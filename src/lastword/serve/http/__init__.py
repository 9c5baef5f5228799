"""HTTP itself: requests and answers, limits, tokens, the access log, slow readers.

Read in this order: `access_log`, `error_codes`, `answers`, `backpressure`, `etags`, `compression`, `console_files`,
`host_check`, `limits`, `bodies`, `routes`, `tokens`, `unsent_answers`.
"""

"""What everything else is made of: records, positions, the reference fold, codecs, rows as JSON, errors, the home.

Read in this order: `clock`, `durable`, `errors`, `home`, `http_client`, `key_partition`, `nearest`, `codecs`,
`position`, `record`, `fold`, `headers`, `row`, `row_json`, `split_keys`.
"""

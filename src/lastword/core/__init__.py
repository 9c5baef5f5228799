"""What every other room uses: records, positions, the reference fold, codecs, rows as JSON, errors, the home.

Read in this order:

- the law: `record`, `position`, `fold` (the reference), `split_keys` (a key in two partitions), `key_partition`
- bytes and text: `codecs` (string, json, bytes, int), `headers`, `row` (for Python), `row_json` (rows as JSON lines)
- errors and exit codes: `errors`, `nearest` (did you mean ...?)
- the machine: `home` (the folder of all that lastword keeps), `durable` (files by rename), `clock`, `rates`,
  `http_client`
- the inner room `shapes`: what is sent or kept as JSON
"""

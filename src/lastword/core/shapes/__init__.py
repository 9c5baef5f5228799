"""The shapes of what is sent or kept as JSON: one msgspec Struct each, imported by its writer and its readers.

Read `field_types` first, then any of `errors`, `rows`, `tables`, `topics`, `cluster`,
`pipeline_status` (the row of `{app}-status`). `json_text` has Structs as text that people read, too.
The Structs of files are beside the code that writes the files.
A field that may be missing has the type `UnsetType`; every other field is always sent.
"""

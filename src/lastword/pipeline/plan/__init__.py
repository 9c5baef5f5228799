"""A pipeline as data, and the file that describes it.

Read in this order: `plan`, `plan_file` (reads the TOML), `plan_names` (illegal and repeated names), `toml_lines` (the
line of each key), `mistakes`.
"""

"""What a pipeline does, and the file that says it.

Read in this order: `mistakes`, `plan`, `toml_lines`, `plan_names`, `plan_file`.
"""

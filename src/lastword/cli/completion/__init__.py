"""The verb `completion`: scripts with which bash, zsh and fish complete the command line, made from its parsers.

Read in this order: `command_tree` (the parsers as plain data), `bash_script`, `zsh_script`, `fish_script`,
`completion`.
"""

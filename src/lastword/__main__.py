"""`python -m lastword`: the command line, for a process that knows its Python and not where the command is."""

from lastword.program import run

run()

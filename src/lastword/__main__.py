"""`python -m lastword`: the command line, for a process that knows its Python and not where the command is."""

import sys

from lastword.cli import main

sys.exit(main())

"""The verb `completion`: prints the script for one shell."""

from __future__ import annotations

import argparse
import sys

from lastword.cli import options

_EXAMPLE = """\
source <(lastword completion bash)
lastword completion zsh > ~/.zfunc/_lastword
lastword completion fish > ~/.config/fish/completions/lastword.fish"""


def parser(verb: str) -> argparse.ArgumentParser:
    made = options.verb_parser(
        verb,
        "Prints a script with which a shell completes verbs, actions, options, their choices and file names.",
        _EXAMPLE,
        completion,
    )
    made.add_argument("shell", choices=["bash", "zsh", "fish"], help="the shell that reads the script")
    return made


def completion(args: argparse.Namespace) -> int:
    from lastword.cli.completion.bash_script import bash_script
    from lastword.cli.completion.fish_script import fish_script
    from lastword.cli.completion.zsh_script import zsh_script

    sys.stdout.write({"bash": bash_script, "zsh": zsh_script, "fish": fish_script}[args.shell]())
    return 0

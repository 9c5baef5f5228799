"""The script for fish: one line for each word that can be completed, with its description."""

from __future__ import annotations

from lastword.cli.completion.command_tree import Argument, Command, all_commands, verbs

_HEAD = """\
# fish completion of lastword, made by  lastword completion fish

# Succeeds if the command so far begins with these words, options apart.
function __lastword_in
    set -l words (commandline -opc)[2..]
    set -l plain (string match -v -- '-*' $words)
    test (count $plain) -ge (count $argv); and test "$plain[1..$(count $argv)]" = "$argv"
end

# Succeeds if the command so far is these words and no other, options apart.
function __lastword_at
    set -l words (commandline -opc)[2..]
    # A variable: the output of a command would have a line for each word.
    set -l plain (string match -v -- '-*' $words)
    test "$plain" = "$argv"
end

complete -c lastword -f
complete -c lastword -n __lastword_at -s h -l help -d 'show the verbs'
complete -c lastword -n __lastword_at -s V -l version -d 'show the version'
"""


def fish_script() -> str:
    lines = [_offered("", verb) for verb in verbs()]
    for command in all_commands():
        path = " ".join(command.words)
        lines += [_offered(path, action) for action in command.actions]
        lines += [_option(path, option) for option in command.options]
        lines += [_place(path, argument) for argument in command.places if argument.choices or argument.files]
    return _HEAD + "\n".join(lines) + "\n"


def _offered(path: str, command: Command) -> str:
    at = f"__lastword_at {path}".rstrip()
    return f"complete -c lastword -n {_quoted(at)} -a {command.name} -d {_quoted(command.summary)}"


def _option(path: str, option: Argument) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    # Without -f fish offers files for a value that only the user can know.
    value = f" -r{_answer(option) or ' -f'}" if option.value else ""
    return f"complete -c lastword -n '__lastword_in {path}' {names}{value} -d {_quoted(option.help)}"


def _place(path: str, argument: Argument) -> str:
    return f"complete -c lastword -n '__lastword_in {path}'{_answer(argument)}"


def _answer(argument: Argument) -> str:
    if argument.choices:
        return f" -f -a {_quoted(' '.join(argument.choices))}"
    return {"file": " -F", "folder": " -f -a '(__fish_complete_directories)'", "": ""}[argument.files]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"

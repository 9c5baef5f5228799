"""The script for bash: one function with the words of every command in `case` tables."""

from __future__ import annotations

from collections.abc import Sequence

from lastword.cli.completion.command_tree import Argument, Command, all_commands, verbs

_SCRIPT = """\
# bash completion of lastword, made by  lastword completion bash

_lastword_words() {{ COMPREPLY=($(compgen -W "$1" -- "$2")); }}

_lastword_files() {{
    local IFS=$'\\n'
    COMPREPLY=($(compgen "$1" -- "$2"))
    # For bash 4 and newer: a folder gets a slash, and a name with spaces is quoted.
    compopt -o filenames 2>/dev/null || true
}}

# $1: the command, $2: the option; succeeds if the option takes a value.
_lastword_takes_value() {{
    case "$1 $2" in
{valued}
        *) return 1 ;;
    esac
}}

_lastword() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" command="" place=0 i word
    # bash cuts --option=value into three words.
    if [[ $cur == "=" ]]; then cur=""; elif [[ $prev == "=" ]]; then prev="${{COMP_WORDS[COMP_CWORD-2]}}"; fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        word="${{COMP_WORDS[i]}}"
        if [[ $word == -* ]]; then
            if _lastword_takes_value "$command" "$word"; then
                [[ ${{COMP_WORDS[i+1]}} == "=" ]] && i=$((i + 1))
                i=$((i + 1))
            fi
            continue
        fi
        case "${{command:+$command }}$word" in
            {commands}) command="${{command:+$command }}$word" ;;
            *) place=$((place + 1)) ;;
        esac
    done
    case "$command $prev" in
{values}
    esac
    if _lastword_takes_value "$command" "$prev"; then COMPREPLY=(); return; fi
    if [[ $cur == -* ]]; then
        case "$command" in
{options}
        esac
        return
    fi
    case "$command/$place" in
{places}
        *) COMPREPLY=() ;;
    esac
}}
complete -F _lastword lastword
"""


def bash_script() -> str:
    commands = all_commands()
    return _SCRIPT.format(
        commands="|".join(f'"{" ".join(command.words)}"' for command in commands),
        valued=_valued(commands),
        values=_values(commands),
        options=_options(commands),
        places=_places(commands),
    )


def _valued(commands: Sequence[Command]) -> str:
    cases = [f'"{path} {name}"' for path, name, option in _option_names(commands) if option.value]
    return f"        {'|'.join(cases)}) ;;"


def _values(commands: Sequence[Command]) -> str:
    return "\n".join(
        f'        "{path} {name}") {answer}; return ;;'
        for path, name, option in _option_names(commands)
        if (answer := _answer(option))
    )


def _options(commands: Sequence[Command]) -> str:
    cases = [(" ".join(each.words), [name for option in each.options for name in option.names]) for each in commands]
    return "\n".join(
        f'            "{path}") _lastword_words "{" ".join(names)}" "$cur" ;;'
        for path, names in [("", ["-h", "--help", "-V", "--version"]), *cases]
    )


def _places(commands: Sequence[Command]) -> str:
    lines = [_offered((), verbs())]
    for command in commands:
        if command.actions:
            lines.append(_offered(command.words, command.actions))
        for number, argument in enumerate(command.places):
            if answer := _answer(argument):
                lines.append(f'        "{" ".join(command.words)}/{number}") {answer} ;;')
    return "\n".join(lines)


def _offered(words: Sequence[str], commands: Sequence[Command]) -> str:
    names = " ".join(command.name for command in commands)
    return f'        "{" ".join(words)}/0") _lastword_words "{names}" "$cur" ;;'


def _option_names(commands: Sequence[Command]) -> list[tuple[str, str, Argument]]:
    return [
        (" ".join(command.words), name, option)
        for command in commands
        for option in command.options
        for name in option.names
    ]


def _answer(argument: Argument) -> str:
    """What completes a value; empty if only the user can know it."""
    if argument.choices:
        return f'_lastword_words "{" ".join(argument.choices)}" "$cur"'
    return {"file": '_lastword_files -f "$cur"', "folder": '_lastword_files -d "$cur"', "": ""}[argument.files]

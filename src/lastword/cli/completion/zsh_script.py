"""The script for zsh: one function for each command, with the descriptions of the help."""

from __future__ import annotations

from lastword.cli.completion.command_tree import Argument, Command, all_commands, verbs

_HEAD = "#compdef lastword\n# zsh completion of lastword, made by  lastword completion zsh\n"
# Loaded from a folder of $fpath the file is the body of the function; read by `source` it only defines it.
_TAIL = """\
if [[ $funcstack[1] == _lastword ]]; then
    _lastword "$@"
else
    compdef _lastword lastword
fi
"""


def zsh_script() -> str:
    top = Command(words=(), summary="", description="", example="", options=_top_options(), places=(), actions=verbs())
    return "\n".join([_HEAD, *(_function(command) for command in [top, *all_commands()]), _TAIL])


def _top_options() -> tuple[Argument, ...]:
    return (
        Argument(names=("-h", "--help"), value="", help="show the verbs"),
        Argument(names=("-V", "--version"), value="", help="show the version"),
    )


def _function(command: Command) -> str:
    specs = [_option(name, option) for option in command.options for name in option.names]
    specs += [f"'{number}:{_text(each.value)}:{_action(each)}'" for number, each in enumerate(command.places, 1)]
    if not command.actions:
        arguments = " \\\n".join(f"        {spec}" for spec in specs)
        return f"{_name(command)}() {{\n    _arguments -s -S \\\n{arguments}\n}}\n"
    listed = "\n".join(f"        '{each.name}:{_text(each.summary)}'" for each in command.actions)
    cases = "\n".join(f"                {each.name}) {_name(each)} ;;" for each in command.actions)
    return f"""\
{_name(command)}() {{
    local curcontext="$curcontext" state line
    local -a actions
    actions=(
{listed}
    )
    _arguments -C {" ".join(specs)} '1: :->action' '*:: :->rest'
    case $state in
        action) _describe command actions ;;
        rest)
            case $line[1] in
{cases}
            esac
            ;;
    esac
}}
"""


def _name(command: Command) -> str:
    return "_".join(("_lastword", *command.words))


def _option(name: str, option: Argument) -> str:
    repeated = "*" if option.may_repeat else ""
    value = f":{_text(option.value)}:{_action(option)}" if option.value else ""
    return f"'{repeated}{name}[{_text(option.help)}]{value}'"


def _action(argument: Argument) -> str:
    if argument.choices:
        return f"({' '.join(argument.choices)})"
    return {"file": "_files", "folder": "_files -/", "": " "}[argument.files]


def _text(text: str) -> str:
    """A text inside single quotes and inside the brackets and colons of a specification."""
    for sign in "\\[]:":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("'", "'\\''")

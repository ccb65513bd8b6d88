"""``hinge completion``: scripts that complete commands and options, made from the option tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hinge.cli.commands import COMMANDS
from hinge.cli.options import EXIT_OK, EXIT_USAGE, HELP, Command, Option
from hinge.cli.tables import COMPLETION, TABLES


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    (shell,) = COMPLETION.parse(arguments).files
    if shell not in _SCRIPTS:
        COMPLETION.fail(f"hinge completion: expected bash, zsh or fish, got {shell!r}", EXIT_USAGE, usage=False)
    print(_SCRIPTS[shell]())
    return EXIT_OK


def _spellings(command: Command) -> list[str]:
    short = [f"-{option.short}" for option in command.options if option.short]
    return short + [f"--{option.long}" for option in (*command.options, HELP)]


def _first_words(command: Command) -> list[str]:
    """What may stand first behind a command: ``bash|zsh|fish`` in its table."""
    return command.files[0].split("|") if command.files and "|" in command.files[0] else []


def _merged(name: str) -> Command:
    """Return a command with the options of its sub-commands, such as those of ``lab race``."""
    parts = [command for command in TABLES if command.name.split()[0] == name]
    options = {option.long: option for command in parts for option in command.options}
    return replace(parts[0], options=tuple(options.values()))


_COMMANDS = [_merged(command.name) for command in TABLES if " " not in command.name]
_GUIDED = [command.name for command in _COMMANDS if _first_words(command)]


def _words(command: Command) -> str:
    return " ".join([*_first_words(command), *_spellings(command)])


def _choices() -> list[tuple[Command, Option]]:
    return [(command, option) for command in _COMMANDS for option in command.options if option.choices]


def _bash() -> str:
    cases = [f'        {command.name}) words="{_words(command)}" ;;' for command in _COMMANDS]
    values = [
        f"    [[ ${{COMP_WORDS[1]}} == {command.name} && $previous == --{option.long} ]] "
        f'&& words="{" ".join(option.choices)}" && current_is_word=1'
        for command, option in _choices()
    ]
    return "\n".join(
        [
            "_hinge() {",
            '    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"',
            '    local words="" current_is_word=0',
            "    if (( COMP_CWORD == 1 )); then",
            f'        COMPREPLY=($(compgen -W "{" ".join(COMMANDS)} --help --version" -- "$current"))',
            "        return",
            "    fi",
            '    case "${COMP_WORDS[1]}" in',
            *cases,
            "    esac",
            *values,
            f"    if (( COMP_CWORD == 2 )) && [[ ${{COMP_WORDS[1]}} =~ ^({'|'.join(_GUIDED)})$ ]]; then",
            "        current_is_word=1",
            "    fi",
            "    if [[ $current == -* || $current_is_word == 1 ]]; then",
            '        COMPREPLY=($(compgen -W "$words" -- "$current"))',
            "    else",
            '        COMPREPLY=($(compgen -f -- "$current"))',
            "    fi",
            "}",
            "complete -o filenames -F _hinge hinge",
        ]
    )


def _zsh() -> str:
    described = [f'        "{name}:{_plain(what)}"' for name, what in COMMANDS.items()]
    cases = [f"        {command.name}) options=({_words(command)}) ;;" for command in _COMMANDS]
    return "\n".join(
        [
            "#compdef hinge",
            "_hinge() {",
            "    local -a commands options",
            "    commands=(",
            *described,
            "    )",
            "    if (( CURRENT == 2 )); then",
            "        _describe command commands",
            "        return",
            "    fi",
            "    local command=$words[2]",
            "    case $command in",
            *cases,
            "    esac",
            f"    if [[ $PREFIX == -* || ( $CURRENT == 3 && $command == ({'|'.join(_GUIDED)}) ) ]]; then",
            "        compadd -- $options",
            "    else",
            "        _files",
            "    fi",
            "}",
            "compdef _hinge hinge",
        ]
    )


def _fish() -> str:
    lines = [
        f"complete -c hinge -n __fish_use_subcommand -f -a {name} -d '{_plain(what)}'"
        for name, what in COMMANDS.items()
    ]
    for command in _COMMANDS:
        here = f"complete -c hinge -n '__fish_seen_subcommand_from {command.name}'"
        for option in (*command.options, HELP):
            short = f" -s {option.short}" if option.short and option.kind != "weight" else ""
            takes = " -r" if option.n_words else ""
            choices = f" -f -a '{' '.join(option.choices)}'" if option.choices else ""
            lines.append(f"{here}{short} -l {option.long}{takes}{choices} -d '{_plain(option.help)}'")
        if first := _first_words(command):
            lines.append(f"{here} -f -a '{' '.join(first)}'")
    return "\n".join(lines)


def _plain(text: str) -> str:
    return text.replace("'", "").replace('"', "").replace(":", " -")


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}

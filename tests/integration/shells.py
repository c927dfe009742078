"""Shells with our completion in them: what each offers when a person has typed so much and presses tab."""

import shutil
import subprocess
from collections.abc import Callable, Sequence

from tests.integration.goqueue_command import Command
from tests.integration.process import DEADLINE_S, GOQUEUE
from tests.integration.terminal import terminal

BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _goqueue; printf '%s\\n' "${COMPREPLY[@]}"
"""
FISH = 'source $argv[1]; complete -C "$argv[2]"'
ZSH = """
unsetopt BEEP; LISTMAX=10000; setopt PROMPT_SUBST; number=0; PS1='${number}> '
autoload -Uz compinit; compinit -u -D; source ./script
compadd() {
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return; fi
    local -a hits; builtin compadd -A hits "$@"; print -rl -- $hits >> hits
}
"""
"""What zsh would show depends on the width of the terminal; what is offered to it does not."""

Offers = Callable[[Command, Sequence[str]], list[set[str]]]


def in_bash(goqueue: Command, lines: Sequence[str]) -> list[set[str]]:
    return [_told(goqueue, ["bash", "-c", BASH, "bash", "./script", *line.split(" ")]) for line in lines]


def in_fish(goqueue: Command, lines: Sequence[str]) -> list[set[str]]:
    told = [_told(goqueue, ["fish", "--no-config", "-c", FISH, "./script", line]) for line in lines]
    return [{each.partition("\t")[0] for each in found} for found in told]


def in_zsh(goqueue: Command, lines: Sequence[str]) -> list[set[str]]:
    (goqueue.home / "setup").write_text(ZSH, "utf-8")
    hits = goqueue.home / "hits"
    offered = []
    with terminal(goqueue, "-f", "-i", program="zsh") as shown:
        shown.press(b"source ./setup\r")
        for number, line in enumerate(lines):
            shown.wait_for(f"{number}> ")  # keys before that would go to the terminal, not to the editor of zsh
            hits.write_text("", "utf-8")
            shown.press(f"{line}\t".encode() + b"\x15(( number += 1 ))\r")
            shown.wait_for(f"{number + 1}> ")
            offered.append(set(hits.read_text("utf-8").split("\n")) - {""})
            shown.press(b"\r")
    return offered


def _told(goqueue: Command, command: list[str]) -> set[str]:
    done = subprocess.run(
        command,
        env=goqueue.environment,
        cwd=goqueue.home,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert done.stderr == ""
    return set(done.stdout.split("\n")) - {""}


SHELLS: dict[str, Offers] = {
    name: offers
    for name, offers in {"bash": in_bash, "zsh": in_zsh, "fish": in_fish}.items()
    if name == "bash" or shutil.which(name)
}
"""Those that are installed; bash is everywhere."""


def prepare(goqueue: Command, shell: str) -> None:
    """The script, and our command on the path of the shell."""
    (goqueue.home / "script").write_text(goqueue.run("completion", shell).out, "utf-8")
    goqueue.environment["PATH"] = f"{GOQUEUE.parent}:{goqueue.environment['PATH']}"

#!/usr/bin/env python3
"""Runs the commands of the README's tour in one shell session and writes their outputs back.

usage: tour.py [--check]

Between `<!-- tour -->` and `<!-- end of tour -->` every line of a code block that begins with `$ ` is a command. The
lines up to the next command are its output, which this program replaces. The server keeps its state
in a temporary folder; in the text that has the name that the commands give it. Long outputs keep their
beginning and their end, and the progress of `submit` is all that is shown of stderr. --check runs everything and writes
nothing: it fails if a command fails.
FUSION_BIN names the folder of the programs (default build/release/bin).
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("FUSION_BIN", ROOT / "build/release/bin")).resolve()
BEGIN, END = "<!-- tour -->", "<!-- end of tour -->"
STATE = "/tmp/state"  # as the commands name it
FIRST_LINES, LAST_LINES, COLUMNS = 9, 5, 150
SECONDS = 300


def shortened(text):
    """At most FIRST_LINES and LAST_LINES lines, and no line longer than COLUMNS."""
    lines = [line if len(line) <= COLUMNS else line[:COLUMNS - 1] + "…" for line in text.rstrip().splitlines()]
    if len(lines) > FIRST_LINES + LAST_LINES:
        lines = [*lines[:FIRST_LINES], "…", *lines[-LAST_LINES:]]
    return "\n".join(line.rstrip() for line in lines)


class Shell:
    """One session in a folder of its own, so that a variable and a file of one command are there for the next."""

    def __init__(self, folder):
        self.folder = folder
        environment = dict(os.environ, PATH=f"{BIN}:{os.environ['PATH']}", XDG_STATE_HOME=f"{folder}/xdg",
                           XDG_CACHE_HOME=f"{folder}/cache", LC_ALL="C.UTF-8")
        environment.pop("FUSION_SERVER", None)
        (folder / "tests").symlink_to(ROOT / "tests")
        self.process = subprocess.Popen(["bash"], cwd=folder, env=environment, stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, command):
        """(exit code, output). A server in the background says nothing here; the next command waits until it answers."""
        there = command.replace(STATE, f"{self.folder}/state")
        if there.startswith("fusiond ") and there.endswith("&"):
            there = (f"{there[:-1]} > fusiond.log 2>&1 &\n"
                     f"for i in $(seq 200); do fusionctl --server unix:{self.folder}/state/fusion.sock worker list 2>/dev/null | grep -q local "
                     "&& break; sleep 0.1; done")
        elif not there.startswith(("fusionctl submit ", "export ")):
            there += " 2>/dev/null"
        self.process.stdin.write(f"{there}\necho \"ended $?\"\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if re.fullmatch(r"ended \d+\n", line):
                text = "".join(lines).replace(f"{self.folder}/state", STATE)
                return int(line.split()[1]), text.replace(f"{self.folder}/xdg", "~/.local/state").replace(
                    f"{self.folder}/cache", "~/.cache")
            lines.append(line)
        raise SystemExit("the shell ended: " + "".join(lines))

    def close(self):
        self.process.stdin.write("kill $(jobs -p) 2>/dev/null; wait\n")
        self.process.stdin.close()
        self.process.wait(SECONDS)


def tour(text, run):
    """The part of the README with the outputs of its commands, by `run(command) -> (code, output)`."""
    result, inside, skipping = [], False, False
    for line in text.splitlines():
        if line.startswith("```"):
            inside, skipping = not inside, False
        elif inside and line.startswith("$ "):
            if skipping and result[-1] != "":
                result.append("")
            result.append(line)
            code, output = run(line[2:])
            if code:
                raise SystemExit(f"'{line[2:]}' ended with {code}:\n{output}")
            if output.strip():
                result.append(shortened(output))
            skipping = bool(output.strip())
            continue
        elif inside and (skipping or (result and result[-1].startswith("$ ")) or line == ""):
            continue
        result.append(line)
    return "\n".join(result)


def main():
    readme = ROOT / "README.md"
    text = readme.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise SystemExit(f"README.md has no '{BEGIN}' … '{END}'")
    before, rest = text.split(BEGIN)
    between, after = rest.split(END)
    with tempfile.TemporaryDirectory(prefix="fusion-tour-") as folder:
        shell = Shell(pathlib.Path(folder))
        try:
            fresh = tour(between.rstrip(), shell.run)
        finally:
            shell.close()
    if "--check" not in sys.argv[1:]:
        readme.write_text(f"{before}{BEGIN}{fresh}\n\n{END}{after}")


if __name__ == "__main__":
    main()

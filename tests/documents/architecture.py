#!/usr/bin/env python3
"""Runs the commands of docs/architecture.md and writes their outputs back.

usage: architecture.py [--check]

In every code block that begins with `$ `, the first line is a command, which runs in the project's root, and the rest is
its output, which this program replaces. Outputs depend on no machine. --check writes nothing: it fails, and prints the
difference, where an output is out of date.
FUSION_BIN names the folder of the programs (default build/release/bin).
"""
import difflib
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("FUSION_BIN", ROOT / "build/release/bin")).resolve()
PAGE = ROOT / "docs/architecture.md"
BLOCK = re.compile(r"^```\n\$ (.*)\n(?:.*\n)*?```$", re.MULTILINE)


def output_of(command):
    ran = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], cwd=ROOT, capture_output=True, text=True,
                         env=dict(os.environ, PATH=f"{BIN}:{os.environ['PATH']}", LC_ALL="C.UTF-8"), timeout=60)
    if ran.returncode != 0 or not ran.stdout.strip():
        raise RuntimeError(f"{command}: exit code {ran.returncode}, says {ran.stderr.strip() or 'nothing'}")
    return ran.stdout.rstrip()


def with_outputs(text):
    return BLOCK.sub(lambda match: f"```\n$ {match[1]}\n{output_of(match[1])}\n```", text)


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    before = PAGE.read_text()
    after = with_outputs(before)
    if sys.argv[1:] == ["--check"]:
        sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), after.splitlines(True), "docs/architecture.md",
                                                   "what the programs print"))
        sys.exit("run tests/documents/architecture.py" if after != before else 0)
    PAGE.write_text(after)


if __name__ == "__main__":
    main()

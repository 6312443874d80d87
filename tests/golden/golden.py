#!/usr/bin/env python3
"""golden.py ECG_OPT [FOLDER|FILE ...]: compares what ecg-opt prints with what each file expects (README.md beside
this).

BLESS=1 in the environment rewrites the expectations instead. Needs Python's standard library only.
"""
import difflib
import os
import pathlib
import subprocess
import sys

FORMS = {"roundtrip": "graph", "optimize": "graph", "plan": "plan", "layout": "layout", "launches": "launches", "te": "te",
         "schedule": "movement", "movement": "movement", "scopes": "scopes", "choices": "choices", "kernel": "cpp"}
# Forms whose text is an input, too: read and printed as the same form, it stays as it is.
READABLE = {"graph": "graph", "te": "lowering", "movement": "movement"}
SUFFIXES = {".ecg", ".te"}  # a graph, tensor expressions
DEVICES = pathlib.Path(__file__).parent / "devices"
MARK = "; check:"


class BadGolden(Exception):
    pass


def command(ecg_opt, head):
    """ecg-opt's arguments for a first line such as `test plan passes=simplify,rewrite planner=none`."""
    words = head.split()
    if len(words) < 2 or words[0] != "test" or words[1] not in FORMS:
        raise BadGolden(f"the first line must be `test {'|'.join(FORMS)} [passes=...]`, not `{head}`")
    args = [ecg_opt, "--print", FORMS[words[1]]]
    options = {"passes": "--pass", "planner": "--planner", "math": "--math", "precision": "--precision",
               "device": "--device", "hand_over": "--hand-over", "directive": "--directive"}
    for word in words[2:]:
        name, _, value = word.partition("=")
        if word == "one_fusion_block":
            args.append("--one-fusion-block")
            continue
        if name == "device" and (DEVICES / f"{value}.json").exists():
            value = str(DEVICES / f"{value}.json")
        if name not in options:
            raise BadGolden(f"unknown option `{word}`: use one of {', '.join(options)}")
        args += [options[name], value]
    return words[1], args


def run(args, graph):
    done = subprocess.run(args, input=graph, capture_output=True, text=True, timeout=60)
    if done.returncode not in (0, 1):  # 1: refused with a reason, which a golden may expect
        raise BadGolden(f"ecg-opt ended with {done.returncode}: {done.stderr}")
    return done.stdout if done.returncode == 0 else done.stderr


def check(ecg_opt, path, bless):
    """An error text, or None."""
    lines = path.read_text(encoding="utf-8").split("\n")
    at = lines.index(MARK) if MARK in lines else len(lines)
    head, graph = lines[0], "\n".join(lines[1:at]).rstrip("\n") + "\n"
    expected = [line[2:] if line.startswith("; ") else line[1:] for line in lines[at + 1:] if line.startswith(";")]
    kind, args = command(ecg_opt, head)
    got = run(args, graph)
    if FORMS[kind] in READABLE and not got.startswith("error: "):
        again = run([ecg_opt, "--print", READABLE[FORMS[kind]]], got)
        # Comments in front of a graph say what its passes did, and are not printed again.
        if again != "".join(line for line in got.splitlines(True) if not line.startswith(";")):
            return f"printed once more it differs:\n{got}{again}"
    actual = got.rstrip("\n").split("\n")
    if bless:
        body = "\n".join(("; " + line).rstrip() for line in actual)
        path.write_text(f"{head}\n{graph}{MARK}\n{body}\n", encoding="utf-8")
        return None
    if [line.rstrip() for line in actual] == expected:
        return None
    return "\n".join(difflib.unified_diff(expected, actual, "expected", "printed", lineterm=""))


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    roots = [pathlib.Path(arg) for arg in sys.argv[2:]] or [pathlib.Path(__file__).parent]
    files = sorted(file for root in roots for file in ([root] if root.is_file() else
                                             [path for path in root.rglob("*") if path.suffix in SUFFIXES]))
    failures = 0
    for path in files:
        try:
            error = check(sys.argv[1], path, os.environ.get("BLESS") == "1")
        except (BadGolden, subprocess.TimeoutExpired) as bad:
            error = str(bad)
        if error:
            failures += 1
            print(f"{path}:\n{error}\n")
    print(f"{len(files)} goldens, {failures} failed")
    return 1 if failures or not files else 0


if __name__ == "__main__":
    sys.exit(main())

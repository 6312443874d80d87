#!/usr/bin/env python3
"""Reports which rewrite rules fire on models, by rule, class and class of the paper, and the FLOPs that remain.

usage: rules_report.py --build BUILD MODEL.onnx... [--dim NAME=N]... [--math strict,fast,relaxed] [--json FILE]

Plans each model with each math mode (fusion-compile --plan, one kernel per operator) and prints two Markdown tables: a
line for each model with its FLOPs and firings by mode, and a line for each rule with the models on which it fires.
Models that cannot be read are named below, with the reason.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import tempfile

RULES = pathlib.Path(__file__).resolve().parents[2] / "compiler" / "rewrite" / "rules"
PAPER_FAMILIES = ("associative", "distributive", "commutative")  # the classes of DNNFusion's Table 4


def rule_table():
    """Of each rule its file and class, families spelled out."""
    table = {}
    for file in RULES.glob("*.rules"):
        for line in file.read_text().splitlines():
            name, colon, rest = line.partition(": ")
            if line.startswith("#") or not colon:
                continue
            rest, _, members = rest.partition(" for F in ")
            words = rest.split()
            math_class = words[-2] if words[-1] == "composite" else words[-1]
            if "provided" in words:
                math_class += ", proven"
            for member in members.split(", ") if members else [""]:
                table[name.replace("$F", member.lower())] = (file.stem, math_class)
    return table


def plan(compiler, model, math, dims):
    """FLOPs after rewriting and firings by rule."""
    with tempfile.TemporaryDirectory() as folder:
        out, account = pathlib.Path(folder) / "plan.json", pathlib.Path(folder) / "account.json"
        command = [compiler, model, out, "--plan", "--planner", "none", "--math", math, "--json", account]
        ran = subprocess.run([str(word) for word in command] + [word for dim in dims for word in ("--dim", dim)],
                             capture_output=True, text=True)
        if ran.returncode != 0:
            raise RuntimeError(ran.stderr.strip().splitlines()[-1])
        rewrites = json.loads(out.read_text())["rewrites"]
        totals = json.loads(account.read_text())
        return {"flops": totals["flops"], "nodes": totals["nodes_rewritten"], "seconds": totals["stages"]["rewrite"],
                "fired": dict(collections.Counter(one["rule"] for one in rewrites)),
                "saved": sum(one["flops_saved"] for one in rewrites)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a build folder")
    parser.add_argument("--dim", action="append", default=[], help="NAME=N, for models that have such a dimension")
    parser.add_argument("--math", default="strict,fast,relaxed")
    parser.add_argument("--json", type=pathlib.Path, help="write what was found there")
    options = parser.parse_args()
    modes = options.math.split(",")
    compiler = options.build / "bin" / "fusion-compile"
    rules, rows, failures = rule_table(), {}, {}
    for model in options.models:
        try:
            rows[model.stem] = {mode: plan(compiler, model, mode, options.dim) for mode in modes}
        except RuntimeError as failure:
            failures[model.stem] = str(failure)
    print("| model |", " | ".join(f"MFLOP, {mode}" for mode in modes), "|", " | ".join(f"fired, {mode}" for mode in modes), "|")
    print("|---" * (1 + 2 * len(modes)) + "|")
    for name, row in sorted(rows.items()):
        print(f"| {name} |", " | ".join(f"{row[mode]['flops'] / 1e6:.3f}" for mode in modes), "|",
              " | ".join(str(sum(row[mode]["fired"].values())) for mode in modes), "|")
    print("\n| rule | file | class |", " | ".join(f"{mode}: models (firings)" for mode in modes), "|")
    print("|---" * (3 + len(modes)) + "|")
    fired = sorted({rule for row in rows.values() for mode in modes for rule in row[mode]["fired"]})
    by_family = {mode: collections.Counter() for mode in modes}
    for rule in fired:
        family, math_class = rules.get(rule, ("?", "?"))
        cells = []
        for mode in modes:
            counts = [row[mode]["fired"][rule] for row in rows.values() if rule in row[mode]["fired"]]
            by_family[mode][family if family in PAPER_FAMILIES else "other"] += sum(counts)
            cells.append(f"{len(counts)} ({sum(counts)})")
        print(f"| `{rule}` | {family} | {math_class} |", " | ".join(cells), "|")
    print()
    for mode in modes:
        shares = ", ".join(f"{family} {by_family[mode][family]}" for family in (*PAPER_FAMILIES, "other"))
        print(f"- {mode}: {shares}")
    for name, reason in failures.items():
        print(f"- not planned: {name}: {reason}")
    if options.json:
        options.json.write_text(json.dumps({"models": rows, "failures": failures}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Runs the attacks that docs/security.md lists, and writes there what came of them: `tests/faults/attacks.py`.

Each row of the page's tables names the tests that show its control. This program reads the rows, runs these tests, and
writes the last section of the page. `--only WORDS` runs the rows with these words; the others keep their results."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "documents"))
import documents  # noqa: E402
PAGE = ROOT / "docs" / "security.md"
HEADING = "## The attacks, run"


class Reference(NamedTuple):
    path: str   # of a file with tests
    names: tuple  # of tests or classes in it; none: all


class Attack(NamedTuple):
    threat: str
    control: str
    references: list


def attacks(page):
    """The rows of all tables that have a column `test`."""
    return [Attack(row["threat"], row["control"],
                   [Reference(path, tuple(names)) for path, names in documents.tests_named(row["test"])])
            for row in documents.rows_of_tables(page.split(HEADING)[0], "test")]


def cases_of(reference):
    """The tests that a reference names: (suite, test) of C++, (class, method) of Python."""
    text = (ROOT / reference.path).read_text()
    if reference.path.endswith(".py"):
        cases, suite = [], ""
        for name, method in re.findall(r"^class (\w+)|^    def (test_\w+)", text, re.M):
            suite = name or suite
            cases += [(suite, method)] if method else []
    else:
        cases = re.findall(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", text, re.M)
    named = [case for case in cases if set(case) & set(reference.names)]
    return named or cases


def program_of(path):
    """The test program that has this source."""
    for folder in (ROOT / path).parents:
        lists = folder / "CMakeLists.txt"
        if not lists.exists():
            continue
        source = str((ROOT / path).relative_to(folder))
        for name, body in re.findall(r"(?:fusion_test|target_sources)\((\w+)([^)]*)\)", lists.read_text()):
            if source in body.split():
                return name
        if folder == ROOT:
            break
    return None


def run_cc(reference, build):
    program = program_of(reference.path)
    if not (build / "test-bin" / program).exists():
        sys.exit("%s is not built: build everything first" % program)
    done = subprocess.run([build / "test-bin" / program, "--gtest_filter=" + ":".join("%s.%s" % case for case in cases_of(reference))],
                          capture_output=True, text=True, cwd=build)
    count = lambda word: len(re.findall(r"^\[\s+%s\s+\] \w+\.\w+ \(" % word, done.stdout, re.M))
    reasons = re.findall(r"Skipped\n(.*)", done.stdout)
    return {"passed": count("OK"), "failed": count("FAILED") or int(done.returncode != 0), "skipped": reasons,
            "met": re.findall(r"^met: (.*)$", done.stdout, re.M)}


def run_py(reference, build):
    folder = ROOT / reference.path
    names = ["%s.%s.%s" % (folder.stem, *case) for case in cases_of(reference)]
    shims = {"FUSION_" + name.upper(): str(path) for name in ("sync_counter", "fault_shim", "poison_shim") for path in build.rglob("lib%s.so" % name)}
    done = subprocess.run([sys.executable, "-B", "-m", "unittest", "-v", *names], capture_output=True, text=True, cwd=folder.parent,
                          env=dict(os.environ, FUSION_BIN=str(build / "bin"), PYTHONPATH=str(ROOT / "tests" / "e2e"), **shims))
    ends = re.findall(r"\.\.\. (ok|FAIL|ERROR|skipped)\s?(.*)$", done.stderr, re.M)
    return {"passed": sum(end == "ok" for end, _ in ends), "failed": sum(end in ("FAIL", "ERROR") for end, _ in ends) or int(done.returncode != 0),
            "skipped": [why.strip("'\" ") for end, why in ends if end == "skipped"], "met": []}


def run(attack, build):
    sums = {"passed": 0, "failed": 0, "skipped": [], "met": [], "apart": []}
    began = time.monotonic()
    for reference in attack.references:
        if "/fuzz/" in reference.path:
            sums["apart"].append(reference.path)
            continue
        result = (run_py if reference.path.endswith(".py") else run_cc)(reference, build)
        for key, value in result.items():
            sums[key] += value
    return {**sums, "seconds": time.monotonic() - began, "date": time.strftime("%Y-%m-%d")}


def outcome(result):
    if result["failed"]:
        return "**%d of %d tests failed**" % (result["failed"], result["failed"] + result["passed"])
    words = ["stopped" if result["passed"] else "not run"]
    if result["met"]:
        words.append("met: " + ", ".join(sorted(set(result["met"]))))
    words += ["skipped: " + why for why in sorted(set(result["skipped"]))]
    words += ["run apart: `%s`" % path for path in result["apart"]]
    return "; ".join(words)


def section(page, results, machine):
    lines = [HEADING, "",
             "`tests/faults/attacks.py` runs the tests that the tables above name, and writes this section. `met` is what a hostile kernel was told; the same kernel does its harm where nothing confines it.",
             "", "| attack | outcome | tests | last run |", "|---|---|---|---|"]
    for attack in attacks(page):
        result = results.get(attack.threat)
        if not attack.references or result is None:
            continue
        lines.append("| %s | %s | %d | %s |" % (attack.threat, outcome(result), result["passed"] + result["failed"], result["date"]))
    without = [attack.threat for attack in attacks(page) if not attack.references]
    if without:
        lines += ["", "Without a test: " + "; ".join(without) + "."]
    return "\n".join(lines + ["", machine]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=lambda path: pathlib.Path(path).resolve(), default=ROOT / "build" / "release")
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--only", action="append", help="words of the attacks to run")
    options = parser.parse_args()
    options.results = options.results or options.build / "attacks.json"
    results = json.loads(options.results.read_text()) if options.results.exists() else {}
    page = PAGE.read_text()
    bad = 0
    for attack in attacks(page):
        if not attack.references or (options.only and not any(words in attack.threat for words in options.only)):
            continue
        results[attack.threat] = run(attack, options.build)
        bad += results[attack.threat]["failed"]
        print("%s: %s" % (attack.threat, outcome(results[attack.threat])), flush=True)
        options.results.write_text(json.dumps(results, indent=1))
    import reliability
    PAGE.write_text(page.split(HEADING)[0].rstrip("\n") + "\n\n" + section(page, results, reliability.machine_of()))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

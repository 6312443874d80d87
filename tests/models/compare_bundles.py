#!/usr/bin/env python3
"""Do two compilers make the same bundles? For changes that must not change any.

usage: compare_bundles.py --before FUSION-COMPILE --after FUSION-COMPILE [--target NAME]... [--device MODEL.json]
                          [--words FIELD]... [--renamed OLD=NEW]... [--json FILE] MODEL.onnx...

Compiles each model with both compilers, the cost model answering all questions, and compares the bundles entry by entry:
kernel texts, machine code and weights byte by byte; the manifest field by field. plan.json, report.html and the generator
version are left out, since they may change their words, and so are digests, whose entries are compared themselves, and the
padding of the weights' header, which depends on the lengths of the entries before it. --words names more manifest fields
to leave out ('launches.label'). --renamed names a word of kernel texts that has another name now: the older text is compared
with that word replaced, wherever it stands as a whole word; machine code is compared byte by byte as ever. Prints a line a model with the seconds that each compiler took; exits with 1 if any bundle
differs or a model compiles with one of the compilers only.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import zipfile

WORDS = ("plan.json", "report.html")


def compile_model(compiler, model, out, target, device):
    command = [compiler, model, out] + (["--target", target] if target else []) + (["--device", device] if device else [])
    start = time.monotonic()
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    seconds = time.monotonic() - start
    return seconds, "" if ran.returncode == 0 else ran.stderr.strip().splitlines()[-1]


def without(value, path):
    """The value without the field that a dotted path names, in every element of the lists on its way."""
    head, _, rest = path.partition(".")
    if isinstance(value, list):
        return [without(element, path) for element in value]
    if not isinstance(value, dict) or head not in value:
        return value
    left = {key: element for key, element in value.items() if key != head}
    return {**left, head: without(value[head], rest)} if rest else left


def comparable_manifest(text, fields):
    manifest = json.loads(text)
    for field in ("generator", "digests", *fields):
        manifest = without(manifest, field)
    return manifest


def same_text(before, after, renamed):
    """Do two kernel texts differ by renamed words only?"""
    text = re.sub(r"\w+", lambda word: renamed.get(word.group(), word.group()), before.decode())
    return text == after.decode()


def same_entry(name, before, after, renamed):
    if name.startswith("src/"):
        return before == after or same_text(before, after, renamed)
    if not name.endswith(".safetensors"):
        return before == after
    header_bytes = [int.from_bytes(entry[:8], "little") for entry in (before, after)]
    headers = [json.loads(entry[8:8 + length]) for entry, length in zip((before, after), header_bytes)]
    return headers[0] == headers[1] and memoryview(before)[8 + header_bytes[0]:] == memoryview(after)[8 + header_bytes[1]:]


def differences(before, after, fields, renamed):
    """Names of the entries in which two bundles differ."""
    with zipfile.ZipFile(before) as old, zipfile.ZipFile(after) as new:
        old_names, new_names = (set(bundle.namelist()) - set(WORDS) for bundle in (old, new))
        found = [f"{name} only before" for name in sorted(old_names - new_names)]
        found += [f"{name} only after" for name in sorted(new_names - old_names)]
        for name in sorted(old_names & new_names):
            if name == "manifest.json":
                old_manifest, new_manifest = (comparable_manifest(bundle.read(name), fields) for bundle in (old, new))
                found += [f"{name}: {key}" for key in sorted(old_manifest.keys() | new_manifest.keys())
                          if old_manifest.get(key) != new_manifest.get(key)]
            elif old.getinfo(name).CRC != new.getinfo(name).CRC and not same_entry(name, old.read(name), new.read(name),
                                                                                  renamed):
                found.append(name)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--before", required=True, type=pathlib.Path, help="a fusion-compile")
    parser.add_argument("--after", required=True, type=pathlib.Path, help="the other one")
    parser.add_argument("--target", action="append", default=[], help="default: cpu")
    parser.add_argument("--device", help="device model for both")
    parser.add_argument("--words", action="append", default=[], help="a manifest field to leave out")
    parser.add_argument("--renamed", action="append", default=[], metavar="OLD=NEW", help="a word of kernel texts")
    parser.add_argument("--json", type=pathlib.Path, help="write the results there")
    arguments = parser.parse_args()
    renamed = dict(word.split("=") for word in arguments.renamed)
    results, failed = [], 0
    for model in arguments.models:
        for target in arguments.target or [""]:
            with tempfile.TemporaryDirectory() as folder:
                before, after = pathlib.Path(folder, "before.fusion"), pathlib.Path(folder, "after.fusion")
                old_seconds, old_error = compile_model(arguments.before, model, before, target, arguments.device)
                new_seconds, new_error = compile_model(arguments.after, model, after, target, arguments.device)
                if old_error and new_error:
                    found, verdict = [], "neither compiles: " + new_error
                elif old_error or new_error:
                    found, verdict = ["compiles"], f"only one compiles: {old_error or new_error}"
                else:
                    found = differences(before, after, arguments.words, renamed)
                    verdict = "differs: " + ", ".join(found) if found else "same"
            failed += bool(found)
            print(f"{model.stem:30} {target or 'cpu':12} {old_seconds:7.1f} s {new_seconds:7.1f} s  {verdict}", flush=True)
            results.append({"model": model.stem, "target": target or "cpu", "before_seconds": old_seconds,
                            "after_seconds": new_seconds, "differs": found, "verdict": verdict})
    seconds = [sum(result[key] for result in results) for key in ("before_seconds", "after_seconds")]
    same = sum(result["verdict"] == "same" for result in results)
    print(f"{len(results)} bundles: {same} same, {failed} differ; {seconds[0]:.1f} s before, {seconds[1]:.1f} s after")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

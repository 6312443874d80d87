#!/usr/bin/env python3
"""Full models for target opencl: fused against unfused, both verified against the strict, unfused form for target cpu.

usage: opencl_models.py [options] MODEL.onnx ...

Prints a Markdown table with a row for each model, as soon as its figures are known: kernels, bytes of intermediate
results, latency (the two bundles in turns), and the largest relative error of the fused and of the unfused bundle.
Needs nothing but the programs of this project and an OpenCL device (PoCL provides one on the CPU).
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Failed(Exception):
    pass


def call(options, program, *args):
    try:
        done = subprocess.run([options.bin / program, *map(str, args)], capture_output=True, text=True,
                              timeout=options.timeout)
    except subprocess.TimeoutExpired:
        raise Failed("%s takes more than %d s" % (program, options.timeout))
    return done


def compile_model(options, model, bundle, *flags):
    report = bundle.with_suffix(".json")
    done = call(options, "fusion-compile", model, bundle, "--json", report, *flags)
    if done.returncode:
        raise Failed(done.stderr.strip().splitlines()[-1])
    return json.loads(report.read_text())


def verify(options, bundle, reference):
    done = call(options, "fusionctl", "verify", bundle, "--reference", reference, "--int-max", options.int_max, "-o", "json")
    if not done.stdout:
        raise Failed(done.stderr.strip().splitlines()[-1])
    said = json.loads(done.stdout)
    return "%.1e%s" % (said["max_rel_err"], "" if said["ok"] else " (beyond the tolerance)")


def examine(options, model, folder):
    fused, unfused, reference = (folder / (name + ".fusion") for name in ("fused", "unfused", "reference"))
    device = ["--device", options.device] if options.device else []
    reports = [compile_model(options, model, fused, "--target", "opencl", *device),
               compile_model(options, model, unfused, "--target", "opencl", "--planner", "none", *device)]
    compile_model(options, model, reference, "--target", "cpu", "--planner", "none", "--math", "strict")
    errors = [verify(options, bundle, reference) for bundle in (fused, unfused)]
    done = call(options, "fusionctl", "bench", fused, "--against", unfused, "--runs", options.runs, "--warmup", 1,
                "--int-max", options.int_max, "-o", "json")
    if done.returncode:
        raise Failed(done.stderr.strip().splitlines()[-1])
    timed = json.loads(done.stdout)
    size = [report["intermediate_bytes"]["after"] / 1e6 for report in reports]
    return "| %s | %d / %d | %.1f / %.1f | %.1f / %.1f | %.2f | %s | %s |" % (
        model.stem, reports[0]["kernels"], reports[1]["kernels"], size[0], size[1], timed["median_ms"],
        timed["against_median_ms"], timed["speedup"], *errors)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path, metavar="MODEL.onnx")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin", help="folder of the programs")
    parser.add_argument("--device", type=pathlib.Path, metavar="MODEL.json", help="device model for fusion-compile")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--int-max", type=int, default=1,
                        help="largest random integer: masks are 0 or 1 (default 1)")
    parser.add_argument("--timeout", type=int, default=1800, help="seconds that any one step may take")
    options = parser.parse_args()
    print("| model | kernels (fused / unfused) | intermediates MB | ms | speedup | error of fused | of unfused |")
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    failures = 0
    for model in options.models:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-opencl-models-"))
        try:
            print(examine(options, model, folder), flush=True)
        except Failed as error:
            failures += 1
            print("| %s | %s |||||" % (model.stem, error), flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

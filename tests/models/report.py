#!/usr/bin/env python3
"""Compiles, runs and verifies the models that export.py made, and writes docs/models.md.

usage: report.py --models DIR [--unfolded DIR] [--offline] [--onnxruntime] [--results FILE.json]
                 [--out docs/models.md] [NAME ...]

Every model is compiled twice: by fusion-compile, for which the cost model decides the yellow cases, and by a fusiond
with an empty state, whose local worker measures them. The latter bundle is run and verified against the unfused strict
form of the same model, on random inputs of the shapes and ranges that export.py states.
--offline omits the server and verifies the former bundle, for a machine that is too busy to measure.
--unfolded names the folder that `export.py --unfolded` wrote: the same models with batch norms, constants and shapes as
nodes, as the papers count them. They are compiled by fusion-compile, run and verified as well.
--onnxruntime compares with onnxruntime as well, and needs a Python that has it, numpy included; the rest needs nothing.
Results are kept in FILE.json. Models that are not named keep their results, so that a long run can be split.
FUSION_BIN names the folder of the programs (default build/release/bin).
"""
import argparse
import array
import datetime
import json
import math
import os
import pathlib
import platform
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
import export
from harness import BIN, Server

SECONDS_A_STEP = 1800


class Paper(NamedTuple):
    layers: int = None  # before fusion, of the paper's exporter
    kernels: int = None
    megabytes: tuple = None  # of intermediate results, before and after


# DNNFusion: Table 5, columns #Total layer, DNNF, IRS size. Souffle: Table 5, kernel calls of Ours, GPU, half precision
# products. FusionStitching: Table 2, # of TF and FS, inference, GPU, the batch sizes of its Table 1. GraphTurbo and
# PowerFusion give no counts in text.
PAPERS = {
    "DNNFusion": {
        "efficientnet_b0": Paper(309, 97, (108, 26)), "vgg16": Paper(51, 17, (161, 52)),
        "mobilenet_v1_ssd": Paper(202, 71, (110, 37)), "yolo_v4": Paper(398, 135, (329, 205)),
        "c3d": Paper(27, 16, (195, 90)), "s3d": Paper(272, 98, (996, 356)), "unet": Paper(292, 82, (312, 158)),
        "fasterrcnn_resnet50_fpn": Paper(3640, 942, (914, 374)), "maskrcnn_resnet50_fpn": Paper(3999, 981, (1524, 543)),
        "tinybert": Paper(366, 74, (183, 55)), "distilbert": Paper(457, 109, (540, 197)),
        "albert_base": Paper(936, 225, (1260, 320)), "bert_base": Paper(976, 216, (915, 196)),
        "mobilebert": Paper(2387, 510, (744, 255)), "gpt2": Paper(2533, 254, (1389, 356)), "gpt2_kv": Paper()},
    "Souffle": {
        "bert_base": Paper(kernels=24), "resnext101_64x4d": Paper(kernels=105), "lstm10": Paper(kernels=1),
        "efficientnet_b0": Paper(kernels=66), "swin_b": Paper(kernels=53), "mmoe": Paper(kernels=1)},
    "GraphTurbo": dict.fromkeys(("resnet50", "mobilenet_v2", "dlrm", "vit_b_16", "densenet121", "conformer", "bert_base"),
                                Paper()),
    "PowerFusion": dict.fromkeys(("sar_drn", "shufflenet_v2_x1_0", "rednet50", "efficientnet_b0", "vit_b_16", "bert_base",
                                  "gpt2", "gpt2_kv"), Paper()),
    "FusionStitching": {
        "dien": Paper(4311, 1642), "asr": Paper(1942, 475), "crnn": Paper(4820, 707), "bert_base": Paper(541, 205),
        "transformer_base": Paper()},
}
ORDER = list(dict.fromkeys(name for models in PAPERS.values() for name in models))

TYPECODES = {"float32": ("f", "<f4"), "int64": ("q", "<i8")}


def write_npy(path, dtype, shape, values):
    code, text = TYPECODES[dtype]
    extents = "".join(f"{extent}, " for extent in shape)
    header = f"{{'descr': '{text}', 'fortran_order': False, 'shape': ({extents}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                     array.array(code, values).tobytes())


def write_inputs(name, folder):
    """{input: file}: normal values, indices in their range, masks that hide the last eighth."""
    draw, files = random.Random(name), {}
    for i, (key, (dtype, shape, *below)) in enumerate(export.RECIPES[name].inputs.items()):
        count = math.prod(shape)
        if "mask" in key:
            values = [1 if j % shape[-1] < shape[-1] - shape[-1] // 8 else 0 for j in range(count)]
        elif dtype == "float32":
            values = (draw.gauss(0, 1) for _ in range(count))
        else:
            values = (draw.randrange(below[0]) for _ in range(count))
        files[key] = folder / f"input{i}.npy"
        write_npy(files[key], dtype, shape, values)
    return files


def onnxruntime_error(model, inputs, bundle, folder):
    """`verification` against onnxruntime's outputs."""
    import numpy as np
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        feeds = {name: np.load(file) for name, file in inputs.items() if name in [i.name for i in session.get_inputs()]}
        values = session.run(names, feeds)
    except Exception as failure:  # of kinds that onnxruntime names by their codes
        raise Failure(f"onnxruntime: {failure}") from failure
    words = [word for key, file in inputs.items() for word in ("--input", f"{key}={file}")]
    for i, (name, value) in enumerate(zip(names, values)):
        file = folder / f"expected{i}.npy"
        np.save(file, value)
        words += ["--expect", f"{name}={file}"]
    return verification(bundle, *words)


class Failure(Exception):
    pass


def call(program, *arguments, **options):
    try:
        done = subprocess.run([BIN / program, *map(str, arguments)], capture_output=True, text=True,
                              timeout=SECONDS_A_STEP, **options)
    except subprocess.TimeoutExpired:
        raise Failure(f"{program}: not done in {SECONDS_A_STEP} s") from None
    if done.returncode:
        said = (done.stderr + done.stdout).strip().splitlines()
        lines = [line for line in said if "error" in line or "WRONG" in line]
        raise Failure(f"{program} {arguments[0]}: exit {done.returncode}: " + " ".join(lines or [(done.stderr + done.stdout)[-300:]]))
    return done.stdout


def verification(bundle, *arguments, **options):
    """The largest error that `fusionctl verify` finds: a number, or words where there are outputs that it does not
    accept."""
    try:
        done = subprocess.run([BIN / "fusionctl", "verify", bundle, *arguments, "-o", "json"], capture_output=True,
                              text=True, timeout=SECONDS_A_STEP, **options)
    except subprocess.TimeoutExpired:
        raise Failure(f"fusionctl verify: not done in {SECONDS_A_STEP} s") from None
    if not done.stdout:
        raise Failure(f"fusionctl verify: exit {done.returncode}: {done.stderr[-300:]}")
    outputs = json.loads(done.stdout)["outputs"]
    accepted = max((output["max_rel_err"] for output in outputs if output["ok"]), default=None)
    refused = [f"'{output['name']}' {output['verdict']}: {output['why'] or number(output['max_rel_err'])}"
               for output in outputs if not output["ok"]]
    return "; ".join([number(accepted), *refused]) if refused else accepted


class Service:
    """A fusiond with an empty state and its local worker."""

    def __init__(self, folder):
        self.server = Server(folder)
        self.server.start()

    def compile(self, model, bundle, report):
        call("fusionctl", "submit", model, "-o", bundle, "--json", report, "--no-measure", "--no-verify",
             env=self.server.environment())

    def verify(self, model, bundle, given):
        return verification(bundle, "--model", model, *given, env=self.server.environment())

    def close(self):
        self.server.stop()


class Offline:
    def __init__(self, folder):
        self.reference = folder / "reference.fusion"

    def compile(self, model, bundle, report):
        call("fusion-compile", model, bundle, "--json", report)

    def verify(self, model, bundle, given):
        call("fusion-compile", model, self.reference, "--planner", "none", "--math", "strict")
        return verification(bundle, "--reference", self.reference, *given)

    def close(self):
        pass


def plan_figures(manifest, account):
    """What a bundle's manifest and the account of its compilation say of its plan. The account counts the values that
    go from kernel to kernel, each once, in however many parts it is written; a buffer of the arena that holds no value
    of the graph has no name, and is handed from phase to phase of one kernel."""
    launches, buffers = manifest["launches"], manifest["buffers"]
    used = {index for launch in launches for arguments in [launch["buffers"], *launch.get("others", [])]
            for index in arguments}
    temporary_bytes = sum(buffers[index]["size_bytes"] for index in used
                          if buffers[index]["kind"] == "arena" and not buffers[index]["name"])
    return {"launches": len(launches), "batches": sum("others" in launch for launch in launches),
            "phases": sum(len(manifest["kernels"][launch["kernel"]]["phases"]) for launch in launches),
            "bytes_between_kernels": account["intermediate_bytes"]["after"], "bytes_between_phases": temporary_bytes}


def read_plan(bundle, report):
    return plan_figures(json.loads(call("fusionctl", "bundle", "inspect", bundle, "-o", "json")),
                        json.loads(report.read_text()))


def examine(compiler, name, model, folder, with_onnxruntime):
    """A row; what went wrong is in `failure`."""
    row = {"date": datetime.date.today().isoformat(), "offline": isinstance(compiler, Offline), "plans": {}}
    bundle, report = folder / "model.fusion", folder / "submit.json"
    try:
        if not row["offline"]:
            estimated = folder / "estimated.fusion"
            Offline(folder).compile(model, estimated, report)
            row["plans"]["estimates"] = read_plan(estimated, report)
        compiler.compile(model, bundle, report)
        row["submit"] = json.loads(report.read_text())
        row["plans"]["estimates" if row["offline"] else "measured"] = read_plan(bundle, report)
        files = write_inputs(name, folder)
        given = [word for key, file in files.items() for word in ("--input", f"{key}={file}")]
        if with_onnxruntime:
            row["onnxruntime"] = onnxruntime_error(model, files, bundle, folder)
        row["strict"] = compiler.verify(model, bundle, given)
    except Failure as failure:
        row["failure"] = str(failure)
    return row


def examine_unfolded(name, model, folder):
    """Nodes of the file, its symbolic extents bound, kernels of the bundle and its error; or what went wrong."""
    extents = {axis: axis.removeprefix("d") for axes in export.symbolic_axes(export.RECIPES[name]).values()
               for axis in axes.values()}
    bound = [word for axis, extent in extents.items() for word in ("--dim", f"{axis}={extent}")]
    bundle, reference, report = folder / "unfolded.fusion", folder / "reference.fusion", folder / "unfolded.json"
    try:
        call("fusion-compile", model, bundle, "--json", report, *bound)
        account = json.loads(report.read_text())
        row = {count: account[count] for count in ("nodes", "kernels")}
        call("fusion-compile", model, reference, "--planner", "none", "--math", "strict", *bound)
        given = [word for key, file in write_inputs(name, folder).items() for word in ("--input", f"{key}={file}")]
        row["strict"] = verification(bundle, "--reference", reference, *given)
    except Failure as failure:
        return {"failure": str(failure)}
    return row


def number(value):
    if value is None:
        return "–"
    return f"{value:.1e}" if isinstance(value, float) else str(value)


def megabytes(pair):
    return "–" if pair is None else f"{pair[0]:.0f} → {pair[1]:.0f}"


def paper_cells(name):
    """Two cells: layers → kernels and megabytes of each paper that counts this model, and the papers' names."""
    counts, sizes, papers = [], [], []
    for paper, models in PAPERS.items():
        if name not in models:
            continue
        papers.append(paper)
        figures = models[name]
        if figures.kernels is not None:
            before = "" if figures.layers is None else f"{figures.layers} → "
            counts.append(f"{before}{figures.kernels} ({paper})")
        if figures.megabytes is not None:
            sizes.append(megabytes(figures.megabytes))
    return ", ".join(counts) or "–", ", ".join(sizes) or "–", ", ".join(papers)


def fusion_rates(name, counts):
    """Operators of the model by kernels, ours and DNNFusion's."""
    paper = PAPERS["DNNFusion"].get(name, Paper())
    theirs = f" ({paper.layers / paper.kernels:.2f})" if paper.layers and paper.kernels else ""
    return f"{counts['nodes'] / counts['kernels']:.2f}{theirs}"


def unfolded_rows(rows):
    """Of the models that DNNFusion counts."""
    for name, row in rows.items():
        unfolded, paper = row.get("unfolded"), PAPERS["DNNFusion"].get(name, Paper())
        if unfolded is None or "failure" in unfolded or paper.layers is None or "submit" not in row:
            continue
        yield [name, str(row["submit"]["nodes"]), str(unfolded["nodes"]), str(paper.layers), str(unfolded["kernels"]),
               str(paper.kernels), fusion_rates(name, unfolded), number(unfolded["strict"])]


def model_row(name, row):
    counts, sizes, papers = paper_cells(name)
    submit = row.get("submit")
    if submit is None:
        return [name, papers, *["–"] * 8, counts, sizes]
    between = [submit["intermediate_bytes"][when] / 1e6 for when in ("before", "after")]
    theirs = PAPERS["DNNFusion"].get(name, Paper()).layers
    seconds = f"{submit['seconds']:.1f}" + ("*" if row.get("offline") else "")
    nodes = str(submit["nodes"]) + (f" ({submit['nodes'] / theirs:.2f} of theirs)" if theirs else "")
    return [name, papers, nodes, str(submit["nodes_rewritten"]), f"{submit['kernels']} ({submit['kernels_distinct']})",
            fusion_rates(name, submit), megabytes(between), seconds, number(row.get("strict")), number(row.get("onnxruntime")), counts, sizes]


def plan_rows(rows):
    """Of each model, figures by estimates / by measurements."""
    for name, row in rows.items():
        plans = [row.get("plans", {}).get(by) for by in ("estimates", "measured")]
        if not any(plans):
            continue

        def both(figure):
            return " / ".join("–" if plan is None else figure(plan) for plan in plans)

        yield [name, both(lambda plan: str(plan["launches"])), both(lambda plan: str(plan["phases"])),
               both(lambda plan: str(plan["phases"] - plan["launches"])), both(lambda plan: str(plan["batches"])),
               both(lambda plan: f"{plan['bytes_between_kernels'] / 1e6:.2f}"),
               both(lambda plan: f"{plan['bytes_between_phases'] / 1e6:.2f}")]


HEAD = ["model", "papers", "nodes", "after rewriting", "kernels (distinct)", "fusion rate (DNNFusion's)",
        "intermediates MB", "seconds",
        "error against strict", "error against onnxruntime", "papers: layers → kernels", "DNNFusion: intermediates MB"]


INTRODUCTION = """# Models

Written by `tests/models/report.py`; do not edit. Models are those of `tests/models/export.py`, with seeded random
weights, compiled for `cpu`. They are the development set: the compiler was written with them in view, and models drawn
afterwards (`tests/models/zoo.py --fresh`) say what it does elsewhere.

    tests/models/export.py --out DIR
    tests/models/report.py --models DIR --onnxruntime

{cpu}, {cpus} CPUs shared with other work; {versions}; {first} to {last}.

- *Nodes* are the operators of the file, `Constant` not counted. The papers count layers of their own
  exporters' graphs, so compare ratios.
- The *fusion rate* is nodes by kernels, in brackets that of DNNFusion's Table 5. Theirs counts the layers of graphs in
  which a normalisation or an activation is several, so a model of 0.3 of their nodes cannot reach it with as few kernels.
- *Seconds* are those of the whole `fusionctl submit` with an empty profile database, or with a star of `fusion-compile`
  (`--offline`), where the cost model answers the yellow cases.
- *Errors* are the largest that `fusionctl verify` finds over all outputs on one random input, relative to the typical
  size of an element's row: against the same model compiled with `--planner none --math strict`, and against
  onnxruntime's outputs (`--expect`), rows that tie matched; what it does not accept is named.
- Detectors sort their rows by score. Where two scores tie, either order is right, and an error taken place by place is
  that of two different boxes. `fusionctl verify --expect` matches such rows. Among 100 rows of Mask R-CNN (weights drawn with each tensor's original mean and deviation, normal input)
  three pairs whose scores differ by 1.2e-7 had traded places, 0.90 of the largest coordinate; matched, boxes agree to
  7.6e-05. One mask then differs, by 0.63, pasted into a box that is one pixel wide: the strict form of the same
  program differs from the fused one by as much there, and nudged inputs move it by 0.63.
"""

PLANS = """## Launches, phases and batches

A launch runs a kernel; a kernel has phases, and its tasks wait for each other at a barrier between two of them. A batch is one launch that
runs a kernel for several sets of arguments. A value of the graph that one launch writes and another reads is handed *between kernels*, what a
launch writes and reads again itself *between phases* (or steps of its tasks); both go through memory. Figures are those of the plan by estimates (`fusion-compile`, the
cost model answers) / of the plan of a server whose worker measures; – where the server was left out (`--offline`).

| model | launches | phases | barriers inside of kernels | launches that are batches | MB between kernels | MB between phases |
|---|---:|---:|---:|---:|---:|---:|"""

UNFOLDED = """## With nothing folded by the exporter

`tests/models/export.py --unfolded`: an exporter that is let folds batch norms into convolutions, and arithmetic on shapes
where they are static; the compiler does both itself. DNNFusion's numbers of layers are those of graphs that hold
them, so these are the fusion rates to compare with its. `Constant` is not counted here either. VGG-16's 51 layers are
its 38 operators and the biases of its 13 convolutions, which ONNX has no operator for: counted so, 17 kernels are 3.00.
Each was compiled by `fusion-compile` and run; the error is against its own unfused strict form.

| model | nodes, folded | nodes, unfolded | DNNFusion's layers | kernels | DNNFusion's | fusion rate (DNNFusion's) | error against strict |
|---|---:|---:|---:|---:|---:|---:|---:|"""

SOURCES = """## Where the papers' figures are from

- DNNFusion (PLDI 2021), Table 5: all layers before, kernels (DNNF) and sizes of intermediate results before and after.
- Souffle (ASPLOS 2024), Table 5: GPU kernel calls.
- FusionStitching (2020), Table 2: GPU kernel and memory calls of TensorFlow → of theirs, inference, at its batch sizes.
- GraphTurbo (OSDI 2023) and PowerFusion (2023) name these models and print no counts.
"""


def document(results, about):
    rows = {name: results["models"][name] for name in ORDER if name in results["models"]}
    dates = sorted(row["date"] for row in rows.values())
    lines = [INTRODUCTION.format(first=dates[0], last=dates[-1], **about),
             "| " + " | ".join(HEAD) + " |", "|---|---" + "|---:" * 8 + "|---|---|"]
    lines += ["| " + " | ".join(model_row(name, row)) + " |" for name, row in rows.items()]
    plans = ["| " + " | ".join(row) + " |" for row in plan_rows(rows)]
    if plans:
        lines += ["", PLANS, *plans]
    unfolded = ["| " + " | ".join(row) + " |" for row in unfolded_rows(rows)]
    if unfolded:
        lines += ["", UNFOLDED, *unfolded]
    failures = [f"- `{name}`: {row['failure']}" for name, row in rows.items() if "failure" in row]
    failures += [f"- `{name}`, unfolded: {row['unfolded']['failure']}" for name, row in rows.items()
                 if "failure" in row.get("unfolded", {})]
    absent = [name for name in ORDER if name not in rows]
    if failures or absent:
        lines += ["", "## What fails", "", *failures]
        lines += [f"- not tried: {', '.join(absent)}"] if absent else []
    return "\n".join([*lines, "", SOURCES])


def describe_machine(with_onnxruntime):
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
               platform.machine())
    words = subprocess.run([BIN / "fusionctl", "version"], capture_output=True, text=True).stdout.split()
    versions = [" ".join(words[:2]) or "fusion"]
    if with_onnxruntime:
        import onnxruntime
        versions.append(f"onnxruntime {onnxruntime.__version__}")
    return {"cpu": cpu, "cpus": len(os.sched_getaffinity(0)), "versions": ", ".join(versions)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which models; all that DIR has by default")
    parser.add_argument("--models", type=pathlib.Path, required=True, metavar="DIR", help="what export.py wrote")
    parser.add_argument("--unfolded", type=pathlib.Path, metavar="DIR", help="what export.py --unfolded wrote")
    parser.add_argument("--offline", action="store_true", help="fusion-compile only, no server")
    parser.add_argument("--onnxruntime", action="store_true", help="compare with it as well")
    parser.add_argument("--results", type=pathlib.Path, metavar="FILE.json", help="default: DIR/report.json")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/models.md")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in ORDER]
    if unknown:
        parser.error(f"no model {', '.join(unknown)}; there are {', '.join(ORDER)}")
    store = options.results or options.models / "report.json"
    results = json.loads(store.read_text()) if store.is_file() else {"models": {}}
    results["about"] = describe_machine(options.onnxruntime)
    for name in options.names or ORDER:
        model = options.models.resolve() / f"{name}.onnx"
        if not model.is_file():
            print(f"{name}: no {model}", file=sys.stderr)
            continue
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-models-"))
        compiler = None
        try:
            compiler = Offline(folder) if options.offline else Service(folder)
            row = examine(compiler, name, model, folder, options.onnxruntime)
            if options.unfolded and (options.unfolded / f"{name}.onnx").is_file():
                row["unfolded"] = examine_unfolded(name, options.unfolded / f"{name}.onnx", folder)
        finally:
            if compiler is not None:
                compiler.close()
            shutil.rmtree(folder, ignore_errors=True)
        results["models"][name] = row
        store.write_text(json.dumps(results, indent=1) + "\n")
        print(" | ".join(model_row(name, row)), row.get("failure", ""), flush=True)
    options.out.write_text(document(results, results["about"]))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Resources that the kernels of models take on a GPU (registers, shared memory, spills), from the cubins without a GPU.

usage: cuda_resources.py [--targets cuda:sm_80,cuda:sm_90] [--compiler build/release/bin/fusion-compile]
                         [--precision fp32|fp16|tf32] [--bundles DIR] [--kernels FILE.csv] MODEL.onnx ...

Compiles each model for each target (NVRTC of the CUDA toolkit has to be installed) and prints a Markdown table with a
row for each model and target; the last column compares the registers with the estimate that planners had (plan.json).
Behind the table is how both fill a multiprocessor, up to a quarter of its work-items: the cost model asks for no more.
--bundles keeps the bundles there and uses those that exist; --kernels writes a line for
each kernel. A cubin's .nv.info has the registers and the stack frame of a thread; the size of a section is the shared
memory of a thread block. A frame holds memory that a thread addresses at run time, or values that did not fit the
registers; NVRTC tells which of the two it is for kernels that have a frame. Needs Python's standard library only.
"""
import argparse
import ctypes
import json
import pathlib
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
REGISTERS, FRAME = 0x2F, 0x11  # EIATTR_REGCOUNT, EIATTR_FRAME_SIZE
NUMBER_FORMAT = 0x04  # EIFMT_SVAL: a size, then the values


class Cubin:
    """kernels: by name, {"registers", "frame", "shared", "code"}, in bytes but for registers."""

    def __init__(self, data):
        offset, = struct.unpack_from("<Q", data, 0x28)
        size, count, names = struct.unpack_from("<HHH", data, 0x3A)
        headers = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(count)]

        def text(table, at):
            begin = headers[table][4] + at
            return data[begin:data.index(b"\0", begin)].decode()

        sections = {text(names, header[0]): header for header in headers}
        symbols = sections[".symtab"]
        symbol_names = [text(symbols[6], struct.unpack_from("<I", data, at)[0])
                        for at in range(symbols[4], symbols[4] + symbols[5], 24)]
        self.kernels = {name.removeprefix(".text."): {"registers": 0, "frame": 0, "shared": 0, "code": header[5]}
                        for name, header in sections.items() if name.startswith(".text.")}
        for name, kernel in self.kernels.items():
            if ".nv.shared." + name in sections:
                kernel["shared"] = sections[".nv.shared." + name][5]
        at, end = sections[".nv.info"][4], sum(sections[".nv.info"][4:6])
        while at < end:
            form, attribute, length = struct.unpack_from("<BBH", data, at)
            at += 4
            if form != NUMBER_FORMAT:
                continue
            if length == 8 and attribute in (REGISTERS, FRAME):
                symbol, value = struct.unpack_from("<II", data, at)
                if symbol_names[symbol] in self.kernels:
                    self.kernels[symbol_names[symbol]]["registers" if attribute == REGISTERS else "frame"] = value
            at += length


def spills(source, architecture):
    """Bytes that each kernel stores because registers are short, by what ptxas says inside NVRTC."""
    for name in ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"):
        try:
            nvrtc = ctypes.CDLL(name)
            break
        except OSError:
            continue
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernel.cu", 0, None, None)
    options = [b"--gpu-architecture=" + architecture.encode(), b"--std=c++17", b"--disable-warnings",
               b"--ptxas-options=-v"]
    code = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if code != 0:
        sys.exit("NVRTC does not build a text again:\n" + log.value.decode()[:2000])
    found = re.findall(r"entry function '(\w+)'.*?(\d+) bytes spill stores", log.value.decode(), re.S)
    return {name: int(stored) for name, stored in found}


def estimates(manifest, plan):
    """Registers and work-items by symbol, as the plan's account estimates them. An account has those of the launch with
    the least occupancy, so kernels of several launches are left out."""
    by_nodes = {tuple(node["name"] for node in block["nodes"]): block["occupancy"]
                for block in plan["fusion_blocks"] if "occupancy" in block}
    found = {}
    for launch in manifest["launches"]:
        kernel = manifest["kernels"][launch["kernel"]]
        account = by_nodes.get(tuple(launch["nodes"]))
        if account is not None and (len(kernel["phases"]) == 1 or kernel.get("resident")):
            found[kernel["phases"][0]["symbol"]] = (account["registers"], account["work_items"])
    return found


def kernels_of(path, architecture):
    """Every function of the bundle's cubins, with the launch that it belongs to first."""
    rows = []
    with zipfile.ZipFile(path) as bundle:
        manifest = json.loads(bundle.read("manifest.json"))
        estimated = estimates(manifest, json.loads(bundle.read("plan.json")))
        labels = {}
        for launch in manifest["launches"]:
            for phase in manifest["kernels"][launch["kernel"]]["phases"]:
                labels.setdefault(phase["symbol"], launch["label"])
        for name in sorted(bundle.namelist()):
            if not name.endswith(".cubin"):
                continue
            kernels = Cubin(bundle.read(name)).kernels
            stored = {}
            if any(kernel["frame"] for kernel in kernels.values()):
                source = name.replace("kernels/", "src/").replace(".cubin", ".cu")
                stored = spills(bundle.read(source), architecture)
            for symbol, kernel in kernels.items():
                registers, work_items = estimated.get(symbol, (0, 0))
                rows.append(dict(kernel, symbol=symbol, label=labels.get(symbol, ""), spills=stored.get(symbol, 0),
                                 estimate=registers, work_items=work_items))
    return rows


def estimate_errors(rows):
    """estimate / registers - 1 of each kernel that has an estimate, the worst last."""
    return sorted((row["estimate"] / row["registers"] - 1 for row in rows if row["estimate"]), key=abs)


def filled(registers, work_items):
    """The part of a multiprocessor's 2,048 work-items for which 65,536 registers have room, up to a quarter. A warp's
    registers are allotted by 256."""
    warps = -(-work_items // 32)
    groups = 65536 // (-(-registers * 32 // 256) * 256) // warps
    return min(groups * warps * 32 / 2048, 0.25)


def filled_errors(rows):
    """As estimate_errors, of what the registers leave room for."""
    return sorted((filled(row["estimate"], row["work_items"]) / filled(row["registers"], row["work_items"]) - 1
                   for row in rows if row["estimate"]), key=abs)


def error_text(errors):
    if not errors:
        return ""
    near = sum(abs(error) <= 0.2 for error in errors)
    return "%.0f%%, %d of %d, %+.0f%%" % (100 * statistics.median(map(abs, errors)), near, len(errors), 100 * errors[-1])


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--targets", default="cuda:sm_80,cuda:sm_90")
    parser.add_argument("--compiler", default=ROOT / "build/release/bin/fusion-compile")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--bundles", type=pathlib.Path)
    parser.add_argument("--kernels", type=pathlib.Path)
    options = parser.parse_args()
    folder = options.bundles or pathlib.Path(tempfile.mkdtemp(prefix="fusion-cuda-"))
    folder.mkdir(parents=True, exist_ok=True)
    every = []
    print("| model | target | kernels | registers: median, most | with 255 | shared memory: most | stack: kernels, most "
          "bytes | spills: kernels, most bytes | seconds | error of estimated registers: median, within 20%, worst |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for model in options.models:
        for target in options.targets.split(","):
            architecture = target.split(":")[1]
            path = folder / ("%s.%s.%s.fusion" % (model.stem, architecture, options.precision))
            seconds = ""
            if not path.exists():
                start = time.monotonic()
                command = [options.compiler, model, path, "--target", target, "--precision", options.precision]
                done = subprocess.run(command, capture_output=True, text=True)
                seconds = "%.0f" % (time.monotonic() - start)
                if done.returncode != 0:
                    print("| %s | %s | %s ||||||| %s ||" % (model.stem, architecture, done.stderr.strip().splitlines()[-1],
                                                          seconds))
                    continue
            rows = kernels_of(path, architecture)
            every += [dict(row, model=model.stem, architecture=architecture) for row in rows]
            if not rows:
                continue
            registers = [row["registers"] for row in rows]
            stacks = [row["frame"] for row in rows if row["frame"]]
            stored = [row["spills"] for row in rows if row["spills"]]
            some = lambda values: "%d, %d" % (len(values), max(values)) if values else "0"
            print("| %s | %s | %d | %d, %d | %d | %d | %s | %s | %s | %s |" % (
                model.stem, architecture, len(rows), statistics.median(registers), max(registers), registers.count(255),
                max(row["shared"] for row in rows), some(stacks), some(stored), seconds,
                error_text(estimate_errors(rows))), flush=True)
    if len(options.models) * len(options.targets.split(",")) > 1 and every:
        print("Estimated registers of all: " + error_text(estimate_errors(every)))
        print("How they fill a multiprocessor, up to a quarter: " + error_text(filled_errors(every)))
    if options.kernels:
        columns = ["model", "architecture", "symbol", "registers", "shared", "frame", "spills", "code", "estimate", "label"]
        lines = [",".join(columns)] + [",".join(str(row[c]).replace(",", ";") for c in columns) for row in every]
        options.kernels.write_text("\n".join(lines) + "\n")
    spilled = [row for row in every if row["spills"]]
    for row in spilled:
        print("spills %d bytes: %s %s %s %s" % (row["spills"], row["model"], row["architecture"], row["symbol"], row["label"]),
              file=sys.stderr)
    return 1 if spilled else 0


if __name__ == "__main__":
    sys.exit(main())

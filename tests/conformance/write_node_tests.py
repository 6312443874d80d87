#!/usr/bin/python3
"""Writes the node tests of the installed onnx package, in the layout that onnx_conformance --root reads.

usage: write_node_tests.py DIR [--op OPERATOR]

Each test is a folder: model.onnx, and test_data_set_0 with input_N.pb and output_N.pb. ONNX seeds numpy before each
group of tests, so that the bytes are the same every time for one version of onnx and numpy.
Needs onnx and numpy (pip install onnx).
"""
import argparse
import pathlib
import sys

try:
    import onnx
    from onnx import numpy_helper
    from onnx.backend.test.case import node
except ImportError as error:
    print(f"{error.name} is missing: pip install onnx numpy", file=sys.stderr)
    sys.exit(1)

TOLERANCE = (1e-3, 1e-7)  # relative and absolute: the only tolerance that the runner knows (tolerance.h)


def as_proto(value, info):
    """A value of a test as the message that its declared type asks for."""
    if info.type.HasField("sequence_type"):
        return numpy_helper.from_list(value, info.name)
    if info.type.HasField("optional_type"):
        return numpy_helper.from_optional(value, info.name)
    if info.type.HasField("map_type"):
        return numpy_helper.from_dict(value, info.name)
    return value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(value, info.name)


def write(case, folder):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    inputs, outputs = case.data_sets[0]
    for kind, values, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
        for i, (value, info) in enumerate(zip(values, infos, strict=True)):
            (data / f"{kind}_{i}.pb").write_bytes(as_proto(value, info).SerializeToString())
    if (case.rtol, case.atol) != TOLERANCE:
        sys.exit(f"{case.name} allows the errors {case.rtol:g} and {case.atol:g}, onnx_conformance only {TOLERANCE}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--op", help="only this operator's tests, with the functions that they expand into")
    options = parser.parse_args()
    cases = node.collect_testcases(options.op)
    for case in cases:
        write(case, options.dir / case.name)
    print(f"{len(cases)} node tests of onnx {onnx.__version__} (opset {onnx.defs.onnx_opset_version()}) in {options.dir}")


if __name__ == "__main__":
    main()

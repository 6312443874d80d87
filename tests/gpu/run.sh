#!/bin/sh
# Checks and times every kernel of bundles of target cuda on this machine's GPU. It needs the GPU's driver, python3 and a
# C++ compiler (the one that nvcc works with will do); nothing else of the project is built.
#
#   tests/gpu/run.sh FOLDER [OPTION...]     every *.fusion of the folder; check.py --help has the options
#
# The bundles come from any machine with NVRTC:
#   fusion-compile MODEL.onnx FOLDER/MODEL.fusion --target cuda:sm_90
# Memory errors and races: compute-sanitizer tests/gpu/run.sh FOLDER --runs 0
set -eu
[ $# -ge 1 ] || { sed -n '2,9p' "$0"; exit 2; }
folder=$1
shift
exec python3 -B "$(dirname "$0")/check.py" "$@" "$folder"/*.fusion

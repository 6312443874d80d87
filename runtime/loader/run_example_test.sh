#!/bin/sh
# Usage: run_example_test.sh MAKE_TINY_BUNDLE RUN_BUNDLE_EXAMPLE
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" "$folder/tiny.fusion"
"$2" "$folder/tiny.fusion" | tee "$folder/out"
# y = relu(x * w + b) with x = 1, w = i + 1, b = -1: 0 1 2 3 ...
grep -qx 'y: 0 1 2 3 4 5 6 7' "$folder/out"
if "$2" "$folder/none.fusion" 2>"$folder/err"; then exit 1; fi
grep -q 'none.fusion' "$folder/err"

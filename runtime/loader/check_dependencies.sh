#!/bin/sh
# Usage: check_dependencies.sh LIBRARY. The runtime library must load neither libraries of the service nor optional
# drivers, and export nothing but fusion_*.
set -eu
if ldd "$1" | grep -Ei 'grpc|protobuf|sqlite|onnx|prometheus|opencl|libcuda'; then
  echo "the runtime must not depend on the libraries above" >&2
  exit 1
fi
exported=$(nm -D --defined-only "$1" | awk '{print $3}' | grep -v '^fusion_' || true)
if [ -n "$exported" ]; then
  echo "the runtime exports more than its C interface:" >&2
  echo "$exported" | head >&2
  exit 1
fi
echo "ok"

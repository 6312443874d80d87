// A valid manifest of few fields, which tests change.
#ifndef FUSION_RUNTIME_BUNDLE_TESTING_SMALL_MANIFEST_H_
#define FUSION_RUNTIME_BUNDLE_TESTING_SMALL_MANIFEST_H_

#include <cstdint>
#include <vector>

#include "runtime/bundle/manifest.h"

namespace fusion::testing {

// `offsets`: of the constants in the weights; w is the first of them, v the third.
inline Manifest SmallManifest(const std::vector<int64_t>& offsets) {
  Manifest manifest;
  manifest.generator = "test";
  manifest.isa = "avx2";
  manifest.options = {{"planner", "none"}};
  manifest.model_name = "a \"quoted\" name\n";
  manifest.buffers = {{Buffer::Kind::kInput, "x", DType::kF32, {2, 3}, 24, 0, "row-major"},
                      {Buffer::Kind::kConstant, "w", DType::kF32, {3}, 12, offsets[0], ""},
                      {Buffer::Kind::kConstant, "v", DType::kI64, {2}, 16, offsets[2], ""},
                      {Buffer::Kind::kArena, "t", DType::kF32, {2, 3}, 24, 64, ""},
                      {Buffer::Kind::kOutput, "y", DType::kF32, {2, 3}, 24, 0, ""}};
  manifest.inputs = {{"x", DType::kF32, {2, 3}, 0}};
  manifest.outputs = {{"y", DType::kF32, {2, 3}, 4}};
  manifest.arena_bytes = 128;
  manifest.scratch_bytes_per_thread = 256;
  manifest.kernels = {{"kernels/cpu.so", {{"k0_phase0", 2}, {"k0_phase1", 1}}, "src/k0.cc"}};
  manifest.launches = {{0, {0, 1, 4}, "add 'x'", {"n0", "n1"}, 1.5e9, 123}};
  return manifest;
}

}  // namespace fusion::testing

#endif  // FUSION_RUNTIME_BUNDLE_TESTING_SMALL_MANIFEST_H_

// The contents of a machine's memories while a program is executed, read and written by slices.
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_MEMORIES_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_MEMORIES_H_

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "runtime/devices/dsa_sim/program.h"

namespace fusion::dsa {

// Buffers hold f32, f16 or bf16, and what is written rounds to the buffer's type. The program outlives this and has
// passed CheckOperands, so that slices lie in their buffers.
class Memories {
 public:
  explicit Memories(const Program& program);

  float Get(int buffer, int64_t element) const;
  void Set(int buffer, int64_t element, float value);

  // The elements of a slice in the order of its indices.
  void Read(const Slice& slice, std::vector<float>* values) const;
  void Write(const Slice& slice, const std::vector<float>& values);

 private:
  const Program& program_;
  std::map<std::tuple<int, int, int>, std::vector<uint8_t>> bytes_;  // by level, cluster and core
  std::vector<uint8_t*> base_;                                       // of each buffer, into bytes_
};

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_MEMORIES_H_

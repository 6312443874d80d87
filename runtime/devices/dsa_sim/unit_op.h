// The operations of unit code, in one table: their names, the kinds of their registers, and what they compute. Floats
// are doubles, integers are int64_t; names end in .f, .i or .u (unsigned) where the type matters.
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_UNIT_OP_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_UNIT_OP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/devices/dsa_sim/unit_instruction.h"

namespace fusion::dsa {

inline constexpr int kUnitLanes = 256;

// The registers and tensors of a step that runs.
struct UnitState {
  std::vector<double> doubles;    // [register][lane]
  std::vector<int64_t> integers;  // [register][lane]
  struct Array {
    const float* data = nullptr;
    int64_t elements = 0;
  };
  std::vector<Array> arrays;  // by tensor
  // Facts about an integer register's first lanes, which hold until it is written: many loads find addresses in one.
  struct LaneFacts {
    int lanes = 0;  // 0: nothing is known
    int64_t least = 0, most = 0;
    enum Form : uint8_t { kAny, kEqual, kConsecutive } form = kAny;
  };
  std::vector<LaneFacts> facts;             // by integer register; a shorter list knows nothing of the others
  const UnitInstruction* failed = nullptr;  // the access that failed, with the offending value
  int64_t failed_value = 0;

  double* D(int r) { return doubles.data() + static_cast<int64_t>(r) * kUnitLanes; }
  // Finds the facts of the first `lanes` lanes, or of more of them.
  const LaneFacts& FactsOf(int r, int lanes);
  // To be called when an integer register is written.
  void Forget(int r) {
    if (static_cast<size_t>(r) < facts.size()) facts[r].lanes = 0;
  }
  int64_t* I(int r) { return integers.data() + static_cast<int64_t>(r) * kUnitLanes; }
};

struct UnitOp {
  const char* name = "";
  void (*run)(UnitState& state, const UnitInstruction& instruction, int lanes) = nullptr;
  // Kinds of registers: 'f' doubles, 'i' integers, '-' not used.
  char dst = '-', a = '-', b = '-', c = '-';
  bool reads_tensor = false;
};

// Returns null where there is none. Operations live forever.
const UnitOp* FindUnitOp(absl::string_view name);
std::vector<std::string> UnitOpNames();  // sorted

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_UNIT_OP_H_

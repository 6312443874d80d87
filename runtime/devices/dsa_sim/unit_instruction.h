// An instruction of unit code (unit_code.h).
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_UNIT_INSTRUCTION_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_UNIT_INSTRUCTION_H_

#include <cstdint>

namespace fusion::dsa {

struct UnitOp;

// On how many lanes an instruction works: on all that there are, because its result changes with nothing; on one, since
// its result is the same in all points of a strip; or on the points of the strip.
enum class UnitWidth : uint8_t { kConstant, kOne, kLanes };

struct UnitInstruction {
  const UnitOp* op = nullptr;
  UnitWidth width = UnitWidth::kLanes;
  int dst = 0, a = 0, b = 0, c = 0;  // registers, of the kinds that the operation has
  int64_t imm = 0, imm2 = 0;
  double fimm = 0;
  int tensor = -1;
};

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_UNIT_INSTRUCTION_H_

// Unit code: the register program by which the simulator computes one part of a tensor expression. A program whose
// expressions are unit code carries its own numbers, so that it runs without the compiler that made it.
//
// A part holds its tensors as whole arrays of floats, copies the instruction's operands into some of them, runs its
// steps one after another, and copies the results out. A step computes tensors over one domain: its registers hold
// kLanes consecutive points of the domain, integers or doubles, and each instruction works on all of them. Which lists
// of instructions run when:
//   once; for each strip of up to kLanes points { axes; pre; init; for each point of the reduction { its axes; each };
//   post; store }
//
// Text, which ParseUnitCode(PrintUnitCode(c)) prints the same again:
//   tensor f32 [4, 8]
//   tensor f32 [4]
//   operand 0 at [0, 0] box [4, 8]             # the instruction's first operand lies in tensor 0
//   result 1 at [0] box [4]
//   step registers 2 3                         # doubles, integers
//     axis 1 4                                 # register (0: none needs it), extent
//     reduce 2 8
//     pre
//       add_mul lanes 3 0 1 0 8 0 0 -1         # operation, width, dst, a, b, c, imm, imm2, fimm, tensor
//     …
//     store 1 0                                # tensor, register
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_UNIT_CODE_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_UNIT_CODE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/dtype.h"
#include "runtime/devices/dsa_sim/unit_instruction.h"

namespace fusion::dsa {

struct UnitAxis {
  int reg = 0;  // an integer register; 0: not used
  int64_t extent = 1;
};

struct UnitStep {
  int doubles = 0, integers = 1;  // registers; integer register 0 holds zeros
  std::vector<UnitAxis> axes, reduction;
  enum List { kOnce, kPre, kInit, kEach, kPost, kLists };
  std::array<std::vector<UnitInstruction>, kLists> lists;
  struct Store {
    int tensor = -1, reg = 0;  // of doubles where the tensor's type is a float
  };
  std::vector<Store> stores;
};

struct UnitTensor {
  DType dtype = DType::kF32;  // elements round or wrap to it; the array holds floats
  std::vector<int64_t> extents;

  int64_t elements() const;
};

// A box of a tensor, which an operand or a result of the instruction is.
struct UnitBox {
  int tensor = -1;
  std::vector<int64_t> at, extents;

  bool IsWhole(const UnitTensor& tensor) const { return extents == tensor.extents; }
};

struct UnitCode {
  std::vector<UnitTensor> tensors;
  std::vector<UnitBox> operands, results;  // parallel to those of the instruction
  std::vector<UnitStep> steps;
};

std::string PrintUnitCode(const UnitCode& code);
// INVALID_ARGUMENT "line 3: …" for another grammar, an unknown operation, and registers, tensors or boxes that are not
// there, so that what parses can be run.
absl::StatusOr<UnitCode> ParseUnitCode(absl::string_view text);

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_UNIT_CODE_H_

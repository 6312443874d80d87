// Texts in C of single elements: types, immediates, indices and conditions, and how an element lies in memory.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_ELEMENT_TEXT_H_
#define FUSION_COMPILER_BACKENDS_TEXT_ELEMENT_TEXT_H_

#include <functional>
#include <string>

#include "compiler/movement/kernel.h"

namespace fusion::text {

using AxisName = std::function<std::string(int axis_id)>;

const char* CType(DType dtype);        // type of a value in a register: f16 and bf16 are float
const char* StorageType(DType dtype);  // type of an element in memory

// C expression of an index. `name` names the axes; buffers are b<number>.
std::string IndexText(const te::Index& index, const AxisName& name, const movement::Kernel& kernel);
std::string PredText(const te::Pred& pred, const AxisName& name, const movement::Kernel& kernel);
// Text that loads an element, or stores a value, of the buffer's type.
std::string LoadText(const movement::Buffer& buffer, const std::string& place);
std::string StoreText(const movement::Buffer& buffer, const std::string& place, const std::string& value);
// Text of a scalar's low bits, as i4, u4, i2 or u2 keeps them.
std::string KeptBits(DType dtype, const std::string& x);

std::string ImmText(const te::ScalarNode& imm);
// Name of the helper for values of a type, "smax_i64", and its suffix; f16 and bf16 are computed in f32.
std::string TypeSuffix(DType dtype);
std::string TypedName(const std::string& name, DType dtype);
// Type of a pointer to elements of the buffer: "GLOBAL const float*", "SCRATCH u16*".
std::string PointerType(const movement::Buffer& buffer, bool read_only);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_ELEMENT_TEXT_H_

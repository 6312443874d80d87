// The value of a name of the model during import. Only tensors reach the graph: sequences and optionals are lists of
// values whose structure is known at compile time.
#ifndef FUSION_COMPILER_ONNX_IMPORTED_VALUE_H_
#define FUSION_COMPILER_ONNX_IMPORTED_VALUE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/ecg/graph.h"

namespace fusion::onnx_import {

struct ImportedValue {
  enum class Kind : uint8_t { kTensor, kSequence, kOptional };

  Kind kind = Kind::kTensor;
  ecg::ValueId tensor = ecg::kNone;     // kTensor
  std::vector<ImportedValue> elements;  // kSequence: in order; kOptional: one, or none where it is absent

  static ImportedValue Tensor(ecg::ValueId id) { return {Kind::kTensor, id, {}}; }
  static ImportedValue Sequence(std::vector<ImportedValue> elements) {
    return {Kind::kSequence, ecg::kNone, std::move(elements)};
  }
  static ImportedValue Optional(std::vector<ImportedValue> element) {
    return {Kind::kOptional, ecg::kNone, std::move(element)};
  }
};

inline const char* KindName(ImportedValue::Kind kind) {
  switch (kind) {
    case ImportedValue::Kind::kTensor:
      return "a tensor";
    case ImportedValue::Kind::kSequence:
      return "a sequence";
    case ImportedValue::Kind::kOptional:
      return "an optional";
  }
  return "?";
}

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_IMPORTED_VALUE_H_

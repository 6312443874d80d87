// A call to a library of the target, which computes a whole phase instead of generated kernel code.
#ifndef FUSION_RUNTIME_BUNDLE_LIBRARY_CALL_H_
#define FUSION_RUNTIME_BUNDLE_LIBRARY_CALL_H_

#include <variant>
#include <vector>

#include "runtime/bundle/library_convolution.h"
#include "runtime/bundle/library_product.h"

namespace fusion {

using LibraryCall = std::variant<LibraryProduct, LibraryConvolution>;

// Returns pointers to the call's argument indices, the result last. Absent optional arguments are left out. The
// pointers point into `call`.
inline std::vector<int*> ArgumentsOf(LibraryCall& call) {
  if (auto* convolution = std::get_if<LibraryConvolution>(&call)) {
    return {&convolution->x, &convolution->w, &convolution->y};
  }
  auto& product = std::get<LibraryProduct>(call);
  if (product.bias < 0) return {&product.a, &product.b, &product.d};
  return {&product.a, &product.b, &product.bias, &product.d};
}

// Returns the argument that the call writes.
inline int ResultOf(const LibraryCall& call) {
  const auto* convolution = std::get_if<LibraryConvolution>(&call);
  return convolution != nullptr ? convolution->y : std::get<LibraryProduct>(call).d;
}

// Returns one of the arguments that the call multiplies; these all have one element type.
inline int OperandOf(const LibraryCall& call) {
  const auto* convolution = std::get_if<LibraryConvolution>(&call);
  return convolution != nullptr ? convolution->x : std::get<LibraryProduct>(call).a;
}

// Returns how many pairs of elements the call multiplies.
inline double MultiplicationsOf(const LibraryCall& call) {
  if (const auto* p = std::get_if<LibraryProduct>(&call)) {
    return static_cast<double>(p->m) * static_cast<double>(p->n) * static_cast<double>(p->depth) *
           static_cast<double>(p->batches);
  }
  const auto& c = std::get<LibraryConvolution>(call);
  return static_cast<double>(c.images * c.out[0] * c.out[1]) * static_cast<double>(c.w_elements());
}

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_LIBRARY_CALL_H_

// A product of matrices that a library of the target performs (cuBLASLt), in terms that such libraries share.
#ifndef FUSION_RUNTIME_BUNDLE_LIBRARY_PRODUCT_H_
#define FUSION_RUNTIME_BUNDLE_LIBRARY_PRODUCT_H_

#include <cstdint>

namespace fusion {

// For each batch d[i, j] = Σ_k a[i, k] · b[k, j], i < m, j < n, k < depth, summed in f32. In d, neighbours in memory
// differ in i. A pitch is the number of elements from one row or column of a matrix to the next; a batch stride is the
// number from one matrix to the next. a and b are both f32 or both f16; d is f32, or f16 if they are.
struct LibraryProduct {
  int a = -1, b = -1, d = -1;  // arguments of the kernel
  int bias = -1;               // m values of f32 that are added to each column of d, which must be f32; -1: no bias
  int64_t m = 1, n = 1, depth = 1, batches = 1;
  bool a_along_depth = false, b_along_depth = false;  // true: neighbours in memory differ in k; else in i (a), in j (b)
  int64_t a_pitch = 1, b_pitch = 1, d_pitch = 1;
  int64_t a_batch = 0, b_batch = 0, d_batch = 0;
  bool tf32 = false;  // f32 operands may be rounded to tf32

  // Number of elements from the first one to the end of the last one, gaps included.
  int64_t a_elements() const {
    return Elements(a_along_depth ? m : depth, a_along_depth ? depth : m, a_pitch, a_batch);
  }
  int64_t b_elements() const {
    return Elements(b_along_depth ? n : depth, b_along_depth ? depth : n, b_pitch, b_batch);
  }
  int64_t d_elements() const { return Elements(n, m, d_pitch, d_batch); }

 private:
  int64_t Elements(int64_t outer, int64_t inner, int64_t pitch, int64_t batch) const {
    return (batches - 1) * batch + (outer - 1) * pitch + inner;
  }
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_LIBRARY_PRODUCT_H_

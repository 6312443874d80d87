// MeasurementBundles: writes the bundle with which a worker measures a question. Kernels are printed and built only for
// questions that somebody measures.
#ifndef FUSION_COMPILER_MEASURE_MEASUREMENT_BUNDLE_H_
#define FUSION_COMPILER_MEASURE_MEASUREMENT_BUNDLE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/api/compile_context.h"
#include "compiler/cost/latency_oracle.h"
#include "compiler/kernels/fusion_kernel.h"

namespace fusion {

// `context` must outlive it.
class MeasurementBundles : public MeasurementBundler {
 public:
  MeasurementBundles(const CompileContext& context, int threads) : context_(context), threads_(threads) {}

  // From here on, the kernels can be asked for by this key.
  void Add(const std::string& key, KernelSequence kernels);
  absl::StatusOr<std::vector<std::string>> MakeBundles(absl::Span<const std::string> keys) override;

 private:
  const CompileContext& context_;
  const int threads_;
  std::map<std::string, KernelSequence> by_key_;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_MEASURE_MEASUREMENT_BUNDLE_H_

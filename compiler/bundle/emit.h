// Emit: writes the kernels, weights and programs of a compilation, or of a measurement, as a bundle.
#ifndef FUSION_COMPILER_BUNDLE_EMIT_H_
#define FUSION_COMPILER_BUNDLE_EMIT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/api/compile_account.h"
#include "compiler/bundle/kernel_files.h"
#include "compiler/bundle/program_layout.h"
#include "compiler/kernels/fusion_kernel.h"
#include "runtime/bundle/manifest.h"

namespace fusion {

// Lays out memory and writes weights, kernels, texts, `account`'s plan and the manifest. Weights are packed as the
// kernels want them, once for all programs that share them. Files of `texts` that no launch uses are left out. The
// bundle survives a crash of the machine if it is `durable`.
absl::Status WriteBundle(const std::vector<BundleProgram>& programs, const KernelTexts& texts,
                         const std::vector<std::string>& binaries, const Manifest& head, const std::string& path,
                         CompileAccount* account, bool durable = true);

// Writes the tiny bundle with which a worker measures one kernel or several that run one after another. Every argument
// that is read (weights too) is an input, and every argument that is written is an output; a later kernel reads what an
// earlier one wrote. The file is not synced, because it is read back at once. Its options state the kernels' keys and
// the cost model's estimates for `threads`. `place` is the first kernel's text; the others follow.
absl::Status WriteMeasurementBundle(const KernelSequence& kernels, const KernelTexts& texts,
                                    std::vector<KernelTexts::Place>::const_iterator place,
                                    const std::vector<std::string>& binaries, const DeviceModel& device, int threads,
                                    const std::string& path);

}  // namespace fusion

#endif  // FUSION_COMPILER_BUNDLE_EMIT_H_

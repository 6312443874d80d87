#include "compiler/measure/measurement_bundle.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/bundle/emit.h"
#include "runtime/base/status_macros.h"

namespace fusion {

void MeasurementBundles::Add(const std::string& key, KernelSequence kernels) { by_key_[key] = std::move(kernels); }

absl::StatusOr<std::vector<std::string>> MeasurementBundles::MakeBundles(absl::Span<const std::string> keys) {
  std::vector<const KernelSequence*> sequences;
  std::vector<const FusionKernel*> kernels;
  for (const std::string& key : keys) {
    auto it = by_key_.find(key);
    if (it == by_key_.end()) return absl::InternalError(absl::StrCat("no fusion block was asked under key ", key));
    sequences.push_back(&it->second);
    for (const auto& kernel : it->second) kernels.push_back(kernel.get());
  }
  const KernelTexts texts = PrintKernels(kernels, *context_.device);
  ASSIGN_OR_RETURN(const std::vector<std::string> binaries, BuildTexts(texts, context_.toolchain));
  std::string folder = (std::filesystem::temp_directory_path() / "fusion-question-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr)
    return absl::ResourceExhaustedError(absl::StrCat("cannot make a folder ", folder));
  std::vector<std::string> bundles;
  absl::Status status;
  auto place = texts.places.begin();
  for (size_t q = 0; q < sequences.size() && status.ok(); ++q) {
    const std::string path = folder + "/question.fusion";
    status = WriteMeasurementBundle(*sequences[q], texts, place, binaries, *context_.device, threads_, path);
    if (!status.ok()) break;
    place += static_cast<std::ptrdiff_t>(sequences[q]->size());
    std::ifstream file(path, std::ios::binary);
    bundles.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (!status.ok()) return status;
  return bundles;
}

}  // namespace fusion

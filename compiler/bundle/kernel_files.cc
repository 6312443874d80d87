#include "compiler/bundle/kernel_files.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/backends/backend.h"
#include "compiler/backends/placement.h"
#include "compiler/movement/work_groups.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// Texts of about this size occupy both cores for a small model and amortise the prelude for a large one.
constexpr size_t kFileBytes = 96 << 10;

}  // namespace

std::string SourceName(const KernelTexts& texts, int file) {
  return absl::StrCat("src/kernels_", file, ".", FindBackend(texts.files[file].kind)->SourceExtension());
}
std::string BinaryName(const KernelTexts& texts, int file) {
  return absl::StrCat("kernels/kernels_", file, ".", FindBackend(texts.files[file].kind)->BinaryExtension());
}

ManifestKernel MakeManifestKernel(const KernelTexts& texts, const FusionKernel& fusion_kernel,
                                  const KernelTexts::Place& place) {
  ManifestKernel kernel;
  kernel.file = BinaryName(texts, place.file);
  kernel.source = SourceName(texts, place.file);
  kernel.on_host = texts.files[place.file].on_host;
  for (size_t a = 0; kernel.on_host && a < fusion_kernel.args.size(); ++a) {
    if (fusion_kernel.args[a].written) kernel.writes.push_back(static_cast<int>(a));
  }
  kernel.persistent = fusion_kernel.kernel.persistent;
  const std::vector<movement::PhaseRange> launches = movement::LaunchesOf(fusion_kernel.kernel);
  for (size_t p = 0; p < place.tasks.size(); ++p) {
    kernel.phases.push_back({PhaseSymbol(place.symbol, static_cast<int>(p)), place.tasks[p], {}});
    const LibraryCall* call = movement::LibraryCallOf(fusion_kernel.kernel.phases[launches[p].first]);
    // A buffer's number is that of its argument: buffers of scope kBlock come last.
    if (call != nullptr) kernel.phases.back().library = *call;
  }
  return kernel;
}

KernelTexts PrintKernels(const std::vector<const FusionKernel*>& kernels, const DeviceModel& device) {
  KernelTexts texts;
  std::map<std::string, KernelTexts::Place> known;
  std::vector<std::set<std::string>> routines;  // the routines that each file calls
  std::vector<Placement> placements;            // parallel to the files: the processor that each is for
  std::vector<int> open;                        // files that accept more kernels, one for each set of instructions
  const auto file_for = [&](const Placement& placement, const Instructions& instructions, size_t bytes) {
    const auto add = [&] {
      texts.files.push_back({"", placement.device.kind, instructions, placement.on_host});
      placements.push_back(placement);
      return static_cast<int>(texts.files.size()) - 1;
    };
    for (int& f : open) {
      if (texts.files[f].on_host != placement.on_host || texts.files[f].instructions != instructions) continue;
      if (texts.files[f].text.size() + bytes > kFileBytes) f = add();
      return f;
    }
    open.push_back(add());
    return open.back();
  };
  for (const FusionKernel* fusion_kernel : kernels) {
    auto it = known.find(fusion_kernel->key);
    if (it == known.end()) {
      const std::string symbol = absl::StrCat("k_", texts.distinct++);
      const Placement placement = PlaceKernel(fusion_kernel->kernel, device);
      const Backend& backend = *placement.backend;
      const std::string text = backend.PrintKernel(fusion_kernel->kernel, symbol, placement.device);
      const int f = file_for(placement, backend.InstructionsOf(fusion_kernel->kernel, placement.device), text.size());
      texts.files[f].text += text;
      routines.resize(texts.files.size());
      routines[f].merge(RoutinesOf(fusion_kernel->kernel));
      KernelTexts::Place place{f, symbol, {}};
      place.tasks = backend.LaunchedTasks(fusion_kernel->kernel, placement.device);
      it = known.emplace(fusion_kernel->key, std::move(place)).first;
    }
    texts.places.push_back(it->second);
  }
  for (size_t f = 0; f < texts.files.size(); ++f) {
    texts.files[f].text.insert(0, placements[f].backend->Preamble(routines[f], placements[f].device));
  }
  return texts;
}

void AppendTexts(KernelTexts more, KernelTexts* texts) {
  const int files = static_cast<int>(texts->files.size());
  for (KernelTexts::File& file : more.files) texts->files.push_back(std::move(file));
  for (KernelTexts::Place& place : more.places) {
    texts->places.push_back(std::move(place));
    texts->places.back().file += files;
  }
  texts->distinct += more.distinct;
}

absl::StatusOr<std::vector<std::string>> BuildTexts(const KernelTexts& texts, Toolchain* toolchain) {
  std::vector<BuildUnit> units;
  for (const KernelTexts::File& file : texts.files) {
    units.push_back({file.kind, file.instructions.march, file.text});
  }
  if (units.empty()) return std::vector<std::string>();
  return toolchain->Build(units);
}

}  // namespace fusion

#include "compiler/bundle/hold_once.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/movement/cost.h"
#include "compiler/movement/print.h"
#include "compiler/movement/read_packed.h"
#include "compiler/movement/verify.h"
#include "runtime/base/sha256.h"

namespace fusion {
namespace {

// Largest cost of holding a constant once, as a share of the estimated time of all launches.
constexpr double kMostTime = 1e-2;
// Smaller constants are not worth a separate kernel.
constexpr int64_t kLeastBytes = 4096;

struct Use {
  size_t launch = 0;
  const FusionKernel* fusion_kernel = nullptr;
  size_t arg = 0;
};

// The buffers that arguments stand for, in the order of the arguments.
std::vector<int> ArgumentBuffers(const movement::Kernel& kernel) {
  std::vector<int> buffers;
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    if (movement::IsArgument(kernel.buffers[b])) buffers.push_back(static_cast<int>(b));
  }
  return buffers;
}

// The ways in which a constant is read.
struct Reads {
  std::vector<Use> plain;
  std::map<std::string, Use> packed;  // by packing text
  const char* kept_plain = nullptr;   // why somebody needs it unpacked; null: nobody does
};

std::map<const void*, Reads> ReadsOf(const ecg::Graph& graph, const std::vector<PlannedLaunch>& launches) {
  std::map<const void*, Reads> reads;
  for (ecg::ValueId v : graph.outputs()) {
    if (graph.value(v).constant) reads[graph.value(v).constant->data()].kept_plain = "the model returns it";
  }
  for (size_t l = 0; l < launches.size(); ++l) {
    const auto add = [&](const FusionKernel& fusion_kernel) {
      for (size_t a = 0; a < fusion_kernel.args.size(); ++a) {
        const KernelArg& arg = fusion_kernel.args[a];
        if (arg.kind != KernelArg::Kind::kConstant || arg.value == ecg::kNone) continue;
        const Tensor& constant = *graph.value(arg.value).constant;
        Reads& one = reads[constant.data()];
        if (arg.pack >= 0 && KeepsOrder(fusion_kernel.kernel.packs[arg.pack], constant.num_elements())) {
          continue;  // reads the same bytes as those who read it unpacked
        }
        if (arg.pack >= 0) {
          one.packed.emplace(PackingText(fusion_kernel.kernel.packs[arg.pack]), Use{l, &fusion_kernel, a});
        } else {
          one.plain.push_back({l, &fusion_kernel, a});
          if (!launches[l].others.empty()) one.kept_plain = "kernels that run as one launch read it as it is";
          if (constant.size_bytes() < kLeastBytes) one.kept_plain = "it is too small";
        }
      }
    };
    add(launches[l].fusion_kernel);
    for (const FusionKernel& other : launches[l].others) add(other);
  }
  return reads;
}

// Returns the launch's kernel changed to read argument `arg` in the packing of `packed`.
std::optional<FusionKernel> ReadingPacked(const FusionKernel& fusion_kernel, size_t arg, const Use& packed,
                                          const DeviceModel& device) {
  const movement::Pack& pack = packed.fusion_kernel->kernel.packs[packed.fusion_kernel->args[packed.arg].pack];
  const int from = ArgumentBuffers(packed.fusion_kernel->kernel)[packed.arg],
            to = ArgumentBuffers(fusion_kernel.kernel)[arg];
  if (packed.fusion_kernel->kernel.buffers[from].dtype != fusion_kernel.kernel.buffers[to].dtype) return std::nullopt;
  std::optional<movement::Kernel> kernel = movement::ReadPacked(
      fusion_kernel.kernel, to, pack, packed.fusion_kernel->kernel.buffers[from].elements, device.vector_bytes / 4);
  if (!kernel || !movement::Verify(*kernel).ok()) return std::nullopt;
  FusionKernel result = fusion_kernel;
  result.kernel = *std::move(kernel);
  result.args[arg].pack = result.kernel.buffers[to].packed_from;
  result.key = Sha256Hex(movement::Print(result.kernel));
  return result;
}

// The most time that `kernel` takes to read the buffer's elements from scattered addresses in memory: each element of a
// row that is gathered from panels lies on a cache line of its own. Later steps of a phase that read the same rows
// again (the passes of a norm) find their lines in a cache.
double ScatteredNs(const movement::Kernel& kernel, int buffer, const DeviceModel& device) {
  double loads = 0;
  for (const movement::Phase& phase : kernel.phases) {
    double of_phase = 0;
    movement::VisitSteps(phase, [&](const movement::Step& step) {
      bool reads = false;
      movement::VisitBuffers(step, [&](int b) { reads = reads || b == buffer; });
      if (!reads || movement::IsRare(step)) return;
      auto times = static_cast<double>(phase.tasks());
      for (const movement::Loop& loop : step.loops) times *= static_cast<double>(loop.axis.extent);
      if (step.reduction) {
        for (const te::Axis& axis : step.reduction->axes) times *= static_cast<double>(axis.extent);
      }
      of_phase = std::max(of_phase, times);
    });
    loads += of_phase;
  }
  double bandwidth = std::numeric_limits<double>::infinity();
  for (const MemoryLevel& level : device.memory) bandwidth = std::min(bandwidth, level.bandwidth_bytes_per_s);
  return 1e9 * loads * device.line_bytes / bandwidth;
}

}  // namespace

std::map<const void*, std::string> HoldOnce(const ecg::Graph& graph, const DeviceModel& device, int threads,
                                            bool whatever_it_costs, std::vector<PlannedLaunch>* launches) {
  const auto cost = [&](const FusionKernel& fusion_kernel) {
    return movement::EstimateCost(fusion_kernel.kernel, device, threads).latency_ns;
  };
  double all_ns = 0;
  for (const PlannedLaunch& launch : *launches) {
    all_ns += cost(launch.fusion_kernel) * static_cast<double>(1 + launch.others.size());
  }
  std::map<const void*, std::string> refused;
  // The replacement kernels. They are applied once all are known, because `reads` may point to the old ones.
  std::map<size_t, FusionKernel> changed;
  for (const auto& [memory, reads] : ReadsOf(graph, *launches)) {
    if (reads.plain.empty() || reads.packed.empty()) continue;
    if (reads.kept_plain != nullptr) {
      refused[memory] = reads.kept_plain;
      continue;
    }
    if (reads.packed.size() > 1) {
      refused[memory] = absl::StrCat("it is packed in ", reads.packed.size(), " ways");
      continue;
    }
    std::map<size_t, FusionKernel> now;
    double more_ns = 0;
    for (const Use& use : reads.plain) {
      const auto before = now.find(use.launch), earlier = changed.find(use.launch);
      const FusionKernel& fusion_kernel = before != now.end()        ? before->second
                                          : earlier != changed.end() ? earlier->second
                                                                     : *use.fusion_kernel;
      std::optional<FusionKernel> packed = ReadingPacked(fusion_kernel, use.arg, reads.packed.begin()->second, device);
      if (!packed) {
        refused[memory] = "a step reads it in a way that has no form for packed elements";
        break;
      }
      const int buffer = ArgumentBuffers(fusion_kernel.kernel)[use.arg];
      more_ns += std::max(cost(*packed) - cost(fusion_kernel), ScatteredNs(fusion_kernel.kernel, buffer, device));
      now.insert_or_assign(use.launch, *std::move(packed));
    }
    if (refused.count(memory) > 0) continue;
    if (!whatever_it_costs && more_ns > kMostTime * all_ns) {
      refused[memory] = absl::StrFormat("it would take %.2f%% of the model's time, where %.0f%% is allowed",
                                        100 * more_ns / all_ns, 100 * kMostTime);
      continue;
    }
    for (auto& [launch, fusion_kernel] : now) changed.insert_or_assign(launch, std::move(fusion_kernel));
  }
  for (auto& [launch, fusion_kernel] : changed) (*launches)[launch].fusion_kernel = std::move(fusion_kernel);
  return refused;
}

}  // namespace fusion

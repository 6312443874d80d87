#include "compiler/pipeline/block_oracle.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/movement/cost.h"
#include "compiler/pipeline/emit.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

std::string Describe(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes) {
  std::vector<std::string> ops;
  for (ecg::NodeId id : nodes) ops.push_back(graph.node(id).op);
  const ecg::Node& last = graph.node(nodes.back());
  return absl::StrCat(absl::StrJoin(ops, "+"), " ", ShapeToString(graph.value(last.outputs[0]).type.shape));
}

}  // namespace

void GraphBlockOracle::Start(const ecg::Graph* graph, const ValueLayouts* layouts) {
  graph_ = graph;
  layouts_ = layouts;
}

const GraphBlockOracle::KernelOr& GraphBlockOracle::Get(std::vector<ecg::NodeId> nodes) {
  std::sort(nodes.begin(), nodes.end());
  auto it = kernels_.find(nodes);
  if (it != kernels_.end()) return it->second;
  absl::StatusOr<BlockKernel> kernel = MakeBlockKernel(*graph_, nodes, LiveOutOf(*graph_, nodes), *layouts_, *context_.device);
  KernelOr result = kernel.ok() ? KernelOr(std::make_shared<const BlockKernel>(*std::move(kernel))) : KernelOr(kernel.status());
  return kernels_.emplace(std::move(nodes), std::move(result)).first->second;
}

absl::Status GraphBlockOracle::CanSchedule(const ecg::Graph&, const std::vector<ecg::NodeId>& nodes) {
  const KernelOr& kernel = Get(nodes);
  if (!kernel.ok()) return absl::FailedPreconditionError(std::string(kernel.status().message()));
  if (nodes.size() > 1 && !(*kernel)->stitched) return absl::FailedPreconditionError((*kernel)->reason);
  return absl::OkStatus();
}

absl::StatusOr<BlockKernel> GraphBlockOracle::Kernel(const std::vector<ecg::NodeId>& nodes) {
  const KernelOr& kernel = Get(nodes);
  if (!kernel.ok()) return Annotate(kernel.status(), absl::StrCat("kernel ", Describe(*graph_, nodes)));
  return **kernel;
}

absl::StatusOr<std::vector<LatencyAnswer>> GraphBlockOracle::Latency(const ecg::Graph& graph,
                                                                     const std::vector<std::vector<ecg::NodeId>>& blocks) {
  std::vector<std::string> keys;
  std::vector<LatencyQuestion> questions;
  std::set<std::string> asked;
  for (const std::vector<ecg::NodeId>& nodes : blocks) {
    const KernelOr& kernel = Get(nodes);
    if (!kernel.ok()) return kernel.status();
    const std::string key = Sha256Hex(absl::StrCat((*kernel)->key, "|", context_.device->Fingerprint(), "|threads=", threads_,
                                                   "|cold|generator=", kGeneratorVersion));
    keys.push_back(key);
    if (answers_.count(key) || !asked.insert(key).second) continue;
    by_key_[key] = *kernel;
    questions.push_back({key, Describe(graph, nodes),
                         movement::EstimateCost((*kernel)->kernel, *context_.device, threads_).latency_ns});
  }
  if (!questions.empty()) {
    questions_ += static_cast<int64_t>(questions.size());
    if (context_.progress) {
      context_.progress({"profiling", 0, static_cast<int64_t>(questions.size()), absl::StrCat(questions.size(), " questions")});
    }
    ASSIGN_OR_RETURN(const std::vector<LatencyAnswer> answers, context_.oracle->Latency(questions, *this));
    for (size_t q = 0; q < questions.size(); ++q) {
      answers_[questions[q].key] = answers[q];
      ++answered_[static_cast<int>(answers[q].source)];
    }
  }
  std::vector<LatencyAnswer> result;
  for (const std::string& key : keys) result.push_back(answers_.at(key));
  return result;
}

absl::StatusOr<std::vector<std::string>> GraphBlockOracle::MakeBundles(absl::Span<const std::string> keys) {
  std::vector<const BlockKernel*> kernels;
  for (const std::string& key : keys) {
    auto it = by_key_.find(key);
    if (it == by_key_.end()) return absl::InternalError(absl::StrCat("no block was asked under key ", key));
    kernels.push_back(it->second.get());
  }
  const KernelTexts texts = PrintKernels(kernels, *context_.device);
  ASSIGN_OR_RETURN(const std::vector<std::string> binaries, BuildTexts(texts, *context_.device, context_.toolchain));
  std::string folder = (std::filesystem::temp_directory_path() / "fusion-question-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return absl::ResourceExhaustedError(absl::StrCat("cannot make a folder ", folder));
  std::vector<std::string> bundles;
  absl::Status status;
  for (size_t k = 0; k < kernels.size() && status.ok(); ++k) {
    const std::string path = folder + "/question.fusion";
    status = WriteMeasurementBundle(*kernels[k], texts.places[k], binaries[texts.places[k].file], *context_.device, path);
    if (!status.ok()) break;
    std::ifstream file(path, std::ios::binary);
    bundles.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (!status.ok()) return status;
  return bundles;
}

}  // namespace fusion

#include "compiler/pipeline/block_oracle.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/movement/cost.h"
#include "compiler/movement/pressure.h"
#include "compiler/pipeline/block_signature.h"
#include "compiler/pipeline/emit.h"
#include "compiler/pipeline/generator_version.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// A reason with the names of the values `to[i]` where it quotes those of `from[i]`.
std::string Renamed(const ecg::Graph& graph, const std::string& reason, const std::vector<ecg::ValueId>& from,
                    const std::vector<ecg::ValueId>& to) {
  std::map<std::string, std::string> names;
  for (size_t i = 0; i < from.size(); ++i) {
    names.emplace(absl::StrCat("'", graph.value(from[i]).name, "'"), absl::StrCat("'", graph.value(to[i]).name, "'"));
  }
  return absl::StrReplaceAll(reason, names);
}

}  // namespace

void GraphBlockOracle::Start(const ecg::Graph* graph, const ValueLayouts* layouts) {
  graph_ = graph;
  layouts_ = layouts;
  typical_ = context_.device->WithTypicalRates();
}

const GraphBlockOracle::KernelOr& GraphBlockOracle::Get(std::vector<ecg::NodeId> nodes) {
  std::sort(nodes.begin(), nodes.end());
  auto it = kernels_.find(nodes);
  if (it != kernels_.end()) return it->second;
  KernelOr kernel = Make(nodes);
  return kernels_.emplace(std::move(nodes), std::move(kernel)).first->second;
}

GraphBlockOracle::KernelOr GraphBlockOracle::Make(const std::vector<ecg::NodeId>& nodes) {
  const std::vector<ecg::ValueId> live_out = LiveOutOf(*graph_, nodes);
  BlockSignature signature = SignBlock(*graph_, nodes, live_out, *layouts_);
  if (const auto known = prototypes_.find(signature.text); known != prototypes_.end()) {
    BlockKernel kernel = WithValues(*known->second.kernel, known->second.values, signature.values);
    if (!kernel.stitched) kernel.reason = Renamed(*graph_, kernel.reason, known->second.values, signature.values);
    return std::make_shared<const BlockKernel>(std::move(kernel));
  }
  absl::StatusOr<BlockKernel> made =
      MakeBlockKernel(*graph_, nodes, live_out, *layouts_, *context_.device, {{}, minimal_filtering_});
  if (!made.ok()) return made.status();  // its words name this block's nodes
  if (made->stitched && nodes.size() > 1) {
    const absl::Status pressure = movement::CheckPressure(made->kernel, *context_.device, threads_);
    made->stitched = pressure.ok();
    if (!pressure.ok()) made->reason = std::string(pressure.message());
  }
  auto kernel = std::make_shared<const BlockKernel>(*std::move(made));
  // A weight that is no argument was read while lowering: a kernel of these elements, not of this type.
  for (ecg::ValueId weight : signature.weights) {
    const bool argument = std::any_of(kernel->args.begin(), kernel->args.end(),
                                      [&](const KernelArg& arg) { return arg.value == weight; });
    if (!argument) return kernel;
  }
  prototypes_.emplace(std::move(signature.text), Prototype{kernel, std::move(signature.values)});
  return kernel;
}

absl::Status GraphBlockOracle::CanSchedule(const ecg::Graph&, const std::vector<ecg::NodeId>& nodes) {
  const KernelOr& kernel = Get(nodes);
  if (!kernel.ok()) return absl::FailedPreconditionError(std::string(kernel.status().message()));
  if (nodes.size() > 1 && !(*kernel)->stitched) return absl::FailedPreconditionError((*kernel)->reason);
  return absl::OkStatus();
}

absl::StatusOr<BlockKernel> GraphBlockOracle::Kernel(const std::vector<ecg::NodeId>& nodes) {
  const KernelOr& kernel = Get(nodes);
  if (!kernel.ok()) return Annotate(kernel.status(), absl::StrCat("kernel ", DescribeBlock(*graph_, nodes)));
  return **kernel;
}

absl::StatusOr<BlockLatencies> GraphBlockOracle::Latency(const ecg::Graph& graph,
                                                         const std::vector<std::vector<ecg::NodeId>>& blocks,
                                                         const std::vector<std::vector<ecg::NodeId>>& maybe) {
  std::vector<Question> questions;
  std::set<std::string> measured;  // that have no answer yet
  auto add = [&](const std::vector<ecg::NodeId>& nodes, const std::shared_ptr<const BlockKernel>& kernel) {
    questions.push_back({kernel, DescribeBlock(graph, nodes)});
  };
  for (const std::vector<ecg::NodeId>& nodes : blocks) {
    const KernelOr& kernel = Get(nodes);
    if (!kernel.ok()) return kernel.status();
    add(nodes, *kernel);
    if (const std::string key = QuestionKey(**kernel); !answers_.count(key)) measured.insert(key);
  }
  // A round that is saved is worth the time of one measurement at least: the idle part of the last turn, and one more.
  const size_t devices = static_cast<size_t>(Devices());
  const size_t most = devices > 1 ? ((measured.size() + devices - 1) / devices + 1) * devices : 0;
  std::vector<size_t> answered;
  for (size_t m = 0; m < maybe.size(); ++m) {
    const KernelOr& kernel = Get(maybe[m]);
    if (!kernel.ok()) continue;
    const std::string key = QuestionKey(**kernel);
    if (!answers_.count(key) && !measured.count(key)) {
      if (measured.size() >= most) continue;
      measured.insert(key);
    }
    add(maybe[m], *kernel);
    answered.push_back(m);
  }
  ASSIGN_OR_RETURN(const std::vector<LatencyAnswer> answers, Ask(questions));
  BlockLatencies result;
  const auto guessed = answers.begin() + static_cast<std::ptrdiff_t>(blocks.size());
  result.asked.assign(answers.begin(), guessed);
  result.maybe.resize(maybe.size());
  for (size_t a = 0; a < answered.size(); ++a) result.maybe[answered[a]] = guessed[static_cast<std::ptrdiff_t>(a)];
  return result;
}

double GraphBlockOracle::EstimateNs(const ecg::Graph&, const std::vector<ecg::NodeId>& nodes) {
  const KernelOr& kernel = Get(nodes);
  return kernel.ok() ? movement::EstimateCost((*kernel)->kernel, typical_, threads_).latency_ns : 0;
}

absl::StatusOr<bool> GraphBlockOracle::Knows(const ecg::Graph&, const std::vector<ecg::NodeId>& nodes) {
  const KernelOr& kernel = Get(nodes);
  if (!kernel.ok()) return kernel.status();
  const std::string key = QuestionKey(**kernel);
  auto it = knows_.find(key);
  if (it == knows_.end()) {
    ASSIGN_OR_RETURN(const bool knows, context_.oracle->Knows(key));
    it = knows_.emplace(key, knows).first;
  }
  return it->second;
}

std::string GraphBlockOracle::QuestionKey(const BlockKernel& kernel) const {
  return Sha256Hex(absl::StrCat(kernel.key, "|", context_.device->Fingerprint(), "|threads=", threads_,
                                "|cold|generator=", kGeneratorVersion));
}

absl::StatusOr<std::vector<LatencyAnswer>> GraphBlockOracle::Ask(const std::vector<Question>& asked) {
  std::vector<std::string> keys;
  std::map<std::string, std::string> groups;  // the keys of all members, one after another
  for (const Question& question : asked) {
    keys.push_back(QuestionKey(*question.kernel));
    if (!question.group.empty()) absl::StrAppend(&groups[question.group], " ", keys.back());
  }
  std::vector<LatencyQuestion> questions;
  std::set<std::string> open;
  for (size_t k = 0; k < asked.size(); ++k) {
    const Question& question = asked[k];
    // In another company the same kernel is another question.
    if (!question.group.empty()) keys[k] = Sha256Hex(absl::StrCat(keys[k], "|beside", groups[question.group]));
    if (answers_.count(keys[k]) || !open.insert(keys[k]).second) continue;
    by_key_[keys[k]] = question.kernel;
    const movement::Kernel& kernel = question.kernel->kernel;
    questions.push_back({keys[k], question.description,
                         movement::EstimateCost(kernel, *context_.device, threads_).latency_ns,
                         movement::EstimateCost(kernel, typical_, threads_).latency_ns, question.group,
                         question.workload, question.structure, question.choices});
  }
  if (!questions.empty()) {
    questions_ += static_cast<int64_t>(questions.size());
    if (context_.progress) {
      context_.progress(
          {"profiling", 0, static_cast<int64_t>(questions.size()), absl::StrCat(questions.size(), " questions")});
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
  ASSIGN_OR_RETURN(const std::vector<std::string> binaries, BuildTexts(texts, context_.toolchain));
  std::string folder = (std::filesystem::temp_directory_path() / "fusion-question-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr)
    return absl::ResourceExhaustedError(absl::StrCat("cannot make a folder ", folder));
  std::vector<std::string> bundles;
  absl::Status status;
  for (size_t k = 0; k < kernels.size() && status.ok(); ++k) {
    const std::string path = folder + "/question.fusion";
    status = WriteMeasurementBundle(*kernels[k], texts, texts.places[k], binaries[texts.places[k].file],
                                    *context_.device, threads_, path);
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

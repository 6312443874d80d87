#include "compiler/pipeline/block_oracle.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "compiler/movement/cost.h"
#include "compiler/movement/pressure.h"
#include "compiler/pipeline/block_signature.h"
#include "compiler/pipeline/emit.h"
#include "compiler/pipeline/generator_version.h"
#include "compiler/tune/tune.h"
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
  absl::StatusOr<BlockKernel> made = MakeBlockKernel(*graph_, nodes, live_out, *layouts_, *context_.device);
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
  if (!kernel.ok()) return Annotate(kernel.status(), absl::StrCat("kernel ", Describe(*graph_, nodes)));
  return **kernel;
}

absl::StatusOr<BlockLatencies> GraphBlockOracle::Latency(const ecg::Graph& graph,
                                                         const std::vector<std::vector<ecg::NodeId>>& blocks,
                                                         const std::vector<std::vector<ecg::NodeId>>& maybe) {
  std::vector<std::shared_ptr<const BlockKernel>> kernels;
  std::vector<std::string> descriptions;
  std::set<std::string> measured;  // that have no answer yet
  auto add = [&](const std::vector<ecg::NodeId>& nodes, const std::shared_ptr<const BlockKernel>& kernel) {
    kernels.push_back(kernel);
    descriptions.push_back(Describe(graph, nodes));
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
  ASSIGN_OR_RETURN(const std::vector<LatencyAnswer> answers, Ask(kernels, descriptions));
  BlockLatencies result;
  const auto guessed = answers.begin() + static_cast<std::ptrdiff_t>(blocks.size());
  result.asked.assign(answers.begin(), guessed);
  result.maybe.resize(maybe.size());
  for (size_t a = 0; a < answered.size(); ++a) result.maybe[answered[a]] = guessed[static_cast<std::ptrdiff_t>(a)];
  return result;
}

double GraphBlockOracle::EstimateNs(const ecg::Graph&, const std::vector<ecg::NodeId>& nodes) {
  const KernelOr& kernel = Get(nodes);
  return kernel.ok() ? movement::EstimateCost((*kernel)->kernel, *context_.device, threads_).latency_ns : 0;
}

std::string GraphBlockOracle::QuestionKey(const BlockKernel& kernel) const {
  return Sha256Hex(absl::StrCat(kernel.key, "|", context_.device->Fingerprint(), "|threads=", threads_,
                                "|cold|generator=", kGeneratorVersion));
}

absl::StatusOr<std::vector<LatencyAnswer>> GraphBlockOracle::Ask(
    const std::vector<std::shared_ptr<const BlockKernel>>& kernels, const std::vector<std::string>& descriptions) {
  std::vector<std::string> keys;
  std::vector<LatencyQuestion> questions;
  std::set<std::string> asked;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const std::string key = QuestionKey(*kernels[k]);
    keys.push_back(key);
    if (answers_.count(key) || !asked.insert(key).second) continue;
    by_key_[key] = kernels[k];
    questions.push_back(
        {key, descriptions[k], movement::EstimateCost(kernels[k]->kernel, *context_.device, threads_).latency_ns});
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

absl::StatusOr<int64_t> GraphBlockOracle::Tune(const std::vector<std::vector<ecg::NodeId>>& blocks) {
  // Equal kernels count together: a shape that fifty launches share is worth fifty times the trial.
  std::map<std::string, double> share;
  double total_ns = 0;
  std::vector<std::shared_ptr<const BlockKernel>> kernels;
  for (const std::vector<ecg::NodeId>& nodes : blocks) {
    const KernelOr& kernel = Get(nodes);
    if (!kernel.ok()) return kernel.status();
    kernels.push_back(*kernel);
    const double latency_ns = movement::EstimateCost((*kernel)->kernel, *context_.device, threads_).latency_ns;
    share[(*kernel)->key] += latency_ns;
    total_ns += latency_ns;
  }
  struct Trial {
    std::vector<std::shared_ptr<const BlockKernel>> variants;  // the model's choice first
    size_t first_question = 0;
  };
  std::map<std::string, Trial> trials;
  std::vector<std::shared_ptr<const BlockKernel>> asked;
  std::vector<std::string> descriptions;
  for (size_t b = 0; b < blocks.size(); ++b) {
    const std::string& key = kernels[b]->key;
    if (trials.count(key) || !tune::WorthTuning(share[key], total_ns)) continue;
    Trial trial;
    trial.variants.push_back(kernels[b]);
    for (int choice = 1; choice <= tune::kMaxVariants; ++choice) {
      ScheduleOptions options;
      options.tile_choice = choice;
      absl::StatusOr<BlockKernel> variant =
          MakeBlockKernel(*graph_, blocks[b], LiveOutOf(*graph_, blocks[b]), *layouts_, *context_.device, options);
      if (!variant.ok()) break;  // no further choice
      if (variant->key != key) trial.variants.push_back(std::make_shared<const BlockKernel>(*std::move(variant)));
    }
    trial.first_question = asked.size();
    if (trial.variants.size() > 1) {
      for (const auto& variant : trial.variants) {
        asked.push_back(variant);
        descriptions.push_back(Describe(*graph_, blocks[b]));
      }
    }
    trials[key] = std::move(trial);
  }
  if (asked.empty()) return 0;
  ASSIGN_OR_RETURN(const std::vector<LatencyAnswer> answers, Ask(asked, descriptions));
  int64_t changed = 0;
  for (size_t b = 0; b < blocks.size(); ++b) {
    auto it = trials.find(kernels[b]->key);
    if (it == trials.end() || it->second.variants.size() < 2) continue;
    const Trial& trial = it->second;
    const int best =
        tune::PickVariant(absl::MakeConstSpan(answers).subspan(trial.first_question, trial.variants.size()));
    if (best == 0) continue;
    // The arguments stand for other values in each block of equal kernels, so the variant is made for this one.
    ScheduleOptions options;
    options.tile_choice = best;
    ASSIGN_OR_RETURN(BlockKernel tuned, MakeBlockKernel(*graph_, blocks[b], LiveOutOf(*graph_, blocks[b]), *layouts_,
                                                        *context_.device, options));
    std::vector<ecg::NodeId> nodes = blocks[b];
    std::sort(nodes.begin(), nodes.end());
    kernels_.insert_or_assign(std::move(nodes), KernelOr(std::make_shared<const BlockKernel>(std::move(tuned))));
    ++changed;
  }
  return changed;
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
    status = WriteMeasurementBundle(*kernels[k], texts.places[k], binaries[texts.places[k].file], *context_.device,
                                    threads_, path);
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

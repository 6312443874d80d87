#include "compiler/measure/block_oracle.h"

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "compiler/api/generator_version.h"
#include "compiler/bundle/emit.h"
#include "compiler/kernels/block_signature.h"
#include "compiler/movement/cost.h"
#include "compiler/movement/pressure.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// Returns the reason with the names of values `from[i]`, where it quotes them, replaced by those of `to[i]`.
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

GraphBlockOracle::Block& GraphBlockOracle::Find(std::vector<ecg::NodeId> nodes) {
  std::sort(nodes.begin(), nodes.end());
  auto it = blocks_.find(nodes);
  if (it != blocks_.end()) return it->second;
  Block block = Make(nodes);
  return blocks_.emplace(std::move(nodes), std::move(block)).first->second;
}

GraphBlockOracle::Block GraphBlockOracle::Make(const std::vector<ecg::NodeId>& nodes) {
  const std::vector<ecg::ValueId> live_out = LiveOutOf(*graph_, nodes);
  BlockSignature signature = SignBlock(*graph_, nodes, live_out, *layouts_);
  if (const auto known = prototypes_.find(signature.text); known != prototypes_.end()) {
    return {known->second, std::move(signature.values), nullptr};
  }
  absl::StatusOr<BlockKernel> made =
      MakeBlockKernel(*graph_, nodes, live_out, *layouts_, *context_.device, {{}, minimal_filtering_});
  if (!made.ok()) return {made.status(), {}, nullptr};  // not shared: the message names this block's nodes
  if (made->stitched && nodes.size() > 1) {
    const absl::Status pressure = movement::CheckPressure(made->kernel, *context_.device, threads_);
    made->stitched = pressure.ok();
    if (!pressure.ok()) made->reason = std::string(pressure.message());
  }
  const double estimate_ns = movement::EstimateCost(made->kernel, typical_, threads_).latency_ns;
  auto kernel = std::make_shared<const BlockKernel>(*std::move(made));
  auto prototype = std::make_shared<const Prototype>(Prototype{kernel, signature.values, estimate_ns});
  // A weight that is no argument was read while lowering. The kernel then depends on the weight's elements, not only on
  // its type, and cannot be shared.
  const bool all_are_arguments = std::all_of(signature.weights.begin(), signature.weights.end(), [&](ecg::ValueId w) {
    return std::any_of(kernel->args.begin(), kernel->args.end(), [&](const KernelArg& arg) { return arg.value == w; });
  });
  if (all_are_arguments) prototypes_.emplace(std::move(signature.text), prototype);
  return {prototype, std::move(signature.values), kernel};
}

GraphBlockOracle::KernelOr GraphBlockOracle::Get(const std::vector<ecg::NodeId>& nodes) {
  Block& block = Find(nodes);
  if (block.kernel == nullptr) {
    if (!block.prototype.ok()) return block.prototype.status();
    const Prototype& prototype = **block.prototype;
    BlockKernel kernel = WithValues(*prototype.kernel, prototype.values, block.values);
    if (!kernel.stitched) kernel.reason = Renamed(*graph_, kernel.reason, prototype.values, block.values);
    block.kernel = std::make_shared<const BlockKernel>(std::move(kernel));
  }
  return block.kernel;
}

absl::Status GraphBlockOracle::CanSchedule(const ecg::Graph&, const std::vector<ecg::NodeId>& nodes) {
  const Block& block = Find(nodes);
  if (!block.prototype.ok()) return absl::FailedPreconditionError(std::string(block.prototype.status().message()));
  const Prototype& prototype = **block.prototype;
  if (nodes.size() == 1 || prototype.kernel->stitched) return absl::OkStatus();
  return absl::FailedPreconditionError(Renamed(*graph_, prototype.kernel->reason, prototype.values, block.values));
}

absl::StatusOr<BlockKernel> GraphBlockOracle::Kernel(const std::vector<ecg::NodeId>& nodes) {
  const KernelOr kernel = Get(nodes);
  if (!kernel.ok()) return Annotate(kernel.status(), absl::StrCat("kernel ", DescribeBlock(*graph_, nodes)));
  return **kernel;
}

absl::StatusOr<std::vector<GraphBlockOracle::Question>> GraphBlockOracle::Sides(const FusionQuestion& question) {
  const std::vector<ecg::NodeId> nodes = question.Fused();
  const std::string description = DescribeBlock(*graph_, nodes);
  std::vector<Question> sides = {{{}, description}, {{}, absl::StrCat(description, " apart")}};
  ASSIGN_OR_RETURN(auto fused, Get(nodes));
  sides[0].kernels.push_back(std::move(fused));
  for (const std::vector<ecg::NodeId>& one : {question.producer, question.consumer}) {
    ASSIGN_OR_RETURN(auto kernel, Get(one));
    sides[1].kernels.push_back(std::move(kernel));
  }
  // Equal questions form one group.
  for (Question& side : sides) {
    side.group = absl::StrCat(QuestionKey(sides[0].kernels), " ", QuestionKey(sides[1].kernels));
  }
  return sides;
}

absl::StatusOr<FusionAnswers> GraphBlockOracle::Compare(const ecg::Graph&, const std::vector<FusionQuestion>& questions,
                                                        const std::vector<FusionQuestion>& maybe) {
  std::vector<Question> all;
  std::set<std::string> measured;  // groups that have no answer yet
  const auto open = [&](const std::vector<Question>& sides) {
    const std::vector<std::string> keys = KeysInCompany(sides);
    return std::any_of(keys.begin(), keys.end(), [&](const std::string& key) { return answers_.count(key) == 0; });
  };
  for (const FusionQuestion& question : questions) {
    ASSIGN_OR_RETURN(const std::vector<Question> sides, Sides(question));
    if (open(sides)) measured.insert(sides[0].group);
    all.insert(all.end(), sides.begin(), sides.end());
  }
  // If devices answer further questions now, a later round may be saved, which is worth at least the time of one
  // measurement. So they fill the idle part of the last turn and one more turn.
  const size_t devices = static_cast<size_t>(Devices());
  const size_t most = devices > 1 ? ((measured.size() + devices - 1) / devices + 1) * devices : 0;
  std::vector<size_t> answered;
  for (size_t m = 0; m < maybe.size(); ++m) {
    const absl::StatusOr<std::vector<Question>> sides = Sides(maybe[m]);
    if (!sides.ok()) continue;
    if (!measured.count((*sides)[0].group) && open(*sides)) {
      if (measured.size() >= most) continue;
      measured.insert((*sides)[0].group);
    }
    all.insert(all.end(), sides->begin(), sides->end());
    answered.push_back(m);
  }
  ASSIGN_OR_RETURN(const std::vector<LatencyAnswer> answers, Ask(all));
  FusionAnswers result;
  result.maybe.resize(maybe.size());
  for (size_t a = 0; a < answers.size(); a += 2) {
    const FusionAnswer answer{answers[a], answers[a + 1]};
    if (a / 2 < questions.size()) {
      result.asked.push_back(answer);
    } else {
      result.maybe[answered[a / 2 - questions.size()]] = answer;
    }
  }
  return result;
}

double GraphBlockOracle::EstimateNs(const ecg::Graph&, const std::vector<ecg::NodeId>& nodes) {
  const Block& block = Find(nodes);
  return block.prototype.ok() ? (*block.prototype)->estimate_ns : 0;
}

absl::StatusOr<bool> GraphBlockOracle::Knows(const ecg::Graph&, const FusionQuestion& question) {
  ASSIGN_OR_RETURN(const std::vector<Question> sides, Sides(question));
  for (const std::string& key : KeysInCompany(sides)) {
    auto it = knows_.find(key);
    if (it == knows_.end()) {
      ASSIGN_OR_RETURN(const bool knows, context_.oracle->Knows(key));
      it = knows_.emplace(key, knows).first;
    }
    if (!it->second) return false;
  }
  return true;
}

std::string GraphBlockOracle::QuestionKey(const KernelSequence& kernels) const {
  std::string what = kernels[0]->key;
  for (size_t k = 1; k < kernels.size(); ++k) {
    absl::StrAppend(&what, "|then ", kernels[k]->key);
    for (const SharedArgument& shared : SharedArguments(kernels, static_cast<int>(k))) {
      absl::StrAppend(&what, " ", shared.arg, "=", shared.earlier_kernel, ".", shared.earlier_arg);
    }
  }
  return Sha256Hex(absl::StrCat(what, "|", context_.device->Fingerprint(), "|threads=", threads_,
                                "|cold|generator=", kGeneratorVersion));
}

std::vector<std::string> GraphBlockOracle::KeysInCompany(const std::vector<Question>& asked) const {
  std::vector<std::string> keys;
  std::map<std::string, std::set<std::string>> groups;  // the keys of all members of each group
  for (const Question& question : asked) {
    keys.push_back(QuestionKey(question.kernels));
    if (!question.group.empty()) groups[question.group].insert(keys.back());
  }
  for (size_t k = 0; k < asked.size(); ++k) {
    const Question& question = asked[k];
    if (!question.group.empty())
      keys[k] = Sha256Hex(absl::StrCat(keys[k], "|beside ", absl::StrJoin(groups[question.group], " ")));
  }
  return keys;
}

void GraphBlockOracle::LimitMeasuring(double seconds, std::function<double()> clock) {
  limit_s_ = seconds;
  spent_s_ = 0;
  clock_ = clock ? std::move(clock) : [] { return absl::ToUnixNanos(absl::Now()) * 1e-9; };
}

absl::StatusOr<std::vector<bool>> GraphBlockOracle::InTime(const std::vector<LatencyQuestion>& questions) {
  std::vector<bool> asked(questions.size(), true);
  if (std::isinf(limit_s_) || tuning_) return asked;
  std::map<std::string, std::vector<size_t>> groups;
  std::vector<std::string> order;
  for (size_t q = 0; q < questions.size(); ++q) {
    const std::string& name = questions[q].group.empty() ? questions[q].key : questions[q].group;
    std::vector<size_t>& group = groups[name];
    if (group.empty()) order.push_back(name);
    group.push_back(q);
  }
  double left_s = this->left_s();
  for (const std::string& name : order) {
    const std::vector<size_t>& group = groups[name];
    bool known = true;
    for (const size_t q : group) {
      ASSIGN_OR_RETURN(const bool one, context_.oracle->Knows(questions[q].key));
      known = known && one;
    }
    if (known) continue;
    const double takes_s = question_s_ * static_cast<double>(group.size());
    const bool fits = left_s > 0 && takes_s <= left_s;
    left_s -= takes_s;
    for (const size_t q : group) asked[q] = fits;
  }
  return asked;
}

absl::StatusOr<std::vector<LatencyAnswer>> GraphBlockOracle::Measure(const std::vector<LatencyQuestion>& questions) {
  ASSIGN_OR_RETURN(const std::vector<bool> in_time, InTime(questions));
  std::vector<LatencyQuestion> asked;
  for (size_t q = 0; q < questions.size(); ++q) {
    if (in_time[q]) asked.push_back(questions[q]);
  }
  std::vector<LatencyAnswer> measured;
  if (!asked.empty()) {
    const double begin = clock_ ? clock_() : 0;
    ASSIGN_OR_RETURN(measured, context_.oracle->Latency(asked, *this));
    const double seconds = clock_ ? clock_() - begin : 0;
    spent_s_ += seconds;
    const auto fresh = std::count_if(measured.begin(), measured.end(), [](const LatencyAnswer& answer) {
      return answer.source != LatencySource::kDatabase;
    });
    if (fresh > 0) question_s_ = seconds / static_cast<double>(fresh);
  }
  std::vector<LatencyAnswer> answers;
  auto next = measured.begin();
  for (size_t q = 0; q < questions.size(); ++q) {
    answers.push_back(in_time[q] ? *next++ : LatencyAnswer{questions[q].model_latency_ns, LatencySource::kModel});
  }
  return answers;
}

absl::StatusOr<std::vector<LatencyAnswer>> GraphBlockOracle::Ask(const std::vector<Question>& asked) {
  const std::vector<std::string> keys = KeysInCompany(asked);
  std::vector<LatencyQuestion> questions;
  std::set<std::string> open;
  for (size_t k = 0; k < asked.size(); ++k) {
    const Question& question = asked[k];
    if (answers_.count(keys[k]) || !open.insert(keys[k]).second) continue;
    by_key_[keys[k]] = question.kernels;
    double model_ns = 0, typical_ns = 0;
    for (const auto& kernel : question.kernels) {
      model_ns += movement::EstimateCost(kernel->kernel, *context_.device, threads_).latency_ns;
      typical_ns += movement::EstimateCost(kernel->kernel, typical_, threads_).latency_ns;
    }
    questions.push_back({keys[k], question.description, model_ns, typical_ns, question.group, question.workload,
                         question.structure, question.choices});
  }
  if (!questions.empty()) {
    questions_ += static_cast<int64_t>(questions.size());
    if (context_.progress) {
      context_.progress(
          {"profiling", 0, static_cast<int64_t>(questions.size()), absl::StrCat(questions.size(), " questions")});
    }
    ASSIGN_OR_RETURN(const std::vector<LatencyAnswer> answers, Measure(questions));
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
  std::vector<const KernelSequence*> sequences;
  std::vector<const BlockKernel*> kernels;
  for (const std::string& key : keys) {
    auto it = by_key_.find(key);
    if (it == by_key_.end()) return absl::InternalError(absl::StrCat("no block was asked under key ", key));
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

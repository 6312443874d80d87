#include "compiler/accelerator/choose_program.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compiler/accelerator/program_bundle.h"
#include "compiler/api/generator_version.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"

namespace fusion::accelerator {
namespace {

// Neither names nor weights of the model are in a program's text.
std::string KeyOf(const WholeProgram& program, const DeviceModel& device) {
  return Sha256Hex(
      absl::StrCat("program\n", device.Fingerprint(), "\n", kGeneratorVersion, "\n", Sha256Hex(program.text)));
}

absl::StatusOr<std::string> Build(const WholeProgram& program, const CompileContext& context) {
  const BuildUnit unit{context.device->kind, context.device->march, program.text};
  ASSIGN_OR_RETURN(std::vector<std::string> binaries, context.toolchain->Build({&unit, 1}));
  return std::move(binaries[0]);
}

// Makes the bundles that workers time.
class Bundler : public MeasurementBundler {
 public:
  Bundler(const ModelOnMachine& model, const std::vector<WholeProgram>& programs, const std::vector<std::string>& keys,
          const CompileContext& context)
      : model_(model), programs_(programs), keys_(keys), context_(context) {}

  absl::StatusOr<std::vector<std::string>> MakeBundles(absl::Span<const std::string> keys) override {
    std::vector<std::string> bundles;
    for (const std::string& key : keys) {
      const size_t number = std::find(keys_.begin(), keys_.end(), key) - keys_.begin();
      if (number == keys_.size()) return absl::InternalError("a program is to be measured that nobody asked about");
      ASSIGN_OR_RETURN(const std::string binary, Build(programs_[number], context_));
      ASSIGN_OR_RETURN(bundles.emplace_back(),
                       MeasurementBundle(model_, programs_[number], binary, *context_.device, key));
    }
    return bundles;
  }

 private:
  const ModelOnMachine& model_;
  const std::vector<WholeProgram>& programs_;
  const std::vector<std::string>& keys_;
  const CompileContext& context_;
};

double Nanoseconds(const WholeProgram& program) { return 1e9 * program.timing.seconds; }

void Count(const std::vector<LatencyAnswer>& answers, CompileAccount* account) {
  for (const LatencyAnswer& answer : answers) {
    ++account->questions;
    ++(answer.source == LatencySource::kDatabase   ? account->from_database
       : answer.source == LatencySource::kMeasured ? account->measured
                                                   : account->from_model);
  }
}

}  // namespace

std::vector<std::string> VariantsFor(const std::string& planner) {
  if (planner == "none") return {"tvm_like"};
  return {"graph_turbo", "l1", "tvm_like"};
}

absl::StatusOr<BuiltProgram> ChooseProgram(const ModelOnMachine& model, const std::vector<std::string>& variants,
                                           const CompileContext& context, CompileAccount* account) {
  std::vector<WholeProgram> programs;
  std::vector<PlanAlternative> alternatives;
  absl::Status first_error;
  // A model that computes nothing has the same program in each variant.
  const absl::Span<const std::string> made(variants.data(), model.layers.ops.empty() ? 1 : variants.size());
  for (const std::string& variant : made) {
    if (context.cancelled && context.cancelled()) return absl::CancelledError("the job was cancelled");
    PlanAlternative& alternative = alternatives.emplace_back();
    alternative.plan = variant;
    absl::StatusOr<WholeProgram> program = MakeWholeProgram(model, variant);
    if (!program.ok()) {
      alternative.reason = std::string(program.status().message());
      if (first_error.ok()) first_error = program.status();
      continue;
    }
    alternative.kernels = 1;
    alternative.estimate_ns = Nanoseconds(*program);
    alternative.reason = ProgramInWords(model, *program);
    programs.push_back(*std::move(program));
  }
  if (programs.empty()) return first_error;
  std::vector<double> latencies;
  for (const WholeProgram& program : programs) latencies.push_back(Nanoseconds(program));
  if (made.size() > 1) {
    std::vector<std::string> keys;
    std::vector<LatencyQuestion> questions;
    for (const WholeProgram& program : programs) {
      LatencyQuestion& question = questions.emplace_back();
      question.key = keys.emplace_back(KeyOf(program, *context.device));
      question.description = absl::StrCat("program ", program.variant, ": ", program.instructions, " instructions");
      question.model_latency_ns = question.typical_ns = Nanoseconds(program);
    }
    Bundler bundler(model, programs, keys, context);
    ASSIGN_OR_RETURN(const std::vector<LatencyAnswer> answers, context.oracle->Latency(questions, bundler));
    Count(answers, account);
    for (size_t p = 0; p < programs.size(); ++p) {
      latencies[p] = answers[p].latency_ns;
      for (PlanAlternative& alternative : alternatives) {
        if (alternative.plan != programs[p].variant || !IsMeasured(answers[p].source)) continue;
        alternative.median_ns = answers[p].latency_ns;
        alternative.ratio = alternative.ratio_low = alternative.ratio_high =
            answers[p].latency_ns / answers[0].latency_ns;
        alternative.rounds = 1;
      }
    }
  }
  const size_t best = std::min_element(latencies.begin(), latencies.end()) - latencies.begin();
  for (PlanAlternative& alternative : alternatives) alternative.chosen = alternative.plan == programs[best].variant;
  if (made.size() > 1) account->alternatives = std::move(alternatives);
  account->estimate_ns = Nanoseconds(programs[best]);
  BuiltProgram chosen{std::move(programs[best]), ""};
  ASSIGN_OR_RETURN(chosen.binary, Build(chosen.program, context));
  return chosen;
}

}  // namespace fusion::accelerator

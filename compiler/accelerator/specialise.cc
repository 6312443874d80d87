#include "compiler/accelerator/specialise.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/backends/dsa/unit_code_of.h"
#include "compiler/plan/planners/graph_turbo/lowering/part_of_expression.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/dsa_sim/evaluator.h"
#include "runtime/devices/dsa_sim/unit_code.h"

namespace fusion::accelerator {
namespace {

dsa::TensorBox BoxOf(const dsa::Slice& slice, const std::vector<int64_t>& origin) {
  dsa::TensorBox box{origin, {}};
  for (const dsa::Stride& stride : slice.strides) box.extents.push_back(stride.count);
  return box;
}

dsa::EvaluationRequest RequestOf(const dsa::Instruction& instruction) {
  const dsa::ExpressionPart& part = instruction.part;
  dsa::EvaluationRequest request;
  request.expression = part.expression;
  request.outputs = part.outputs;
  request.inputs = part.inputs;
  request.reduce_begin = part.reduce_begin;
  request.reduce_end = part.reduce_end;
  size_t origin = 0;
  request.results.push_back(BoxOf(instruction.to, part.origins[origin++]));
  for (const dsa::Slice& slice : instruction.also) request.results.push_back(BoxOf(slice, part.origins[origin++]));
  for (const dsa::Slice& slice : instruction.from) request.operands.push_back(BoxOf(slice, part.origins[origin++]));
  return request;
}

std::vector<dsa::UnitBox> BoxesOf(const std::vector<graph_turbo::PlacedBox>& placed) {
  std::vector<dsa::UnitBox> boxes;
  for (const graph_turbo::PlacedBox& box : placed) boxes.push_back({box.tensor, box.at, box.extents});
  return boxes;
}

class Specialiser {
 public:
  explicit Specialiser(const graph_turbo::LoweredProgram& lowered) : lowered_(lowered), program_(lowered.program) {
    program_.expressions.clear();
    for (const te::Program& expression : lowered.expressions) expressions_.emplace_back(expression);
  }

  absl::StatusOr<dsa::Program> Run() {
    for (dsa::Instruction& instruction : program_.instructions) {
      if (!instruction.part.present()) continue;
      ASSIGN_OR_RETURN(instruction.part.expression, CodeOf(instruction));
      // The code knows its results and its part of the reduction.
      instruction.part.outputs.clear();
      instruction.part.reduce_begin = instruction.part.reduce_end = 0;
    }
    return std::move(program_);
  }

 private:
  absl::StatusOr<int> CodeOf(const dsa::Instruction& instruction) {
    const dsa::EvaluationRequest request = RequestOf(instruction);
    const graph_turbo::ExpressionParts& parts = expressions_[request.expression];
    const auto [known, fresh] = by_part_.try_emplace({request.expression, parts.KeyOf(request)}, 0);
    if (!fresh) return known->second;
    const std::string& name = lowered_.program.expressions[request.expression].name;
    const graph_turbo::PartOfExpression part = parts.PartOf(request);
    absl::StatusOr<dsa::UnitCode> code = dsa::UnitCodeOf(part.program);
    if (!code.ok()) return Annotate(code.status(), name);
    code->operands = BoxesOf(part.operands);
    code->results = BoxesOf(part.results);
    const auto [same, is_new] =
        by_text_.try_emplace(dsa::PrintUnitCode(*code), static_cast<int>(program_.expressions.size()));
    if (is_new) program_.expressions.push_back({absl::StrCat(name, "_", same->second), same->first});
    return known->second = same->second;
  }

  const graph_turbo::LoweredProgram& lowered_;
  dsa::Program program_;
  std::vector<graph_turbo::ExpressionParts> expressions_;
  std::map<std::pair<int, std::vector<int64_t>>, int> by_part_;  // by expression and key
  std::map<std::string, int> by_text_;
};

}  // namespace

absl::StatusOr<dsa::Program> Specialise(const graph_turbo::LoweredProgram& lowered) {
  return Specialiser(lowered).Run();
}

}  // namespace fusion::accelerator

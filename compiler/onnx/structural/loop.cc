// A Loop whose trip count is known, and which ends only then, is a loop of the graph (repeat.h). Every other Loop is
// unrolled. Iterations whose condition is known are written one after another. Where only their largest number
// is known, all are written, and the state is selected by whether the loop still runs (bodies have no effects). Scan
// outputs then have room for all iterations, and their extent is the number that ran. The same holds for a carried
// value to which each iteration appends.
#include "compiler/ops/control/loop.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/node_order.h"
#include "compiler/onnx/structural/appended.h"
#include "compiler/onnx/structural/repeat.h"
#include "compiler/onnx/structural/structural_op.h"
#include "compiler/onnx/tensor_import.h"
#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {
namespace {

// An upper bound above this is taken for the limit of a type, not for the result of a computation.
constexpr double kMostBoundedTrips = 1 << 20;

// Loop(M?, condition?, state…): body(iteration, condition, state…) → (condition, state…, scanned…).
class Unrolling {
 public:
  Unrolling(StructuralContext& importer, const StructuralNode& node) : importer_(importer), node_(node) {}

  absl::StatusOr<std::vector<ImportedValue>> Run() {
    ASSIGN_OR_RETURN(body_, node_.Graph("body"));
    RETURN_IF_ERROR(ReadInputs());
    if (std::optional<std::vector<ImportedValue>> outputs = Repeated()) return *std::move(outputs);
    for (int64_t i = 0; runs_ && (!trips_.has_value() || i < *trips_); ++i) {
      if (!trips_.has_value() && running_ != ecg::kNone) return NoBound();
      if (trip_count_ != ecg::kNone) {
        const ecg::ValueId now = importer_.AddConstant(Tensor::From<int64_t>(DType::kI64, {}, {i}));
        ASSIGN_OR_RETURN(const ecg::ValueId more, importer_.AddNode("Less", {now, trip_count_}));
        RETURN_IF_ERROR(And(more, "its trip count (M)"));
      }
      if (runs_) RETURN_IF_ERROR(Iterate(i));
    }
    for (size_t k = 0; k < state_.size(); ++k) RETURN_IF_ERROR(EndGrowth(k));
    std::vector<ImportedValue> outputs = state_;
    for (size_t k = 0; k < num_scanned_; ++k) {
      ASSIGN_OR_RETURN(const ecg::ValueId scanned, Scanned(k));
      outputs.push_back(ImportedValue::Tensor(scanned));
    }
    return outputs;
  }

 private:
  absl::Status NoBound() const {
    return node_.Unsupported(
        "runs until a condition that is computed at run time and has no constant trip count (M) that bounds it");
  }

  absl::Status ReadInputs() {
    if (node_.Has(0)) {
      ASSIGN_OR_RETURN(const ecg::ValueId trips, node_.TensorInput(0));
      ASSIGN_OR_RETURN(trips_, KnownInt(importer_, node_, trips, "its trip count (M)"));
      if (!trips_.has_value()) {
        ASSIGN_OR_RETURN(trip_count_, AsScalar(importer_, trips));
        const auto known = importer_.canonical().RangesOf(trip_count_);
        if (!known.has_value() || !(known->at(0).hi <= kMostBoundedTrips)) {
          return node_.Unsupported("its trip count (M) is computed at run time, and nothing bounds it");
        }
        trips_ = static_cast<int64_t>(std::max(0.0, known->at(0).hi));
      }
    }
    if (node_.Has(1)) {
      ASSIGN_OR_RETURN(const ecg::ValueId condition, node_.TensorInput(1));
      RETURN_IF_ERROR(And(condition, "its condition"));
    }
    if (node_.inputs.size() > 2) state_.assign(node_.inputs.begin() + 2, node_.inputs.end());
    growing_.resize(state_.size());
    const size_t carried = state_.size();
    if (body_->input_size() != static_cast<int>(carried) + 2 || body_->output_size() < static_cast<int>(carried) + 1) {
      return node_.Error(absl::StrCat("carries ", carried, " values, its body has ", body_->input_size(),
                                      " inputs and ", body_->output_size(), " outputs"));
    }
    num_scanned_ = static_cast<size_t>(body_->output_size()) - 1 - carried;
    scanned_.resize(num_scanned_);
    return absl::OkStatus();
  }

  // Ends the loop unless `condition` holds, too.
  absl::Status And(ecg::ValueId condition, const std::string& what) {
    ASSIGN_OR_RETURN(const std::optional<int64_t> known, KnownInt(importer_, node_, condition, what));
    if (importer_.canonical().graph.value(condition).type.dtype != DType::kBool) {
      return node_.Error(absl::StrCat(what, " is no bool"));
    }
    if (known.has_value()) {
      runs_ = runs_ && *known != 0;
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(ecg::ValueId scalar, AsScalar(importer_, condition));
    if (running_ != ecg::kNone) {
      ASSIGN_OR_RETURN(scalar, importer_.AddNode("And", {running_, scalar}));
    }
    running_ = scalar;
    return absl::OkStatus();
  }

  // Returns the outputs of a loop of the graph; nullopt where this one must be unrolled.
  std::optional<std::vector<ImportedValue>> Repeated() {
    if (!runs_ || !trips_.has_value() || trip_count_ != ecg::kNone || running_ != ecg::kNone) return std::nullopt;
    Repetition loop;
    loop.trips = *trips_;
    if (loop.trips < ops::kLeastTrips || loop.trips > ops::kMostKeptTrips) return std::nullopt;
    for (const ImportedValue& state : state_) {
      if (state.kind != ImportedValue::Kind::kTensor || state.tensor == ecg::kNone) return std::nullopt;
      loop.states.push_back(state.tensor);
    }
    std::vector<int64_t> numbers(static_cast<size_t>(loop.trips));
    std::iota(numbers.begin(), numbers.end(), 0);
    Shape shape = importer_.canonical().graph.value(BodyArgument(0, DType::kI64, 0)).type.shape;
    shape.insert(shape.begin(), loop.trips);
    loop.scanned = {importer_.AddConstant(Tensor::From<int64_t>(DType::kI64, shape, numbers))};
    loop.reversed_in = {0};
    loop.reversed_out.assign(num_scanned_, 0);
    loop.body = [&](const std::vector<ecg::ValueId>& states,
                    const std::vector<ecg::ValueId>& slices) -> std::optional<std::vector<ecg::ValueId>> {
      StructuralContext::Bindings bound;
      bound.emplace_back(body_->input(0).name(), ImportedValue::Tensor(slices[0]));
      bound.emplace_back(body_->input(1).name(), ImportedValue::Tensor(BodyArgument(1, DType::kBool, 1)));
      for (size_t k = 0; k < states.size(); ++k) {
        bound.emplace_back(body_->input(static_cast<int>(k) + 2).name(), ImportedValue::Tensor(states[k]));
      }
      auto outputs = TensorsOf(importer_.Inline(body_, bound, absl::StrCat(NodeName(*node_.proto), "/")));
      if (!outputs) return std::nullopt;
      const auto& condition = importer_.canonical().graph.value((*outputs)[0]);
      if (condition.type.dtype != DType::kBool) return std::nullopt;
      const auto goes_on = KnownInt(importer_, node_, (*outputs)[0], "its body's condition");
      if (!goes_on.ok() || !goes_on->has_value() || **goes_on == 0) return std::nullopt;
      outputs->erase(outputs->begin());
      return outputs;
    };
    const auto results = AddRepetition(importer_, loop);
    if (!results) return std::nullopt;
    std::vector<ImportedValue> outputs;
    for (const ecg::ValueId result : *results) outputs.push_back(ImportedValue::Tensor(result));
    return outputs;
  }

  // Returns a scalar, or a tensor of shape [1] where the body declares that.
  ecg::ValueId BodyArgument(int input, DType dtype, int64_t value) {
    const auto& type = body_->input(input).type();
    const bool vector = type.has_tensor_type() && type.tensor_type().shape().dim_size() == 1;
    return importer_.AddConstant(Tensor::From<int64_t>(dtype, vector ? Shape{1} : Shape{}, {value}));
  }

  absl::StatusOr<std::vector<ImportedValue>> InlineBody(int64_t iteration) {
    StructuralContext::Bindings bound;
    bound.emplace_back(body_->input(0).name(), ImportedValue::Tensor(BodyArgument(0, DType::kI64, iteration)));
    bound.emplace_back(body_->input(1).name(), ImportedValue::Tensor(BodyArgument(1, DType::kBool, 1)));
    for (size_t k = 0; k < state_.size(); ++k) {
      bound.emplace_back(body_->input(static_cast<int>(k) + 2).name(), state_[k]);
    }
    const ConditionScope runs(&importer_.canonical(), running_);
    auto outputs = importer_.Inline(body_, bound, absl::StrCat(NodeName(*node_.proto), "[", iteration, "]/"));
    if (!outputs.ok()) return Annotate(outputs.status(), node_.title);
    return outputs;
  }

  absl::Status Iterate(int64_t iteration) {
    ASSIGN_OR_RETURN(const std::vector<ImportedValue> outputs, InlineBody(iteration));
    for (size_t k = 0; k < state_.size(); ++k) {
      if (running_ == ecg::kNone) {
        state_[k] = outputs[k + 1];
        continue;
      }
      ASSIGN_OR_RETURN(const bool grew, Grow(k, outputs[k + 1]));
      if (!grew) {
        ASSIGN_OR_RETURN(state_[k], Select(importer_, node_, running_, outputs[k + 1], state_[k],
                                           absl::StrCat("the carried value ", k)));
      }
    }
    if (num_scanned_ > 0) RETURN_IF_ERROR(Count());
    for (size_t k = 0; k < num_scanned_; ++k) {
      ASSIGN_OR_RETURN(const ecg::ValueId slice, TensorOf(outputs[state_.size() + 1 + k]));
      scanned_[k].push_back(slice);
    }
    ASSIGN_OR_RETURN(const ecg::ValueId condition, TensorOf(outputs[0]));
    return And(condition, "its body's condition");
  }

  // Treats a carried value to which an iteration appends without a selection: while the loop runs it is everything that
  // was appended, and at the end it is the first part of that. Returns false for any other value.
  absl::StatusOr<bool> Grow(size_t k, const ImportedValue& next) {
    CanonicalGraph& canonical = importer_.canonical();
    Growth& growth = growing_[k];
    const bool tensors = state_[k].kind == ImportedValue::Kind::kTensor && next.kind == ImportedValue::Kind::kTensor;
    std::optional<Appended> appended;
    if (tensors && !canonical.extents.IsDynamic(state_[k].tensor) && !canonical.extents.IsDynamic(next.tensor)) {
      appended = AppendedTo(canonical.graph, state_[k].tensor, next.tensor);
    }
    if (!appended || (!growth.parts.empty() && growth.axis != appended->axis)) {
      RETURN_IF_ERROR(EndGrowth(k));
      return false;
    }
    if (growth.parts.empty()) {
      growth = {appended->axis, canonical.Extent(state_[k].tensor, appended->axis), {state_[k].tensor}};
    }
    growth.parts.push_back(appended->piece);
    const ecg::ValueId extent = canonical.Extent(next.tensor, growth.axis);
    ASSIGN_OR_RETURN(growth.extent, importer_.AddNode("Where", {running_, extent, growth.extent}));
    state_[k] = next;
    return true;
  }

  // From here on the carried value holds what the iterations that ran have appended.
  absl::Status EndGrowth(size_t k) {
    Growth growth = std::exchange(growing_[k], {});
    if (growth.parts.empty()) return absl::OkStatus();
    CanonicalGraph& canonical = importer_.canonical();
    ecg::Attributes attrs;
    attrs.Set("axis", static_cast<int64_t>(growth.axis));
    ASSIGN_OR_RETURN(const ecg::ValueId all, importer_.AddNode("Concat", std::move(growth.parts), std::move(attrs)));
    std::vector<ecg::ValueId> extents(canonical.graph.value(all).type.shape.size(), ecg::kNone);
    extents[static_cast<size_t>(growth.axis)] = growth.extent;
    ASSIGN_OR_RETURN(state_[k].tensor, canonical.WithExtents(all, std::move(extents)));
    return absl::OkStatus();
  }

  // Counts one more iteration, if it runs.
  absl::Status Count() {
    if (running_ == ecg::kNone) {
      ++ran_;
      return absl::OkStatus();
    }
    ecg::Attributes to;
    to.Set("to", static_cast<int64_t>(onnx::TensorProto::INT64));
    ASSIGN_OR_RETURN(ecg::ValueId one, importer_.AddNode("Cast", {running_}, std::move(to)));
    if (ran_at_run_time_ != ecg::kNone) {
      ASSIGN_OR_RETURN(one, importer_.AddNode("Add", {ran_at_run_time_, one}));
    }
    ran_at_run_time_ = one;
    return absl::OkStatus();
  }

  absl::StatusOr<ecg::ValueId> TensorOf(const ImportedValue& value) const {
    if (value.kind != ImportedValue::Kind::kTensor || StructuralNode::IsAbsent(value)) {
      return node_.Error("its body's condition and scan outputs must be tensors");
    }
    return value.tensor;
  }

  absl::StatusOr<ecg::ValueId> Scanned(size_t k) {
    if (!scanned_[k].empty()) {
      ASSIGN_OR_RETURN(const ecg::ValueId all, Stack(importer_, scanned_[k], 0));
      if (ran_at_run_time_ == ecg::kNone) return all;
      CanonicalGraph& canonical = importer_.canonical();
      const ecg::ValueId known = importer_.AddConstant(Tensor::From<int64_t>(DType::kI64, {}, {ran_}));
      std::vector<ecg::ValueId> extents = canonical.extents.Of(all);
      ASSIGN_OR_RETURN(extents[0], importer_.AddNode("Add", {known, ran_at_run_time_}));
      return canonical.WithExtents(all, std::move(extents));
    }
    // Without any iteration, one whose results nothing uses gives the type; its checks do not belong to the model.
    const size_t checks = importer_.canonical().checks.size();
    ASSIGN_OR_RETURN(const std::vector<ImportedValue> outputs, InlineBody(0));
    ASSIGN_OR_RETURN(const ecg::ValueId slice, TensorOf(outputs[state_.size() + 1 + k]));
    CanonicalGraph& canonical = importer_.canonical();
    canonical.checks.resize(checks);
    ecg::ValueType type = canonical.graph.value(slice).type;
    std::vector<ecg::ValueId> extents = canonical.extents.Of(slice);
    type.shape.insert(type.shape.begin(), 0);
    const ecg::ValueId empty = importer_.AddConstant(Tensor(type.dtype, type.shape));
    if (!canonical.extents.IsDynamic(slice)) return empty;
    extents.insert(extents.begin(), ecg::kNone);
    return canonical.WithExtents(empty, std::move(extents));
  }

  StructuralContext& importer_;
  const StructuralNode& node_;
  onnx::GraphProto* body_ = nullptr;
  std::optional<int64_t> trips_;               // upper limit; nullopt: as long as the condition holds
  ecg::ValueId trip_count_ = ecg::kNone;       // a scalar, set if it is computed at run time
  int64_t ran_ = 0;                            // number of iterations that are known to run
  ecg::ValueId ran_at_run_time_ = ecg::kNone;  // a scalar: number of those that may run and do
  bool runs_ = true;                           // whether the loop goes on, as far as known at compile time
  ecg::ValueId running_ = ecg::kNone;          // a bool scalar; kNone: the loop runs
  std::vector<ImportedValue> state_;
  struct Growth {
    int axis = 0;
    ecg::ValueId extent = ecg::kNone;  // a scalar: the extent after the iterations that ran
    std::vector<ecg::ValueId> parts;   // the value before it grew, then what each iteration appends
  };
  std::vector<Growth> growing_;  // by carried value; one that does not grow has no parts
  size_t num_scanned_ = 0;
  std::vector<std::vector<ecg::ValueId>> scanned_;  // by output, by iteration
};

absl::StatusOr<std::vector<ImportedValue>> ImportLoop(StructuralContext& importer, const StructuralNode& node) {
  return Unrolling(importer, node).Run();
}

}  // namespace

std::vector<StructuralOp> LoopOps() { return {{"Loop", ImportLoop}}; }

}  // namespace fusion::onnx_import

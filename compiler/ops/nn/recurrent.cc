// LSTM, GRU and RNN are decomposed on import into ordinary operators: X·Wᵀ of all steps is one product before a loop over
// time (control/loop.h), whose body is a small product H·Rᵀ and elementwise gates. Each direction has a loop of its own, so
// that its weights stay in the cores' caches. A few steps, or steps over extents that depend on data, are written out
// instead. x: [S, B, I] (layout 1: [B, S, I]), W: [D, G·H, I], R: [D, G·H, H], B: [D, 2·G·H]; G gates, D directions, H
// hidden. States and steps are [B, H] inside.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "compiler/ops/control/loop.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/registry/schema.h"
#include "compiler/ops/shared/elementwise.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using ecg::ValueId;
using Values = std::vector<ValueId>;

// Adds nodes. The first error is kept, and every later result is kNone.
class Nodes {
 public:
  explicit Nodes(ImportContext& import) : import_(import) {}
  const absl::Status& status() const { return status_; }

  Values AddAll(const std::string& op, Values inputs, ecg::Attributes attrs, int num_outputs) {
    if (status_.ok()) {
      auto outputs = import_.AddNode(op, std::move(inputs), std::move(attrs), num_outputs);
      if (outputs.ok()) return *std::move(outputs);
      status_ = outputs.status();
    }
    return Values(num_outputs, ecg::kNone);
  }
  ValueId Add(const std::string& op, Values inputs, ecg::Attributes attrs = {}) {
    return AddAll(op, std::move(inputs), std::move(attrs), 1)[0];
  }
  ValueId Ints(const std::vector<int64_t>& values) { return import_.AddConstant(IntsTensor(values)); }
  ValueId Number(DType dtype, double value) { return import_.AddConstant(Tensor::From<double>(dtype, {}, {value})); }
  ValueId Reshape(ValueId x, const Shape& shape) { return Add("Reshape", {x, Ints(shape)}); }
  ValueId Transpose(ValueId x, const std::vector<int64_t>& perm) {
    ecg::Attributes attrs;
    attrs.Set("perm", perm);
    return Add("Transpose", {x}, std::move(attrs));
  }
  ValueId Slice(ValueId x, int64_t axis, int64_t begin, int64_t end) {
    return Add("Slice", {x, Ints({begin}), Ints({end}), Ints({axis})});
  }
  Values Split(ValueId x, int64_t axis, int64_t parts) {
    if (parts == 1) return {x};
    ecg::Attributes attrs;
    attrs.Set("axis", axis);
    return AddAll("Split", {x}, std::move(attrs), static_cast<int>(parts));
  }
  ValueId Concat(Values parts, int64_t axis) {
    if (parts.size() == 1) return parts[0];
    ecg::Attributes attrs;
    attrs.Set("axis", axis);
    return Add("Concat", std::move(parts), std::move(attrs));
  }

 private:
  ImportContext& import_;
  absl::Status status_;
};

// --- Activations, by their names in lower case.
struct ActivationForm {
  const char* name;
  std::optional<double> alpha, beta;  // defaults; absent where the activation takes no such parameter
  ValueId (*apply)(Nodes& nodes, DType dtype, ValueId x, double alpha, double beta);
};

template <const char* kOp>
ValueId Plain(Nodes& nodes, DType, ValueId x, double, double) {
  return nodes.Add(kOp, {x});
}

template <const char* kOp, bool kBeta>
ValueId WithAttributes(Nodes& nodes, DType, ValueId x, double alpha, double beta) {
  ecg::Attributes attrs;
  attrs.Set("alpha", alpha);
  if (kBeta) attrs.Set("beta", beta);
  return nodes.Add(kOp, {x}, std::move(attrs));
}

ValueId Affine(Nodes& nodes, DType dtype, ValueId x, double alpha, double beta) {
  return nodes.Add("Add", {nodes.Add("Mul", {x, nodes.Number(dtype, alpha)}), nodes.Number(dtype, beta)});
}

ValueId ScaledTanh(Nodes& nodes, DType dtype, ValueId x, double alpha, double beta) {
  const ValueId tanh = nodes.Add("Tanh", {nodes.Add("Mul", {x, nodes.Number(dtype, beta)})});
  return nodes.Add("Mul", {tanh, nodes.Number(dtype, alpha)});
}

constexpr char kElu[] = "Elu", kHardSigmoid[] = "HardSigmoid", kLeakyRelu[] = "LeakyRelu", kRelu[] = "Relu",
               kSigmoid[] = "Sigmoid", kSoftplus[] = "Softplus", kSoftsign[] = "Softsign", kTanh[] = "Tanh",
               kThresholdedRelu[] = "ThresholdedRelu";

constexpr ActivationForm kActivations[] = {
    {"affine", 1.0, 0.0, Affine},
    {"elu", 1.0, std::nullopt, WithAttributes<kElu, false>},
    {"hardsigmoid", 0.2, 0.5, WithAttributes<kHardSigmoid, true>},
    {"leakyrelu", 0.01, std::nullopt, WithAttributes<kLeakyRelu, false>},
    {"relu", std::nullopt, std::nullopt, Plain<kRelu>},
    {"scaledtanh", 1.0, 1.0, ScaledTanh},
    {"sigmoid", std::nullopt, std::nullopt, Plain<kSigmoid>},
    {"softplus", std::nullopt, std::nullopt, Plain<kSoftplus>},
    {"softsign", std::nullopt, std::nullopt, Plain<kSoftsign>},
    {"tanh", std::nullopt, std::nullopt, Plain<kTanh>},
    {"thresholdedrelu", 1.0, std::nullopt, WithAttributes<kThresholdedRelu, false>},
};

struct Activation {
  const ActivationForm* form = nullptr;
  double alpha = 0, beta = 0;
};

// Reads the activations of all directions. Those that take a parameter use up activation_alpha and activation_beta in
// order.
absl::StatusOr<std::vector<Activation>> Activations(const OpContext& context, const std::vector<std::string>& defaults,
                                                    int64_t directions) {
  std::vector<std::string> names;
  if (context.attrs.Has("activations")) {
    names = std::get<std::vector<std::string>>(context.attrs.all().at("activations"));
  } else {
    for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  }
  if (names.size() != defaults.size() * static_cast<size_t>(directions)) {
    return context.Error(absl::StrCat("has ", names.size(), " activations, it needs ", defaults.size(), " for each of ",
                                      directions, " direction(s)"));
  }
  const std::vector<double> alphas = context.attrs.Floats("activation_alpha"),
                            betas = context.attrs.Floats("activation_beta");
  size_t alpha = 0, beta = 0;
  const auto next = [](const std::optional<double>& otherwise, const std::vector<double>& given, size_t* at) {
    if (!otherwise.has_value()) return 0.0;
    return *at < given.size() ? given[(*at)++] : *otherwise;
  };
  std::vector<Activation> result;
  for (const std::string& name : names) {
    const std::string lower = absl::AsciiStrToLower(name);
    const auto* form = std::find_if(std::begin(kActivations), std::end(kActivations),
                                    [&](const ActivationForm& f) { return lower == f.name; });
    if (form == std::end(kActivations)) {
      return context.Unsupported(absl::StrCat("activation '", absl::Utf8SafeCHexEscape(name), "' is not known"));
    }
    Activation activation{form, 0, 0};
    activation.alpha = next(form->alpha, alphas, &alpha);
    activation.beta = next(form->beta, betas, &beta);
    result.push_back(activation);
  }
  return result;
}

// --- The node's attributes and sizes in one form for the three operators.
enum Input { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kPeepholes };

struct Recurrence {
  DType dtype = DType::kF32;
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0, directions = 1;
  bool reverse = false;  // the only direction runs backwards
  bool batch_first = false;
  std::optional<double> clip;
  std::vector<Activation> activations;
};

absl::Status ExpectShape(const OpContext& context, Input input, const char* name, const Shape& shape) {
  if (!context.Has(input) || context.ShapeOf(input) == shape) return absl::OkStatus();
  return context.Error(
      absl::StrCat(name, " must have shape ", ShapeToString(shape), ", not ", ShapeToString(context.ShapeOf(input))));
}

absl::StatusOr<Recurrence> ReadForm(const OpContext& context, int64_t gates,
                                    const std::vector<std::string>& default_activations) {
  Recurrence r;
  RETURN_IF_ERROR(CheckDomain(context, kX, Domain::kFloat));
  for (Input input : {kW, kR, kB, kInitialH, kInitialC, kPeepholes}) {
    if (context.Has(input) && context.Type(input).dtype != context.Type(kX).dtype) {
      return context.Error(absl::StrCat("input ", static_cast<int>(input), " is ", DTypeName(context.Type(input).dtype),
                                        ", X is ", DTypeName(context.Type(kX).dtype)));
    }
  }
  if (context.Rank(kX) != 3 || context.Rank(kR) != 3) return context.Error("X and R must have rank 3");
  const std::string direction = context.attrs.String("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return context.Error(absl::StrCat("direction '", absl::Utf8SafeCHexEscape(direction),
                                      "' must be forward, reverse or bidirectional"));
  }
  r.dtype = context.Type(kX).dtype;
  r.directions = direction == "bidirectional" ? 2 : 1;
  r.reverse = direction == "reverse";
  r.batch_first = context.attrs.Int("layout", 0) != 0;
  r.steps = context.ShapeOf(kX)[r.batch_first ? 1 : 0];
  r.batch = context.ShapeOf(kX)[r.batch_first ? 0 : 1];
  r.inputs = context.ShapeOf(kX)[2];
  r.hidden = context.ShapeOf(kR)[2];
  if (context.attrs.Int("hidden_size", r.hidden) != r.hidden) {
    return context.Error(absl::StrCat("hidden_size=", context.attrs.Int("hidden_size"), ", R ",
                                      ShapeToString(context.ShapeOf(kR)), " has ", r.hidden));
  }
  if (context.attrs.Has("clip")) r.clip = context.attrs.Float("clip");
  const int64_t rows = gates * r.hidden;
  const Shape state = r.batch_first ? Shape{r.batch, r.directions, r.hidden} : Shape{r.directions, r.batch, r.hidden};
  RETURN_IF_ERROR(ExpectShape(context, kW, "W", {r.directions, rows, r.inputs}));
  RETURN_IF_ERROR(ExpectShape(context, kR, "R", {r.directions, rows, r.hidden}));
  RETURN_IF_ERROR(ExpectShape(context, kB, "B", {r.directions, 2 * rows}));
  RETURN_IF_ERROR(ExpectShape(context, kLengths, "sequence_lens", {r.batch}));
  RETURN_IF_ERROR(ExpectShape(context, kInitialH, "initial_h", state));
  RETURN_IF_ERROR(ExpectShape(context, kInitialC, "initial_c", state));
  RETURN_IF_ERROR(ExpectShape(context, kPeepholes, "P", {r.directions, 3 * r.hidden}));
  if (r.steps == 0 || r.batch == 0 || r.inputs == 0 || r.hidden == 0) {
    return context.Unsupported(absl::StrCat("X ", ShapeToString(context.ShapeOf(kX)), " or its hidden size is empty"));
  }
  ASSIGN_OR_RETURN(r.activations, Activations(context, default_activations, r.directions));
  return r;
}

// The inputs of one direction's steps: where nodes are added, the node's form and the activations.
class Direction {
 public:
  Direction(Nodes& nodes, const Recurrence& form, const Activation* activations)
      : nodes_(nodes), form_(form), activations_(activations) {}

  // The standard clips the input of every activation; onnxruntime's LSTM does not clip the cell state, the input of h.
  ValueId Activate(int k, ValueId x) {
    if (form_.clip.has_value()) {
      x = nodes_.Add("Clip", {x, nodes_.Number(form_.dtype, -*form_.clip), nodes_.Number(form_.dtype, *form_.clip)});
    }
    const Activation& activation = activations_[k];
    return activation.form->apply(nodes_, form_.dtype, x, activation.alpha, activation.beta);
  }
  ValueId Plus(ValueId a, ValueId b) { return nodes_.Add("Add", {a, b}); }
  ValueId Times(ValueId a, ValueId b) { return nodes_.Add("Mul", {a, b}); }
  ValueId OneMinus(ValueId x) { return nodes_.Add("Sub", {nodes_.Number(form_.dtype, 1), x}); }
  ValueId Product(ValueId a, ValueId b) { return nodes_.Add("MatMul", {a, b}); }
  Nodes& nodes() { return nodes_; }
  const Recurrence& form() const { return form_; }

 private:
  Nodes& nodes_;
  const Recurrence& form_;
  const Activation* activations_;
};

// The weights that a direction's step reads besides x and the states.
struct Weights {
  ValueId r = ecg::kNone;                               // Rᵀ: [H, G·H]
  ValueId recurrence_bias = ecg::kNone;                 // [G·H], kNone when absent or part of x
  ValueId p[3] = {ecg::kNone, ecg::kNone, ecg::kNone};  // peepholes of i, o, f: [H]
};

struct States {
  ValueId h = ecg::kNone, c = ecg::kNone;  // [B, H]
};

struct Cell {
  const char* name;
  int gates;
  std::vector<std::string> activations;
  bool has_c = false;
  std::vector<AttrSpec> attrs;
  // Returns whether the recurrence's bias is added to H·Rᵀ rather than to x.
  bool (*separate_bias)(const ecg::Attributes& attrs);
  // Adds one step. `x` is X·Wᵀ + bias of the step, [B, G·H].
  States (*step)(Direction& direction, const ecg::Attributes& attrs, const Weights& weights, ValueId x,
                 const States& states);
};

// Gates in the order i, o, f, c.
States LstmStep(Direction& d, const ecg::Attributes& attrs, const Weights& weights, ValueId x, const States& states) {
  const Values gates = d.nodes().Split(d.Plus(d.Product(states.h, weights.r), x), 1, 4);
  const auto peep = [&](ValueId gate, int k, ValueId c) {
    return weights.p[k] == ecg::kNone ? gate : d.Plus(gate, d.Times(weights.p[k], c));
  };
  const ValueId i = d.Activate(0, peep(gates[0], 0, states.c));
  const ValueId f = attrs.Int("input_forget") != 0 ? d.OneMinus(i) : d.Activate(0, peep(gates[2], 2, states.c));
  const ValueId c = d.Plus(d.Times(f, states.c), d.Times(i, d.Activate(1, gates[3])));
  const ValueId o = d.Activate(0, peep(gates[1], 1, c));
  return {d.Times(o, d.Activate(2, c)), c};
}

// Gates in the order z, r, h.
States GruStep(Direction& d, const ecg::Attributes& attrs, const Weights& weights, ValueId x, const States& states) {
  const int64_t hidden = d.form().hidden;
  Nodes& nodes = d.nodes();
  ValueId z = ecg::kNone, candidate = ecg::kNone;
  if (attrs.Int("linear_before_reset") != 0) {
    ValueId product = d.Product(states.h, weights.r);
    if (weights.recurrence_bias != ecg::kNone) product = d.Plus(product, weights.recurrence_bias);
    const Values from_h = nodes.Split(product, 1, 3), from_x = nodes.Split(x, 1, 3);
    z = d.Activate(0, d.Plus(from_x[0], from_h[0]));
    const ValueId r = d.Activate(0, d.Plus(from_x[1], from_h[1]));
    candidate = d.Activate(1, d.Plus(from_x[2], d.Times(r, from_h[2])));
  } else {
    const ValueId r_zr = nodes.Slice(weights.r, 1, 0, 2 * hidden);
    const ValueId r_h = nodes.Slice(weights.r, 1, 2 * hidden, 3 * hidden);
    const ValueId x_zr = nodes.Slice(x, 1, 0, 2 * hidden), x_h = nodes.Slice(x, 1, 2 * hidden, 3 * hidden);
    const Values zr = nodes.Split(d.Activate(0, d.Plus(d.Product(states.h, r_zr), x_zr)), 1, 2);
    z = zr[0];
    candidate = d.Activate(1, d.Plus(d.Product(d.Times(zr[1], states.h), r_h), x_h));
  }
  return {d.Plus(d.Times(d.OneMinus(z), candidate), d.Times(z, states.h)), ecg::kNone};
}

States RnnStep(Direction& d, const ecg::Attributes&, const Weights& weights, ValueId x, const States& states) {
  return {d.Activate(0, d.Plus(d.Product(states.h, weights.r), x)), ecg::kNone};
}

// Decomposes one operator.
class Decomposition {
 public:
  Decomposition(ImportContext& import, const Cell& cell, const Recurrence& form)
      : import_(import), cell_(cell), form_(form), nodes_(import), attrs_(import.node().attrs) {}

  absl::Status Run() {
    ValueId x = Given(kX);
    if (form_.batch_first) x = nodes_.Transpose(x, {1, 0, 2});
    x = nodes_.Reshape(x, {form_.steps * form_.batch, form_.inputs});
    const ValueId running = Running();
    std::vector<OneDirection> directions;
    for (int64_t d = 0; d < form_.directions; ++d) directions.push_back(Begin(d, x));
    const bool loop = form_.steps >= kLeastTrips && form_.steps <= kMostKeptTrips && !IsDynamic();
    for (OneDirection& one : directions) {
      if (loop) {
        RunLoop(running, &one);
      } else {
        RunUnrolled(running, &one);
      }
    }
    Values y, last_h, last_c;  // by direction
    for (const OneDirection& one : directions) {
      y.push_back(nodes_.Reshape(one.y, {form_.steps, 1, form_.batch, form_.hidden}));
      last_h.push_back(one.states.h);
      last_c.push_back(one.states.c);
    }
    Values results{nodes_.Concat(std::move(y), 1), Stacked(last_h)};
    if (form_.batch_first) results[0] = nodes_.Transpose(results[0], {2, 0, 1, 3});
    if (cell_.has_c) results.push_back(Stacked(last_c));
    if (!nodes_.status().ok()) {
      return Annotate(nodes_.status(), absl::StrCat(cell_.name, " of ", form_.steps, " steps"));
    }
    import_.ReplaceWith(std::move(results));
    return absl::OkStatus();
  }

 private:
  struct OneDirection {
    bool reverse = false;
    const Activation* activations = nullptr;
    Weights weights;
    ValueId x = ecg::kNone;  // X·Wᵀ + bias of all steps, [S·B, G·H]
    States states;           // before the first step, then behind the last
    ValueId y = ecg::kNone;  // h of all steps, [S, B, H], once they are there
  };

  bool IsDynamic() const {
    const auto& inputs = import_.node().inputs;
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](ValueId v) { return v != ecg::kNone && import_.IsDynamic(v); });
  }

  ValueId Given(Input input) const {
    const auto& inputs = import_.node().inputs;
    return static_cast<size_t>(input) < inputs.size() ? inputs[input] : ecg::kNone;
  }

  // Returns direction `d` of an input that has one entry per direction on `axis`, without that axis.
  ValueId OfDirection(Input input, int64_t axis, int64_t d, const Shape& shape) {
    return nodes_.Reshape(nodes_.Slice(Given(input), axis, d, d + 1), shape);
  }

  ValueId InitialState(Input input, int64_t d) {
    if (Given(input) == ecg::kNone) return import_.AddConstant(Tensor(form_.dtype, {form_.batch, form_.hidden}));
    return OfDirection(input, form_.batch_first ? 1 : 0, d, {form_.batch, form_.hidden});
  }

  // Returns whether each step lies inside the sequence, as [S·B, 1]; kNone where all sequences have full length.
  ValueId Running() {
    if (Given(kLengths) == ecg::kNone) return ecg::kNone;
    const ecg::Value& lengths = *import_.input(kLengths);
    if (lengths.constant.has_value()) {
      bool full = true;
      for (int64_t b = 0; b < form_.batch; ++b) full = full && lengths.constant->GetInt(b) == form_.steps;
      if (full) return ecg::kNone;
    }
    std::vector<int64_t> numbers(form_.steps);
    for (int64_t t = 0; t < form_.steps; ++t) numbers[t] = t;
    const ValueId step = import_.AddConstant(Tensor::From(lengths.type.dtype, {form_.steps, 1}, numbers));
    const ValueId inside = nodes_.Add("Less", {step, nodes_.Reshape(Given(kLengths), {1, form_.batch})});
    return nodes_.Reshape(inside, {form_.steps * form_.batch, 1});
  }

  Weights ReadWeights(int64_t d, ValueId* x) {
    const int64_t rows = cell_.gates * form_.hidden;
    Weights weights;
    const ValueId w = nodes_.Transpose(OfDirection(kW, 0, d, {rows, form_.inputs}), {1, 0});
    weights.r = nodes_.Transpose(OfDirection(kR, 0, d, {rows, form_.hidden}), {1, 0});
    *x = nodes_.Add("MatMul", {*x, w});
    if (Given(kB) != ecg::kNone) {
      const Values biases = nodes_.Split(OfDirection(kB, 0, d, {2 * rows}), 0, 2);
      if (cell_.separate_bias(attrs_)) {
        weights.recurrence_bias = biases[1];
        *x = nodes_.Add("Add", {*x, biases[0]});
      } else {
        *x = nodes_.Add("Add", {*x, nodes_.Add("Add", {biases[0], biases[1]})});
      }
    }
    if (Given(kPeepholes) != ecg::kNone) {
      const Values p = nodes_.Split(OfDirection(kPeepholes, 0, d, {3 * form_.hidden}), 0, 3);
      std::copy(p.begin(), p.end(), weights.p);
    }
    return weights;
  }

  OneDirection Begin(int64_t d, ValueId x) {
    OneDirection one;
    one.reverse = form_.reverse || d == 1;
    one.activations = &form_.activations[d * static_cast<int64_t>(cell_.activations.size())];
    one.x = x;
    one.weights = ReadWeights(d, &one.x);
    one.states = {InitialState(kInitialH, d), cell_.has_c ? InitialState(kInitialC, d) : ecg::kNone};
    return one;
  }

  // Adds one step, whose slice of x is `x`. Replaces the states and returns the step's output. Behind the end of a
  // sequence (`running` is false) its state stays and its output is 0.
  ValueId Step(const OneDirection& one, ValueId x, ValueId running, States* states) {
    Direction direction(nodes_, form_, one.activations);
    States next = cell_.step(direction, attrs_, one.weights, x, *states);
    ValueId output = next.h;
    if (running != ecg::kNone) {
      output = nodes_.Add("Where", {running, next.h, nodes_.Number(form_.dtype, 0)});
      next.h = nodes_.Add("Where", {running, next.h, states->h});
      if (cell_.has_c) next.c = nodes_.Add("Where", {running, next.c, states->c});
    }
    *states = next;
    return output;
  }

  void RunUnrolled(ValueId running, OneDirection* one) {
    const Values x = nodes_.Split(one->x, 0, form_.steps);
    const Values inside = running == ecg::kNone ? Values() : nodes_.Split(running, 0, form_.steps);
    Values outputs(form_.steps, ecg::kNone);
    for (int64_t k = 0; k < form_.steps && nodes_.status().ok(); ++k) {
      const int64_t t = one->reverse ? form_.steps - 1 - k : k;
      outputs[t] = Step(*one, x[t], inside.empty() ? ecg::kNone : inside[t], &one->states);
    }
    one->y = nodes_.Concat(std::move(outputs), 0);
  }

  void RunLoop(ValueId running, OneDirection* one) {
    LoopForm begin{form_.steps, cell_.has_c ? 2 : 1, {one->reverse ? 1 : 0}};
    const LoopForm end = begin;
    Values inputs{one->states.h};
    if (cell_.has_c) inputs.push_back(one->states.c);
    inputs.push_back(nodes_.Reshape(one->x, {form_.steps, form_.batch, cell_.gates * form_.hidden}));
    if (running != ecg::kNone) {
      inputs.push_back(nodes_.Reshape(running, {form_.steps, form_.batch, 1}));
      begin.reversed.push_back(one->reverse ? 1 : 0);
    }
    const int64_t name = one->x;  // no other loop scans it
    const int count = static_cast<int>(inputs.size());
    const Values in_step = nodes_.AddAll(kLoopBegin, std::move(inputs), LoopAttributes(name, begin), count);
    States states{in_step[0], cell_.has_c ? in_step[1] : ecg::kNone};
    const ValueId inside = running == ecg::kNone ? ecg::kNone : in_step[begin.carried + 1];
    const ValueId output = Step(*one, in_step[begin.carried], inside, &states);
    Values results{in_step[0], states.h};
    if (cell_.has_c) results.push_back(states.c);
    results.push_back(output);
    const int num_results = static_cast<int>(results.size()) - 1;
    const Values behind = nodes_.AddAll(kLoopEnd, std::move(results), LoopAttributes(name, end), num_results);
    one->states.h = behind[0];
    if (cell_.has_c) one->states.c = behind[1];
    one->y = behind[end.carried];
  }

  // [D, B, H]; with layout 1: [B, D, H].
  ValueId Stacked(const Values& states) {
    const int64_t axis = form_.batch_first ? 1 : 0;
    Values parts;
    for (ValueId state : states) parts.push_back(nodes_.Add("Unsqueeze", {state, nodes_.Ints({axis})}));
    return nodes_.Concat(std::move(parts), axis);
  }

  ImportContext& import_;
  const Cell& cell_;
  const Recurrence& form_;
  Nodes nodes_;
  const ecg::Attributes attrs_;
};

OpDef Define(const Cell& cell) {
  OpDef def;
  def.name = cell.name;
  def.min_inputs = 3;
  def.max_inputs = cell.has_c ? 8 : 6;
  def.num_outputs = cell.has_c ? 3 : 2;
  def.attrs = {{"activation_alpha", AttrKind::kFloats},
               {"activation_beta", AttrKind::kFloats},
               {"activations", AttrKind::kStrings},
               {"clip", AttrKind::kFloat},
               {"direction", AttrKind::kString},
               {"hidden_size", AttrKind::kInt},
               {"layout", AttrKind::kInt}};
  def.attrs.insert(def.attrs.end(), cell.attrs.begin(), cell.attrs.end());
  def.normalize = [cell](ImportContext& import) -> absl::Status {
    const ecg::Node& node = import.node();
    std::vector<const ecg::Value*> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) inputs.push_back(import.input(static_cast<int>(i)));
    const OpContext context(node.op, node.name, node.attrs, std::move(inputs));
    RETURN_IF_ERROR(CheckSchema(*FindOp(context.op), context, static_cast<int>(node.outputs.size())));
    ASSIGN_OR_RETURN(const Recurrence form, ReadForm(context, cell.gates, cell.activations));
    return Decomposition(import, cell, form).Run();
  };
  return def;
}

bool Never(const ecg::Attributes&) { return false; }
bool IsLinearBeforeReset(const ecg::Attributes& attrs) { return attrs.Int("linear_before_reset") != 0; }

}  // namespace

std::vector<OpDef> RecurrentOps() {
  return {Define({"LSTM", 4, {"Sigmoid", "Tanh", "Tanh"}, true, {{"input_forget", AttrKind::kInt}}, Never, LstmStep}),
          Define({"GRU",
                  3,
                  {"Sigmoid", "Tanh"},
                  false,
                  {{"linear_before_reset", AttrKind::kInt}},
                  IsLinearBeforeReset,
                  GruStep}),
          Define({"RNN", 1, {"Tanh"}, false, {}, Never, RnnStep})};
}

}  // namespace fusion::ops

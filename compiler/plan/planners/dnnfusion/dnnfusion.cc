#include "compiler/plan/planners/dnnfusion/dnnfusion.h"

#include <algorithm>
#include <compare>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/analysis/derived.h"
#include "compiler/cost/caches.h"
#include "compiler/cost/traffic_time.h"
#include "compiler/cost/typical_core.h"
#include "compiler/plan/mapping_table.h"
#include "compiler/plan/quotient_graph.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using ecg::NodeId;
using ops::MappingType;
using NodeSet = std::vector<NodeId>;  // ascending

// The most complex pair of an intermediate input and the output. Constants do not count: fusion removes intermediate
// results, and a bias broadcast along its producer's rows costs the same in either kernel.
MappingType PlanningType(const ecg::Graph& graph, const ecg::Node& node) {
  const ops::OpDef* def = ops::FindOp(node.op);
  if (def == nullptr || !def->mapping) return MappingType::kManyToMany;
  std::vector<const ecg::Value*> inputs;
  for (ecg::ValueId v : node.inputs) inputs.push_back(v == ecg::kNone ? nullptr : &graph.value(v));
  const ops::OpContext context(node.op, node.name, node.attrs, inputs);
  std::optional<MappingType> type;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr || inputs[i]->constant.has_value()) continue;
    const MappingType pair = def->mapping(context, static_cast<int>(i));
    type = type.has_value() ? std::max(*type, pair) : pair;
  }
  return type.has_value() ? *type : ops::NodeMapping(graph, node);
}

Decision MakeDecision(NodeId producer, NodeId consumer) {
  Decision decision;
  decision.producer = producer;
  decision.consumer = consumer;
  return decision;
}

std::string TableRow(MappingType first, MappingType second) {
  return absl::StrCat("Table 3: ", ops::MappingTypeName(first), " then ", ops::MappingTypeName(second));
}

// Open questions that a round may guess in one growth. A later question is needed only if all guesses before it were
// right.
constexpr int kLookAhead = 3;

// Each operator that joins a fusion block schedules the candidate anew, so growing a fusion block takes the square of
// its size, and a Concat of a hundred chains would swallow them all. A fusion block of this many operators saves hardly
// any more memory traffic with the next one.
constexpr size_t kMostOperators = 64;
// A value this many times as large as the one it is made of counts as expanded (Expands).
constexpr int64_t kManyTimes = 16;

// A pair that Table 3 never fuses becomes a question if a launch, together with writing and reading what one fusion
// fusion block hands to the other, takes at least this share of their time. Both fusion blocks count as long as the
// shorter one, so that a pooling behind a convolution of any size is asked about. The cost model sees that traffic only
// where memory is the limit. Pairs that look alike share the question, and so the share.
constexpr double kWorthHolding = 0.005;
// If fusing two kernels could save at most this share of their time, a measurement would only show noise.
constexpr double kWorthMeasuring = 0.01;

// Such a pair is not asked about if the fused kernel is estimated slower by more than this factor (or the model's known
// error, if that is less). Kernels of products are few, and a closer estimate decides nothing.
constexpr double kDoubt = 1.1;

// Would two fusion blocks be faster as one?
struct FusionQuestion {
  NodeSet producer, consumer;

  NodeSet Fused() const {
    NodeSet fused;
    std::merge(producer.begin(), producer.end(), consumer.begin(), consumer.end(), std::back_inserter(fused));
    return fused;
  }
  FusionComparison Ways() const { return {{{FusionBlock(Fused())}, {FusionBlock(producer), FusionBlock(consumer)}}}; }
  auto operator<=>(const FusionQuestion&) const = default;
};

// The latencies of FusionQuestion::Ways.
struct FusionAnswer {
  LatencyAnswer fused, apart;
};

FusionAnswer AnswerOf(const WayLatencies& ways) { return {ways.at(0), ways.at(1)}; }

std::vector<FusionComparison> WaysOf(const std::vector<FusionQuestion>& questions) {
  std::vector<FusionComparison> all;
  for (const FusionQuestion& question : questions) all.push_back(question.Ways());
  return all;
}

// The oracle's answers in all rounds of one planning.
using Answers = std::map<FusionQuestion, FusionAnswer>;
// Asks these questions and adds the answers to the known ones.
using Asker = std::function<absl::Status(const std::vector<FusionQuestion>& questions)>;

// One planning from the start with the answers known so far. If there is an `asker`, a yellow question without an
// answer is asked at once. Otherwise it is noted, and the oracle's estimates guess its answer, so that a round gathers
// many questions for one call to the oracle. In the growth of each seed, guess number `turn` is inverted (-1: none).
class Round {
 public:
  Round(const ecg::Graph& graph, const std::vector<MappingType>& types, const DeviceModel& device, FusionOracle& oracle,
        const PlanOptions& options, const Answers& answers, bool epilogues_first, Asker asker, int turn)
      : graph_(graph),
        types_(types),
        device_(device),
        oracle_(oracle),
        options_(options),
        answers_(answers),
        quotient_(graph),
        finished_(types.size(), false),
        refused_for_(types.size(), -1),
        fusion_block_types_(types),
        epilogues_first_(epilogues_first),
        asker_(std::move(asker)),
        turn_(turn) {}

  absl::Status Run(const std::function<void(int64_t)>& progress);
  // In the order in which they came up; a question may appear twice.
  const std::vector<FusionQuestion>& unanswered() const { return unanswered_; }
  bool turned() const { return turned_; }
  FusionPlan Finish();

 private:
  enum class Direction { kSuccessors, kPredecessors };
  enum class Verdict { kFused, kRefused, kNotYet };  // not yet: possible once more operators have joined

  absl::Status Grow(NodeId seed);
  absl::Status JoinExpanded();
  absl::Status StitchBeyondTable();
  absl::Status Explore(NodeId seed, NodeId from, Direction direction);
  bool Deferred(NodeId producer, NodeId consumer) const;
  bool Narrows(NodeId producer, NodeId consumer) const;
  bool AnyShared(NodeId producer, NodeId consumer, const std::function<bool(int64_t, int64_t)>& bytes) const;
  bool WidensShared(NodeId producer, NodeId consumer) const;
  bool TakesPartOfShared(NodeId producer, NodeId consumer) const;
  bool Expands(NodeId producer, NodeId consumer) const;
  absl::StatusOr<Verdict> TryFuse(NodeId producer, NodeId consumer, std::optional<double> held_ns = std::nullopt);
  absl::StatusOr<bool> ProfileAgrees(const FusionQuestion& question, double unseen_ns, Decision* decision);
  // The time to write and read this many bytes.
  double HoldingNs(double bytes) const { return HandOverNs(device_, bytes); }
  double SavedNs(const FusionQuestion& question) const;
  int64_t HandedOver(NodeId producer, NodeId consumer) const;
  NodeSet Sorted(NodeId fusion_block) const;
  std::string Name(NodeId id) const { return absl::StrCat(graph_.node(id).op, " '", graph_.node(id).name, "'"); }

  const ecg::Graph& graph_;
  const std::vector<MappingType>& types_;
  const DeviceModel& device_;
  FusionOracle& oracle_;
  const PlanOptions& options_;
  const Answers& answers_;
  QuotientGraph quotient_;
  std::vector<bool> finished_;       // in a fusion block that no longer grows
  std::vector<NodeId> refused_for_;  // the seed for whose fusion block the oracle refused the node
  std::vector<FusionQuestion> unanswered_;
  std::map<std::pair<NodeId, NodeId>, Decision> decisions_;
  std::map<std::pair<NodeId, NodeId>, Colour> colours_;  // of the decisions; a profiled one is yellow
  std::vector<MappingType> fusion_block_types_;          // by QuotientGraph::FusionBlockOf
  const bool epilogues_first_;
  const Asker asker_;
  const int turn_;
  int guesses_ = 0;      // number of guesses in this growth
  bool turned_ = false;  // some growth had more than `turn_` guesses, so one was inverted
};

absl::Status Round::Run(const std::function<void(int64_t)>& progress) {
  std::vector<NodeId> seeds(graph_.nodes().size());
  std::vector<int64_t> bytes(seeds.size(), 0);
  for (size_t id = 0; id < seeds.size(); ++id) {
    seeds[id] = static_cast<NodeId>(id);
    for (ecg::ValueId v : graph_.node(seeds[id]).outputs) {
      if (v != ecg::kNone) bytes[id] += ecg::ValueBytes(graph_.value(v));
    }
  }
  // The paper's seeds come first. All operators that they left alone follow, because these may still fuse with each
  // other (Reshape and Transpose).
  std::stable_sort(seeds.begin(), seeds.end(), [&](NodeId a, NodeId b) {
    const auto key = [&](NodeId id) { return std::pair(types_[id] != MappingType::kOneToOne, bytes[id]); };
    return key(a) < key(b);
  });
  if (epilogues_first_ && options_.beyond_table) RETURN_IF_ERROR(JoinExpanded());
  int64_t done = 0;
  for (NodeId seed : seeds) {
    if (finished_[seed]) continue;
    if (options_.cancelled && options_.cancelled()) return absl::CancelledError("planning was cancelled");
    RETURN_IF_ERROR(Grow(seed));
    for (NodeId id : quotient_.Members(seed)) finished_[id] = true;
    done += static_cast<int64_t>(quotient_.Members(seed).size());
    progress(done);
  }
  for (NodeId id = 0; id < static_cast<NodeId>(types_.size()); ++id) {
    guesses_ = 0;
    for (NodeId producer : quotient_.Predecessors(id)) {
      if (!Deferred(producer, id) || quotient_.Together(producer, id)) continue;
      if (options_.cancelled && options_.cancelled()) return absl::CancelledError("planning was cancelled");
      RETURN_IF_ERROR(TryFuse(producer, id).status());
    }
  }
  return epilogues_first_ && options_.beyond_table ? StitchBeyondTable() : absl::OkStatus();
}

// Joins an operator that copies elements many times over with the only one that reads the copies, where they would leave
// a core's caches and both together take less than half of the time: the weights that a router picks for each token, and
// their product. The table never fuses such a pair (One-to-Many then Many-to-Many), and by the time that red pairs are
// tried, the product's kernel has grown for copies that lie in memory.
absl::Status Round::JoinExpanded() {
  constexpr double kFarLess = 0.5;
  for (NodeId id = 0; id < static_cast<NodeId>(types_.size()); ++id) {
    if (types_[id] != MappingType::kManyToMany) continue;
    for (NodeId producer : quotient_.Predecessors(id)) {
      const ecg::Node& node = graph_.node(producer);
      const bool copies = types_[producer] == MappingType::kOneToMany && ops::NodeFlops(graph_, node) == 0;
      if (!copies || node.outputs.size() != 1 || graph_.IsOutput(node.outputs[0])) continue;
      const auto bytes = static_cast<double>(HandedOver(producer, id));
      if (graph_.value(node.outputs[0]).consumers.size() != 1 || !LeavesPrivateCache(bytes, device_)) continue;
      NodeSet fused = {producer, id};
      std::sort(fused.begin(), fused.end());
      if (!oracle_.Fit(graph_, {fused}).ok()) continue;
      const double apart_ns = oracle_.EstimateNs(graph_, {producer}) + oracle_.EstimateNs(graph_, {id});
      if (oracle_.EstimateNs(graph_, fused) > kFarLess * apart_ns) continue;
      guesses_ = 0;
      RETURN_IF_ERROR(TryFuse(producer, id, HoldingNs(bytes)).status());
    }
  }
  return absl::OkStatus();
}

// Tries pairs of fusion blocks that Table 3 keeps apart, those that hand over most bytes first. The part of an
// intermediate result that a task can hold need not be written (FusionStitching's block composition).
absl::Status Round::StitchBeyondTable() {
  std::vector<std::pair<NodeId, NodeId>> edges;
  std::vector<double> bytes;
  for (NodeId id = 0; id < static_cast<NodeId>(types_.size()); ++id) {
    for (NodeId producer : quotient_.Predecessors(id)) {
      if (quotient_.Together(producer, id)) continue;
      edges.emplace_back(producer, id);
      bytes.push_back(static_cast<double>(HandedOver(producer, id)));
    }
  }
  std::vector<size_t> order(edges.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  // Pairs look alike if they hand over as many bytes and had the same estimates before any of these pairs fused. Pairs
  // that share a fusion block do not count as alike: once one has fused, the next is another question.
  using Look = std::tuple<double, double, double>;
  std::vector<Look> looks;
  std::map<Look, std::pair<std::set<NodeId>, std::set<NodeId>>> fusion_blocks;
  for (size_t e = 0; e < edges.size(); ++e) {
    const auto [producer, consumer] = edges[e];
    looks.emplace_back(bytes[e], oracle_.EstimateNs(graph_, Sorted(producer)),
                       oracle_.EstimateNs(graph_, Sorted(consumer)));
    fusion_blocks[looks[e]].first.insert(quotient_.FusionBlockOf(producer));
    fusion_blocks[looks[e]].second.insert(quotient_.FusionBlockOf(consumer));
  }
  const auto alike = [&](size_t e) {
    const auto& [producers, consumers] = fusion_blocks[looks[e]];
    return static_cast<double>(std::min(producers.size(), consumers.size()));
  };
  for (size_t e : order) {
    const auto [producer, consumer] = edges[e];
    if (quotient_.Together(producer, consumer)) continue;
    const MappingType first = fusion_block_types_[quotient_.FusionBlockOf(producer)],
                      second = fusion_block_types_[quotient_.FusionBlockOf(consumer)];
    if (CombineMappings(first, second).colour != Colour::kRed) continue;
    if (options_.cancelled && options_.cancelled()) return absl::CancelledError("planning was cancelled");
    const double held_ns = HoldingNs(bytes[e]);
    const double saved_ns = held_ns + 1e9 * device_.LaunchSeconds(device_.parallel_units);
    const double first_ns = oracle_.EstimateNs(graph_, Sorted(producer));
    const double second_ns = oracle_.EstimateNs(graph_, Sorted(consumer));
    if (saved_ns * alike(e) < kWorthHolding * 2 * std::min(first_ns, second_ns)) {
      Decision& decision = decisions_.try_emplace({producer, consumer}, MakeDecision(producer, consumer)).first->second;
      if (colours_.try_emplace({producer, consumer}, Colour::kRed).first->second == Colour::kRed) {
        decision.reason = absl::StrFormat("%s; fusing could save at most %.1f of %.1f us", TableRow(first, second),
                                          saved_ns / 1e3, (first_ns + second_ns) / 1e3);
      }
      continue;
    }
    guesses_ = 0;
    RETURN_IF_ERROR(TryFuse(producer, consumer, held_ns).status());
  }
  return absl::OkStatus();
}

absl::Status Round::Grow(NodeId seed) {
  guesses_ = 0;
  RETURN_IF_ERROR(Explore(seed, seed, Direction::kSuccessors));
  const NodeSet members = Sorted(seed);
  RETURN_IF_ERROR(Explore(seed, seed, Direction::kPredecessors));
  for (NodeId id : members) {
    if (id != seed) RETURN_IF_ERROR(Explore(seed, id, Direction::kPredecessors));
  }
  return absl::OkStatus();
}

// Goes depth first, as the listing's recursion does, with a stack of its own: models may be thousands of operators
// deep.
absl::Status Round::Explore(NodeId seed, NodeId from, Direction direction) {
  auto neighbours = [&](NodeId id) -> const std::vector<NodeId>& {
    return direction == Direction::kSuccessors ? quotient_.Successors(id) : quotient_.Predecessors(id);
  };
  std::vector<std::pair<NodeId, size_t>> stack = {{from, 0}};
  while (!stack.empty()) {
    auto& [op, next] = stack.back();
    if (next == neighbours(op).size()) {
      stack.pop_back();
      continue;
    }
    const NodeId candidate = neighbours(op)[next++];
    if (finished_[candidate] || quotient_.Together(op, candidate) || refused_for_[candidate] == seed) continue;
    const bool forward = direction == Direction::kSuccessors;
    const NodeId producer = forward ? op : candidate, consumer = forward ? candidate : op;
    if (Deferred(producer, consumer)) continue;
    ASSIGN_OR_RETURN(const Verdict verdict, TryFuse(producer, consumer));
    if (verdict == Verdict::kRefused) refused_for_[candidate] = seed;
    if (verdict == Verdict::kFused) stack.push_back({candidate, 0});
  }
  return absl::OkStatus();
}

// Arithmetic in front of an operator that reads its elements repeatedly (a matrix product, a convolution) is repeated
// as often, or its results are kept in scratch. Behind the operator that makes the elements it is free, so it joins its
// producer if it can.
bool Round::Deferred(NodeId producer, NodeId consumer) const {
  if (epilogues_first_ && (WidensShared(producer, consumer) || TakesPartOfShared(producer, consumer) ||
                           Narrows(producer, consumer) || Expands(producer, consumer))) {
    return true;
  }
  if (!epilogues_first_ || types_[producer] != MappingType::kOneToOne || types_[consumer] != MappingType::kManyToMany) {
    return false;
  }
  // A reduction spends one or two operations on an element; a depthwise 3x3 convolution of stride 2 spends 4.5.
  constexpr double kRereadFlopsPerElement = 3;
  double elements = 0;
  for (ecg::ValueId v : graph_.node(consumer).inputs) {
    if (v == ecg::kNone || graph_.value(v).constant.has_value()) continue;
    elements += static_cast<double>(NumElements(graph_.value(v).type.shape));
  }
  return ops::NodeFlops(graph_, graph_.node(consumer)) > kRereadFlopsPerElement * elements;
}

// Does the producer make elements narrower (QuantizeLinear) for a consumer that would end its fusion block? If it joins
// the operator that made the elements, the narrow ones are stored; if it joins the consumer, the wide ones.
bool Round::Narrows(NodeId producer, NodeId consumer) const {
  if (types_[producer] != MappingType::kOneToOne || types_[consumer] != MappingType::kManyToMany) return false;
  const ecg::Node& node = graph_.node(producer);
  const ecg::Value& out = graph_.value(node.outputs[0]);
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ecg::ValueId v) {
    return v != ecg::kNone && graph_.value(v).producer != ecg::kNone &&
           ecg::ValueBytes(graph_.value(v)) > ecg::ValueBytes(out);
  });
}

// Is there a value of the producer that the consumer and others read, and for which `bytes` holds? `bytes` gets the
// value's bytes and the bytes that the consumer makes.
bool Round::AnyShared(NodeId producer, NodeId consumer, const std::function<bool(int64_t, int64_t)>& bytes) const {
  int64_t written = 0;
  for (ecg::ValueId v : graph_.node(consumer).outputs)
    written += v == ecg::kNone ? 0 : ecg::ValueBytes(graph_.value(v));
  const auto& outputs = graph_.node(producer).outputs;
  return std::any_of(outputs.begin(), outputs.end(), [&](ecg::ValueId v) {
    if (v == ecg::kNone) return false;
    const ecg::Value& value = graph_.value(v);
    const size_t uses = value.consumers.size() + (graph_.IsOutput(v) ? 1 : 0);
    return uses > 1 && bytes(ecg::ValueBytes(value), written) &&
           std::find(value.consumers.begin(), value.consumers.end(), consumer) != value.consumers.end();
  });
}

// Does the consumer make a wider copy of a value that others also read? That value is stored anyway. In the producer's
// kernel the copy would be stored too; in the kernel of its own readers it is arithmetic on a load.
bool Round::WidensShared(NodeId producer, NodeId consumer) const {
  return types_[consumer] == MappingType::kOneToOne && AnyShared(producer, consumer, std::less<>());
}

// Does the consumer take a part of such a value (Slice, a lookup)? In the producer's kernel the part would be stored
// too; in the kernel of its own readers it is an index.
bool Round::TakesPartOfShared(NodeId producer, NodeId consumer) const {
  return types_[consumer] <= MappingType::kOneToMany && AnyShared(producer, consumer, std::greater<>());
}

// Does the consumer make a value many times as large from a small one (a table of indices, a scale), for others to
// read? In the kernel that computes the small one, the large one would be stored; in the kernel of its readers it is an
// index or a broadcast.
bool Round::Expands(NodeId producer, NodeId consumer) const {
  if (types_[consumer] != MappingType::kOneToMany) return false;
  int64_t written = 0;
  for (ecg::ValueId v : graph_.node(consumer).outputs) {
    if (v == ecg::kNone) continue;
    if (graph_.IsOutput(v)) return false;
    written += ecg::ValueBytes(graph_.value(v));
  }
  return kManyTimes * HandedOver(producer, consumer) <= written;
}

// The time of a launch, and of writing and reading what one fusion block hands to the other.
double Round::SavedNs(const FusionQuestion& question) const {
  int64_t bytes = 0;
  for (const NodeId id : question.producer) {
    for (ecg::ValueId v : graph_.node(id).outputs) {
      if (v == ecg::kNone) continue;
      const std::vector<NodeId>& readers = graph_.value(v).consumers;
      const bool handed = std::any_of(readers.begin(), readers.end(), [&](NodeId reader) {
        return std::binary_search(question.consumer.begin(), question.consumer.end(), reader);
      });
      if (handed) bytes += ecg::ValueBytes(graph_.value(v));
    }
  }
  return 1e9 * device_.LaunchSeconds(device_.parallel_units) + HoldingNs(static_cast<double>(bytes));
}

int64_t Round::HandedOver(NodeId producer, NodeId consumer) const {
  int64_t bytes = 0;
  for (ecg::ValueId v : graph_.node(producer).outputs) {
    if (v == ecg::kNone) continue;
    const ecg::Value& value = graph_.value(v);
    const bool read = std::find(value.consumers.begin(), value.consumers.end(), consumer) != value.consumers.end();
    if (read) bytes += ecg::ValueBytes(value);
  }
  return bytes;
}

NodeSet Round::Sorted(NodeId fusion_block) const {
  NodeSet nodes = quotient_.Members(fusion_block);
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

// `held_ns`: the time to write and read the intermediate results. If it is given, a red combination becomes a question
// like a yellow one.
absl::StatusOr<Round::Verdict> Round::TryFuse(NodeId producer, NodeId consumer, std::optional<double> held_ns) {
  const MappingType first = fusion_block_types_[quotient_.FusionBlockOf(producer)];
  const MappingType second = fusion_block_types_[quotient_.FusionBlockOf(consumer)];
  const MappingCell& cell = CombineMappings(first, second);
  Decision& decision = decisions_[{producer, consumer}];
  decision = MakeDecision(producer, consumer);
  Colour& colour = colours_[{producer, consumer}];
  colour = cell.colour;
  if (cell.colour == Colour::kRed && !held_ns) {
    decision.reason = absl::StrCat(TableRow(first, second), " is never fused");
    return Verdict::kRefused;
  }
  if (const NodeId between = quotient_.PathBetween(producer, consumer); between != ecg::kNone) {
    decision.reason = absl::StrCat("fusing them would close a cycle through ", Name(between));
    return Verdict::kNotYet;
  }
  const FusionQuestion question{Sorted(producer), Sorted(consumer)};
  const NodeSet fused = question.Fused();
  if (fused.size() > kMostOperators) {
    decision.reason =
        absl::StrCat("the fused kernel would have ", fused.size(), " operators, and ", kMostOperators, " is the limit");
    return Verdict::kRefused;
  }
  if (const absl::StatusOr<FusionBlockAccount> fit = oracle_.Fit(graph_, {fused}); !fit.ok()) {
    decision.reason = absl::StrCat("they cannot be one kernel: ", fit.status().message());
    return Verdict::kRefused;
  }
  if (cell.colour == Colour::kGreen) {
    decision.reason = absl::StrCat(TableRow(first, second), " is always fused");
  } else {
    if (cell.colour == Colour::kRed) {
      const double fused_ns = oracle_.EstimateNs(graph_, fused);
      const double separate_ns =
          oracle_.EstimateNs(graph_, question.producer) + oracle_.EstimateNs(graph_, question.consumer);
      if (fused_ns > std::min(kDoubt, options_.trusted_factor) * (separate_ns + *held_ns)) {
        decision.reason = absl::StrFormat("%s; estimated %.1f us fused against %.1f us apart", TableRow(first, second),
                                          fused_ns / 1e3, separate_ns / 1e3);
        return Verdict::kRefused;
      }
    }
    decision.basis = Basis::kLatency;
    colour = Colour::kYellow;
    ASSIGN_OR_RETURN(const bool agrees, ProfileAgrees(question, held_ns.value_or(0), &decision));
    if (cell.colour == Colour::kRed) decision.reason = absl::StrCat("beyond Table 3: ", decision.reason);
    if (!agrees) return Verdict::kRefused;
  }
  decision.fused = true;
  quotient_.Contract(producer, consumer);
  fusion_block_types_[quotient_.FusionBlockOf(producer)] = cell.fused;
  return Verdict::kFused;
}

// `unseen_ns`: the part of the two kernels' time, when they run apart, that estimates leave out.
absl::StatusOr<bool> Round::ProfileAgrees(const FusionQuestion& question, double unseen_ns, Decision* decision) {
  const double fused_ns = oracle_.EstimateNs(graph_, question.Fused());
  const double separate_ns =
      oracle_.EstimateNs(graph_, question.producer) + oracle_.EstimateNs(graph_, question.consumer);
  const double longer = std::max(fused_ns, separate_ns), shorter = std::min(fused_ns, separate_ns);
  const bool negligible =
      longer < options_.negligible_ns || (unseen_ns == 0 && SavedNs(question) < kWorthMeasuring * shorter);
  bool estimated = negligible;
  if (!negligible && longer > options_.trusted_factor * shorter) {
    ASSIGN_OR_RETURN(const bool known, oracle_.Knows(graph_, question.Ways()));
    estimated = !known;
  }
  if (estimated) {
    decision->fused_ns = fused_ns;
    decision->separate_ns = separate_ns;
    decision->source = LatencySource::kModel;
    decision->reason = absl::StrFormat(
        "estimated %.1f us fused against %.1f us apart (%s)", fused_ns / 1e3, separate_ns / 1e3,
        negligible ? "the difference is too small to measure" : "the difference exceeds the error of estimates");
    return fused_ns <= separate_ns + unseen_ns;
  }
  if (!answers_.count(question)) {
    if (asker_) {
      RETURN_IF_ERROR(asker_({question}));
    } else {
      if (guesses_ == kLookAhead) return false;
      unanswered_.push_back(question);
      const bool guess = fused_ns <= separate_ns + unseen_ns;
      if (guesses_++ != turn_) return guess;
      turned_ = true;
      return !guess;
    }
  }
  const FusionAnswer& answer = answers_.at(question);
  decision->fused_ns = answer.fused.latency_ns;
  decision->separate_ns = answer.apart.latency_ns;
  decision->source = std::max(answer.fused.source, answer.apart.source);  // the less certain of the two
  if (decision->source == LatencySource::kFailed) {
    // A kernel that crashed in the measurement would crash in the bundle.
    decision->reason = "kept apart, because a kernel failed when it was measured";
    return false;
  }
  const bool measured = IsMeasured(decision->source);
  decision->reason =
      absl::StrFormat("%s %.1f us fused against %.1f us apart (%s)", measured ? "measured" : "estimated",
                      decision->fused_ns / 1e3, decision->separate_ns / 1e3, LatencySourceName(decision->source));
  if (measured) unseen_ns = 0;
  return decision->fused_ns <= decision->separate_ns + unseen_ns;
}

FusionPlan Round::Finish() {
  FusionPlan plan;
  for (NodeSet& nodes : quotient_.FusionBlocks()) plan.fusion_blocks.push_back({std::move(nodes)});
  for (NodeId id = 0; id < static_cast<NodeId>(types_.size()); ++id) {
    for (ecg::ValueId v : graph_.node(id).inputs) {
      const NodeId producer = v == ecg::kNone ? ecg::kNone : graph_.value(v).producer;
      if (producer == ecg::kNone) continue;
      const bool inside = quotient_.Together(producer, id);
      // The edge was refused at first, or never tried because both ends were already in finished fusion blocks.
      const bool asked = decisions_.count({producer, id}) > 0;
      Decision& decision = decisions_[{producer, id}];
      if (inside && !decision.fused) {
        decision = MakeDecision(producer, id);
        decision.fused = true;
        decision.reason = "other edges had already joined both to one kernel";
      } else if (!asked) {
        const bool red = CombineMappings(types_[producer], types_[id]).colour == Colour::kRed;
        decision = MakeDecision(producer, id);
        decision.reason = red ? absl::StrCat(TableRow(types_[producer], types_[id]), " is never fused")
                              : "one of them had already joined another kernel";
      }
    }
  }
  for (auto& [edge, decision] : decisions_) plan.decisions.push_back(std::move(decision));
  return plan;
}

// Returns the questions that are not in `known`, each once and in order, and adds them to `known`.
std::vector<FusionQuestion> New(const std::vector<FusionQuestion>& questions, std::set<FusionQuestion>* known) {
  std::vector<FusionQuestion> fresh;
  for (const FusionQuestion& question : questions) {
    if (known->insert(question).second) fresh.push_back(question);
  }
  return fresh;
}

class DnnFusion : public Planner {
 public:
  DnnFusion(const char* name, bool epilogues_first) : name_(name), epilogues_first_(epilogues_first) {}
  const char* name() const override { return name_; }
  bool OffersMeasured() const override { return epilogues_first_; }

  absl::StatusOr<FusionPlan> Plan(const ecg::Graph& graph, const DeviceModel& device, FusionOracle& oracle,
                                  const PlanOptions& options) const override {
    const DeviceModel typical = WithTypicalRates(device);  // the same at every registration of a device
    std::vector<MappingType> types;
    for (const ecg::Node& node : graph.nodes()) types.push_back(PlanningType(graph, node));
    Answers answers;
    int64_t furthest = -1;
    auto progress = [&](int64_t done) {
      if (done <= furthest || !options.progress) return;
      furthest = done;
      options.progress(done, static_cast<int64_t>(types.size()));
    };
    auto ask = [&](const std::vector<FusionQuestion>& questions,
                   const std::vector<FusionQuestion>& maybe) -> absl::Status {
      ASSIGN_OR_RETURN(const FusionAnswers given, oracle.Compare(graph, WaysOf(questions), WaysOf(maybe)));
      if (given.asked.size() != questions.size() || given.maybe.size() > maybe.size()) {
        return absl::InternalError(absl::StrCat(given.asked.size(), " answers to ", questions.size(), " questions"));
      }
      for (size_t q = 0; q < questions.size(); ++q) answers[questions[q]] = AnswerOf(given.asked[q]);
      for (size_t m = 0; m < given.maybe.size(); ++m) {
        if (given.maybe[m].has_value()) answers[maybe[m]] = AnswerOf(*given.maybe[m]);
      }
      return absl::OkStatus();
    };
    Asker at_once;
    if (options.one_at_a_time)
      at_once = [&](const std::vector<FusionQuestion>& questions) { return ask(questions, {}); };
    // This loop ends: each round asks at least its first open question, and the next round finds the answer to it.
    for (;;) {
      Round round(graph, types, typical, oracle, options, answers, epilogues_first_, at_once, -1);
      RETURN_IF_ERROR(round.Run(progress));
      if (round.unanswered().empty()) return round.Finish();
      std::set<FusionQuestion> known;
      std::vector<FusionQuestion> questions = New(round.unanswered(), &known), maybe;
      const int devices = oracle.Devices();
      for (int turn = 0; devices > 1 && turn < devices; ++turn) {
        Round other(graph, types, typical, oracle, options, answers, epilogues_first_, nullptr, turn);
        RETURN_IF_ERROR(other.Run(progress));
        if (!other.turned()) break;
        for (FusionQuestion& question : New(other.unanswered(), &known)) maybe.push_back(std::move(question));
      }
      RETURN_IF_ERROR(ask(questions, maybe));
    }
  }

 private:
  const char* const name_;
  const bool epilogues_first_;
};

}  // namespace

const Planner* DnnFusionPlanner() {
  static const auto* const kPlanner = new DnnFusion("dnnfusion", true);
  return kPlanner;
}

const Planner* DnnFusionListingPlanner() {
  static const auto* const kPlanner = new DnnFusion("dnnfusion-listing", false);
  return kPlanner;
}

}  // namespace fusion

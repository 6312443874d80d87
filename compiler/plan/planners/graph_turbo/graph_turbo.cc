#include "compiler/plan/planners/graph_turbo/graph_turbo.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/plan/order_fusion_blocks.h"
#include "compiler/plan/planners/dnnfusion/dnnfusion.h"
#include "compiler/plan/planners/graph_turbo/chains.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using ecg::NodeId;
using graph_turbo::Chain;

// Layers of one kernel. Each longer kernel is scheduled anew.
constexpr size_t kMostLayers = 6;
// Kernels that are scheduled at most, all chains together.
constexpr size_t kMostKernels = 600;
// The factor that a kernel must save by the model where nobody measures it, and that it may be estimated slower than
// its layers to be measured at all: estimates of such kernels were off by up to a tenth (docs/decisions/0048-halos.md).
constexpr double kMargin = 1.1;

// The explicit schedules of a chain (docs/decisions/0048-halos.md, 0069-sliding-windows.md): tasks compute the borders
// that they share, or rows slide down a loop and are computed once.
constexpr const char* kForms[] = {"halos", "windows"};

// A row of layers as one kernel.
struct Piece {
  FusionBlock fusion_block;
  double layers_ns = 0;               // the estimates of its layers
  double fused_ns = 0, apart_ns = 0;  // estimated, then as compared
  LatencySource source = LatencySource::kModel;
  bool asked = false;    // it was measured, or the estimates decide
  bool refused = false;  // it failed when it was measured

  // Returns this kernel's part of the sum over a chain, in which layers count with their estimates.
  double Cost() const {
    if (refused) return std::numeric_limits<double>::infinity();
    if (IsMeasured(source)) return layers_ns * fused_ns / apart_ns;
    return asked ? fused_ns * kMargin : fused_ns / kMargin;
  }
};

class DepthFirst {
 public:
  DepthFirst(const ecg::Graph& graph, FusionOracle& oracle, const PlanOptions& options, FusionPlan layers)
      : graph_(graph), oracle_(oracle), options_(options), plan_(std::move(layers)) {}

  absl::StatusOr<FusionPlan> Run(std::vector<Chain> chains) {
    chains_ = std::move(chains);
    for (const Chain& chain : chains_) RETURN_IF_ERROR(TryPieces(chain));
    // This loop ends: each round answers at least one piece that was not asked about.
    for (;;) {
      std::vector<Piece*> chosen;
      for (size_t c = 0; c < chains_.size(); ++c) {
        for (Piece* piece : Cheapest(c)) chosen.push_back(piece);
      }
      const bool known = std::all_of(chosen.begin(), chosen.end(), [](const Piece* piece) { return piece->asked; });
      if (known) return Finish(chosen);
      RETURN_IF_ERROR(CheckCancelled());
      RETURN_IF_ERROR(Ask(chosen));
    }
  }

 private:
  absl::Status CheckCancelled() const {
    if (options_.cancelled && options_.cancelled()) return absl::CancelledError("planning was cancelled");
    return absl::OkStatus();
  }
  double LayerNs(size_t layer) {
    const auto [it, fresh] = layer_ns_.emplace(layer, 0);
    if (fresh) it->second = oracle_.EstimateNs(graph_, plan_.fusion_blocks[layer].nodes);
    return it->second;
  }

  // Schedules every row of consecutive layers that keeps a value near the core which would leave the cache otherwise.
  absl::Status TryPieces(const Chain& chain) {
    for (size_t first = 0; first < chain.layers.size(); ++first) {
      for (size_t last = first + 2; last <= std::min(chain.layers.size(), first + kMostLayers); ++last) {
        const bool gains = std::any_of(chain.beyond.begin(), chain.beyond.end(), [&](const auto& beyond) {
          return beyond.first >= first && beyond.second < last;
        });
        if (!gains || scheduled_ >= kMostKernels) continue;
        RETURN_IF_ERROR(CheckCancelled());
        std::vector<NodeId> nodes;
        double layers_ns = 0;
        for (size_t l = first; l < last; ++l) {
          const std::vector<NodeId>& layer = plan_.fusion_blocks[chain.layers[l]].nodes;
          nodes.insert(nodes.end(), layer.begin(), layer.end());
          layers_ns += LayerNs(chain.layers[l]);
        }
        std::sort(nodes.begin(), nodes.end());
        std::optional<Piece> best;
        for (const char* form : kForms) {
          FusionBlock fusion_block(nodes);
          fusion_block.directives.push_back({ecg::kNone, "form", form});
          ++scheduled_;
          const absl::StatusOr<FusionBlockAccount> fit = oracle_.Fit(graph_, fusion_block);
          if (!fit.ok() || (best && best->fused_ns <= fit->estimate_ns)) continue;
          best = Piece{std::move(fusion_block), layers_ns, fit->estimate_ns, layers_ns};
        }
        if (best) pieces_.emplace(std::pair(chain.layers[first], chain.layers[last - 1]), *std::move(best));
      }
    }
    return absl::OkStatus();
  }

  // The pieces of the partition of a chain that costs least: the best one up to a layer is the best one up to the piece
  // that ends there, and that piece.
  std::vector<Piece*> Cheapest(size_t c) {
    const std::vector<size_t>& layers = chains_[c].layers;
    struct Best {
      double ns = std::numeric_limits<double>::infinity();
      size_t from = 0;
      Piece* piece = nullptr;  // a layer alone
    };
    std::vector<Best> best(layers.size() + 1);
    best[0].ns = 0;
    for (size_t last = 1; last <= layers.size(); ++last) {
      best[last] = {best[last - 1].ns + LayerNs(layers[last - 1]), last - 1};
      for (size_t first = 0; first + 1 < last; ++first) {
        const auto piece = pieces_.find({layers[first], layers[last - 1]});
        if (piece == pieces_.end()) continue;
        const double ns = best[first].ns + piece->second.Cost();
        if (ns < best[last].ns) best[last] = {ns, first, &piece->second};
      }
    }
    std::vector<Piece*> pieces;
    for (size_t at = layers.size(); at > 0; at = best[at].from) {
      if (best[at].piece != nullptr) pieces.push_back(best[at].piece);
    }
    return pieces;
  }

  // Asks whether these kernels are faster than their layers, where estimates do not decide.
  absl::Status Ask(const std::vector<Piece*>& chosen) {
    std::vector<FusionComparison> questions;
    std::vector<Piece*> asked;
    for (Piece* piece : chosen) {
      if (std::exchange(piece->asked, true)) continue;
      const auto [shorter, longer] = std::minmax(piece->fused_ns, piece->apart_ns);
      if (longer < options_.negligible_ns) continue;
      FusionComparison question;
      question.ways = {{piece->fusion_block}, LayersOf(*piece)};
      if (longer > options_.trusted_factor * shorter) {
        ASSIGN_OR_RETURN(const bool known, oracle_.Knows(graph_, question));
        if (!known) continue;
      }
      questions.push_back(std::move(question));
      asked.push_back(piece);
    }
    if (questions.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const FusionAnswers answers, oracle_.Compare(graph_, questions, {}));
    if (answers.asked.size() != questions.size()) {
      return absl::InternalError(absl::StrCat(answers.asked.size(), " answers to ", questions.size(), " questions"));
    }
    for (size_t q = 0; q < questions.size(); ++q) {
      const LatencyAnswer &fused = answers.asked[q].at(0), &apart = answers.asked[q].at(1);
      Piece& piece = *asked[q];
      piece.source = std::max(fused.source, apart.source);  // the less certain of the two
      piece.refused = piece.source == LatencySource::kFailed;
      if (IsMeasured(piece.source)) piece.fused_ns = fused.latency_ns, piece.apart_ns = apart.latency_ns;
    }
    return absl::OkStatus();
  }

  std::vector<FusionBlock> LayersOf(const Piece& piece) const {
    std::vector<FusionBlock> layers;
    for (const FusionBlock& layer : plan_.fusion_blocks) {
      if (Holds(piece, layer.nodes[0])) layers.push_back(layer);
    }
    return layers;
  }
  static bool Holds(const Piece& piece, NodeId node) {
    return std::binary_search(piece.fusion_block.nodes.begin(), piece.fusion_block.nodes.end(), node);
  }

  static const std::string& FormOf(const Piece& piece) { return piece.fusion_block.directives[0].alternative; }

  // Returns the kernel of the fewest nodes that was compared with its layers and would have joined these two; null
  // where there is none.
  const Piece* SmallestTried(const Decision& decision) const {
    const Piece* smallest = nullptr;
    for (const auto& [layers, piece] : pieces_) {
      if (!piece.asked || !Holds(piece, decision.producer) || !Holds(piece, decision.consumer)) continue;
      if (smallest == nullptr || piece.fusion_block.nodes.size() < smallest->fusion_block.nodes.size())
        smallest = &piece;
    }
    return smallest;
  }

  // For people: why the layers of this kernel, which was compared with them, are not one.
  std::string WhyApart(const Piece& piece) const {
    if (piece.refused) return "a kernel that runs them depth first failed when it was measured";
    return absl::StrFormat(
        "depth first (%s) %d layers take %.1f us against %.1f us (%s)%s", FormOf(piece), LayersOf(piece).size(),
        piece.fused_ns / 1e3, piece.apart_ns / 1e3, LatencySourceName(piece.source),
        piece.fused_ns < piece.apart_ns ? ", which is less than the chain gains by other cuts, or by "
                                          "the error of estimates"
                                        : "");
  }

  absl::StatusOr<FusionPlan> Finish(const std::vector<Piece*>& chosen) {
    std::vector<const Piece*> piece_of(graph_.nodes().size(), nullptr);
    std::vector<FusionBlock> fusion_blocks;
    for (const Piece* piece : chosen) {
      for (const NodeId id : piece->fusion_block.nodes) piece_of[static_cast<size_t>(id)] = piece;
      fusion_blocks.push_back(piece->fusion_block);
    }
    for (const FusionBlock& layer : plan_.fusion_blocks) {
      if (piece_of[static_cast<size_t>(layer.nodes[0])] == nullptr) fusion_blocks.push_back(layer);
    }
    std::optional<std::vector<FusionBlock>> ordered = OrderFusionBlocks(graph_, std::move(fusion_blocks));
    if (!ordered) return absl::InternalError("kernels that run depth first wait for each other");
    for (Decision& decision : plan_.decisions) {
      const Piece* piece = piece_of[static_cast<size_t>(decision.producer)];
      const bool joined = piece != nullptr && piece == piece_of[static_cast<size_t>(decision.consumer)];
      if (decision.fused) continue;
      if (!joined) piece = SmallestTried(decision);
      if (piece == nullptr) continue;
      decision.fused = joined;
      decision.basis = Basis::kLatency;
      decision.fused_ns = piece->fused_ns, decision.separate_ns = piece->apart_ns;
      decision.source = piece->source;
      decision.reason =
          joined ? absl::StrCat("depth first (", FormOf(*piece), "), since it leaves the core's own cache otherwise")
                 : WhyApart(*piece);
    }
    plan_.fusion_blocks = *std::move(ordered);
    return std::move(plan_);
  }

  const ecg::Graph& graph_;
  FusionOracle& oracle_;
  const PlanOptions& options_;
  FusionPlan plan_;  // of the layers
  std::vector<Chain> chains_;
  std::map<size_t, double> layer_ns_;                  // by fusion block
  std::map<std::pair<size_t, size_t>, Piece> pieces_;  // by their first and last layer
  size_t scheduled_ = 0;
};

class GraphTurbo : public Planner {
 public:
  const char* name() const override { return "graph_turbo"; }
  bool OffersMeasured() const override { return true; }

  absl::StatusOr<FusionPlan> Plan(const ecg::Graph& graph, const DeviceModel& device, FusionOracle& oracle,
                                  const PlanOptions& options) const override {
    ASSIGN_OR_RETURN(FusionPlan layers, DnnFusionPlanner()->Plan(graph, device, oracle, options));
    ASSIGN_OR_RETURN(std::vector<Chain> chains, graph_turbo::ChainsOf(graph, layers, device));
    if (chains.empty()) return layers;
    return DepthFirst(graph, oracle, options, std::move(layers)).Run(std::move(chains));
  }
};

}  // namespace

const Planner* GraphTurboPlanner() {
  static const auto* const kPlanner = new GraphTurbo;
  return kPlanner;
}

}  // namespace fusion

#include "compiler/plan/planners/graph_turbo/lowering/tiling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

namespace fusion::graph_turbo {
namespace {

// The piece `at` of each output; nullopt-like: empty where an output has another extent along a dimension that is cut.
std::vector<Region> PieceOfOutputs(const std::vector<Region>& outputs, const Factors& factors,
                                   const std::vector<int64_t>& at) {
  std::vector<Region> pieces;
  for (const Region& output : outputs) {
    Region piece = output;
    if (!output.nothing) {
      for (size_t d = 0; d < factors.size(); ++d) {
        if (factors[d] == 1) continue;
        if (d >= piece.ranges.size() || !(output.ranges[d] == outputs[0].ranges[d])) return {};
        const int64_t length = PieceLength(output.ranges[d].length(), factors[d]);
        piece.ranges[d].begin = std::min(output.ranges[d].begin + at[d] * length, output.ranges[d].end);
        piece.ranges[d].end = std::min(piece.ranges[d].begin + length, output.ranges[d].end);
      }
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

// The number of pieces of this length that the extent has; factors that leave the last pieces empty become this.
int64_t Canonical(int64_t extent, int64_t factor) {
  const int64_t length = PieceLength(extent, factor);
  return (extent + length - 1) / length;
}

// The piece in the middle, which has all halos. It is never the last one where that is shorter: two heads of a tensor
// that is a product's columns reach over many more of these columns than one head does.
int64_t MiddleOf(int64_t extent, int64_t factor) {
  const int64_t middle = factor / 2;
  return middle > 0 && middle + 1 == factor && extent % PieceLength(extent, factor) != 0 ? middle - 1 : middle;
}

double Bytes(const Region& region, int64_t element_bytes) {
  return static_cast<double>(region.elements()) * static_cast<double>(element_bytes);
}

// The inputs that some segment takes from the LB.
std::set<te::TensorId> ReadInLb(const Layer& layer) {
  std::set<te::TensorId> read;
  for (const Segment& segment : layer.segments) read.insert(segment.in.begin(), segment.in.end());
  return read;
}

class TilingSearch {
 public:
  TilingSearch(const TilingRequest& request, const CoreRates& rates)
      : request_(request), rates_(rates), layer_(*request.layer), read_(ReadInLb(layer_)) {
    core_ = layer_.access.RequiredTensors(request.outputs);
    const std::vector<te::TensorId>& outputs = layer_.access.program().outputs;
    for (const Segment& segment : layer_.segments) {
      for (const te::TensorId made : segment.out) {
        const bool output = std::find(outputs.begin(), outputs.end(), made) != outputs.end();
        if (!output || !request.outputs_have_room) made_.push_back(made);
      }
    }
  }

  // Cuts until the operands fit, each time where it costs the least for what it saves; then takes back what turned out
  // to be needless.
  //
  // A first cut of a sum makes nothing smaller, because two parts are in the LB at a time, so that several numbers of
  // parts are tried from the beginning.
  Tiling Run() const {
    Tiling best;
    for (int64_t chunks = 1; chunks <= ExtentOf(request_.outputs[0].ranges.size()); chunks *= 4) {
      Tiling tiling = From(chunks);
      if (chunks == 1 || tiling.fits > best.fits || (tiling.fits == best.fits && tiling.cycles < best.cycles)) {
        best = std::move(tiling);
      }
      if (chunks == 1 && best.fits && Pieces(best.factors) == 1) break;
    }
    return best;
  }

 private:
  Tiling From(int64_t chunks) const {
    Tiling best;
    best.chunks = Canonical(ExtentOf(request_.outputs[0].ranges.size()), chunks);
    best.factors.assign(request_.outputs[0].ranges.size(), 1);
    best.whole.assign(request_.resident.size(), false);
    Evaluate(&best);
    while (!best.fits) {
      Tiling next;
      double score = std::numeric_limits<double>::infinity();
      for (size_t axis = 0; axis <= best.factors.size(); ++axis) {
        Tiling candidate = best;
        if (!Finer(axis, &candidate) || !Evaluate(&candidate)) continue;
        const double over =
            std::max(1.0, candidate.bytes / static_cast<double>(std::max<int64_t>(request_.budget_bytes, 1)));
        const double own = std::log(candidate.cycles + 1) + 2 * std::log(over);
        if (own >= score) continue;
        score = own;
        next = std::move(candidate);
      }
      if (std::isinf(score)) return best;
      best = std::move(next);
    }
    while (Improve(&best)) {
    }
    return best;
  }

  int64_t ExtentOf(size_t axis) const {
    const size_t rank = request_.outputs[0].ranges.size();
    if (axis < rank) return request_.outputs[0].ranges[axis].length();
    return layer_.chunk_axis >= 0 ? layer_.chunk_extent : 1;
  }
  int64_t* FactorOf(size_t axis, Tiling* tiling) const {
    return axis < tiling->factors.size() ? &tiling->factors[axis] : &tiling->chunks;
  }
  // Doubles or halves the number of pieces along a dimension of the output or, behind these, along the chunk axis.
  bool Finer(size_t axis, Tiling* tiling) const {
    int64_t* const factor = FactorOf(axis, tiling);
    const int64_t extent = ExtentOf(axis), before = *factor;
    if (before >= extent) return false;
    for (int64_t wanted = std::min(before * 2, extent); *factor <= before; ++wanted)
      *factor = Canonical(extent, wanted);
    return true;
  }
  bool Coarser(size_t axis, Tiling* tiling) const {
    int64_t* const factor = FactorOf(axis, tiling);
    if (*factor == 1) return false;
    *factor = Canonical(ExtentOf(axis), *factor / 2);
    return true;
  }

  // Takes the best neighbour that fits and is faster: coarser along one axis, also with another one finer, or with an
  // input that is brought once.
  bool Improve(Tiling* best) const {
    Tiling found;
    double least = best->cycles * 0.999;
    const auto consider = [&](Tiling candidate) {
      if (!Evaluate(&candidate) || !candidate.fits || candidate.cycles >= least) return;
      least = candidate.cycles;
      found = std::move(candidate);
    };
    for (size_t axis = 0; axis <= best->factors.size(); ++axis) {
      Tiling coarser = *best;
      if (!Coarser(axis, &coarser)) continue;
      consider(coarser);
      for (size_t other = 0; other <= best->factors.size(); ++other) {
        Tiling exchanged = coarser;
        if (other != axis && Finer(other, &exchanged)) consider(std::move(exchanged));
      }
    }
    for (size_t k = 0; k < best->whole.size(); ++k) {
      Tiling candidate = *best;
      candidate.whole[k] = !candidate.whole[k];
      consider(std::move(candidate));
    }
    if (found.factors.empty() && least == best->cycles * 0.999) return false;
    *best = std::move(found);
    return true;
  }

  // Fills the order of loops, bytes and cycles. False where an output cannot be cut so.
  bool Evaluate(Tiling* tiling) const {
    std::vector<int64_t> middle;
    for (size_t d = 0; d < tiling->factors.size(); ++d) {
      middle.push_back(MiddleOf(request_.outputs[0].ranges[d].length(), tiling->factors[d]));
    }
    const std::vector<Region> piece = PieceOfOutputs(request_.outputs, tiling->factors, middle);
    if (piece.empty()) return false;
    const ReductionPart part = ChunkPart(layer_, tiling->chunks, tiling->chunks / 2);
    const std::vector<Region> tensors = layer_.access.RequiredTensors(piece, part);
    // Which inputs change along which dimension?
    const size_t inputs = request_.resident.size();
    std::vector<std::vector<bool>> changes(inputs, std::vector<bool>(tiling->factors.size(), false));
    std::vector<bool> moves_weights(tiling->factors.size(), false);
    for (size_t d = 0; d < tiling->factors.size(); ++d) {
      if (tiling->factors[d] == 1) continue;
      std::vector<int64_t> other = middle;
      other[d] = middle[d] == 0 ? 1 : 0;
      const std::vector<Region> moved =
          layer_.access.RequiredTensors(PieceOfOutputs(request_.outputs, tiling->factors, other), part);
      for (size_t k = 0; k < inputs; ++k) {
        const te::TensorId t = layer_.access.program().inputs[k];
        changes[k][d] = !(moved[t] == tensors[t]);
        if (request_.weight[k] && changes[k][d]) moves_weights[d] = true;
      }
    }
    tiling->loops.clear();
    for (const bool weights : {true, false}) {
      for (size_t d = 0; d < tiling->factors.size(); ++d) {
        if (tiling->factors[d] > 1 && moves_weights[d] == weights) tiling->loops.push_back(static_cast<int>(d));
      }
    }
    const double tiles = static_cast<double>(Pieces(tiling->factors) * tiling->chunks);
    double bytes = 0, transfers = 0, ddr = 0;
    for (size_t k = 0; k < inputs; ++k) {
      const te::TensorId t = layer_.access.program().inputs[k];
      if (request_.resident[k] || read_.count(t) == 0) continue;
      double times = 1, outer = 1;
      for (const int d : tiling->loops) {
        outer *= static_cast<double>(tiling->factors[d]);
        if (changes[k][d]) times = outer;
      }
      const bool chunked = tiling->chunks > 1 && tensors[t].elements() < core_[t].elements() && times < tiles;
      if (chunked) times = tiles;
      const bool whole = tiling->whole[k] || times == 1;
      const Region& box = whole ? core_[t] : tensors[t];
      if (whole) times = 1;
      bytes += Rounded(Bytes(box, request_.element_bytes)) * (whole ? 1 : 2);
      transfers += times * (Bytes(box, request_.element_bytes) / rates_.transfer_bytes + rates_.transfer_startup);
      if (request_.ddr_parts.empty() || request_.ddr_parts[k] == 0) continue;
      // Between two readings of a box the stream brings what the loops within need.
      double again = 1, between = Bytes(tensors[t], request_.element_bytes) * (chunked ? tiling->chunks : 1);
      for (auto d = tiling->loops.rbegin(); d != tiling->loops.rend() && !whole; ++d) {
        const double factor = static_cast<double>(tiling->factors[*d]);
        if (changes[k][*d]) {
          between *= factor;
        } else if (between > rates_.stream_bytes) {
          again *= factor;
        }
      }
      ddr += request_.ddr_parts[k] * again * Bytes(core_[t], request_.element_bytes) / rates_.ddr_bytes;
    }
    if (request_.outputs_leave) {
      for (const te::TensorId t : layer_.access.program().outputs) {
        const double made = Bytes(tensors[t], request_.element_bytes), pieces = Pieces(tiling->factors);
        if (request_.ddr_outputs > 0) {
          ddr += pieces * request_.ddr_outputs * (made / rates_.ddr_bytes + rates_.ddr_startup);
        } else {
          transfers += pieces * (made / rates_.transfer_bytes + rates_.transfer_startup);
        }
      }
    }
    for (const te::TensorId t : made_)
      bytes += Rounded(Bytes(tensors[t], request_.element_bytes)) * (tiles > 1 ? 2 : 1);
    const double units = static_cast<double>(Pieces(tiling->factors)) *
                             (UnitCycles(layer_, tensors, rates_) * static_cast<double>(tiling->chunks) +
                              rates_.unit_startup * static_cast<double>(layer_.segments.size())) +
                         (tiles - static_cast<double>(Pieces(tiling->factors))) * rates_.unit_startup;
    tiling->bytes = bytes;
    tiling->fits = bytes <= static_cast<double>(request_.budget_bytes);
    const double longest = std::max({units, transfers, ddr});
    tiling->cycles = longest + 0.1 * (units + transfers + ddr - longest);
    return true;
  }

  static double Rounded(double bytes) { return std::ceil(bytes / 32) * 32; }

  const TilingRequest& request_;
  const CoreRates& rates_;
  const Layer& layer_;
  const std::set<te::TensorId> read_;
  std::vector<Region> core_;        // what the whole part needs
  std::vector<te::TensorId> made_;  // what tiles make within the budget
};

}  // namespace

std::vector<std::vector<Region>> CutOutputs(const std::vector<Region>& outputs, const Factors& factors) {
  std::vector<std::vector<Region>> pieces;
  for (int64_t number = 0; number < Pieces(factors); ++number) {
    pieces.push_back(PieceOfOutputs(outputs, factors, PieceAt(factors, number)));
    if (pieces.back().empty()) return {};
  }
  return pieces;
}

double UnitCycles(const Layer& layer, const std::vector<Region>& tensors, const CoreRates& rates) {
  double cycles = 0;
  for (const Segment& segment : layer.segments) {
    if (segment.unit == SegmentUnit::kGather) continue;
    const double rate = segment.unit == SegmentUnit::kMatrix   ? rates.matrix
                        : segment.unit == SegmentUnit::kVector ? rates.vector
                                                               : rates.special;
    cycles += segment.Work(tensors) / rate;
  }
  return cycles;
}

Factors ChooseBinding(const Layer& layer, const std::vector<Region>& outputs, int cores, const CoreRates& rates,
                      const std::function<double(int core, const AccessMap::Needs& needs)>& fetched_bytes) {
  const size_t rank = outputs[0].ranges.size();
  Factors best(rank, 1);
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](const Factors& factors) {
    const std::vector<std::vector<Region>> pieces = CutOutputs(outputs, factors);
    if (pieces.empty()) return;
    double units = 0, transfers = 0;
    for (size_t core = 0; core < pieces.size(); ++core) {
      const AccessMap::Needs needs = layer.access.Required(pieces[core]);
      units = std::max(units, UnitCycles(layer, needs.tensors, rates));
      transfers = std::max(transfers, fetched_bytes(static_cast<int>(core), needs) / rates.transfer_bytes);
    }
    const double cycles = std::max(units, transfers) + 0.3 * std::min(units, transfers);
    if (cycles >= least) return;
    least = cycles;
    best = factors;
  };
  consider(best);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t extent = outputs[0].ranges[d].length();
    if (extent == 1) continue;
    Factors one(rank, 1);
    one[d] = Canonical(extent, std::min<int64_t>(cores, extent));
    consider(one);
    for (size_t e = d + 1; e < rank; ++e) {
      const int64_t other = outputs[0].ranges[e].length();
      for (int64_t f = 2; f * 2 <= cores; f *= 2) {
        if (extent < f || other < cores / f) continue;
        Factors two(rank, 1);
        two[d] = Canonical(extent, f);
        two[e] = Canonical(other, cores / f);
        consider(two);
      }
    }
  }
  return best;
}

ReductionPart ChunkPart(const Layer& layer, int64_t chunks, int64_t number) {
  if (chunks == 1) return {};
  const int64_t length = PieceLength(layer.chunk_extent, chunks);
  return {layer.chunk_axis, {number * length, std::min((number + 1) * length, layer.chunk_extent)}};
}

Tiling ChooseTiling(const TilingRequest& request, const CoreRates& rates) { return TilingSearch(request, rates).Run(); }

std::vector<std::vector<Region>> TilesOf(const std::vector<Region>& outputs, const Tiling& tiling) {
  std::vector<std::vector<Region>> tiles;
  std::vector<int64_t> at(tiling.factors.size(), 0);
  while (true) {
    std::vector<Region> tile = PieceOfOutputs(outputs, tiling.factors, at);
    // A shorter core's part may have fewer tiles.
    if (tile[0].elements() > 0 || tiling.loops.empty()) tiles.push_back(std::move(tile));
    size_t loop = tiling.loops.size();
    while (loop-- > 0) {
      const int d = tiling.loops[loop];
      if (++at[d] < tiling.factors[d]) break;
      at[d] = 0;
    }
    if (loop == static_cast<size_t>(-1)) return tiles;
  }
}

}  // namespace fusion::graph_turbo

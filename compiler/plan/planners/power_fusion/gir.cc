#include "compiler/plan/planners/power_fusion/gir.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/cost/caches.h"

namespace fusion::power_fusion {

const char* GKindName(GKind kind) {
  switch (kind) {
    case GKind::kMove:
      return "move";
    case GKind::kSync:
      return "sync";
    case GKind::kElementwise:
      return "elementwise";
    case GKind::kBroadcast:
      return "broadcast";
    case GKind::kReduce:
      return "reduce";
  }
  return "";
}

int Gir::Add(Slice slice) {
  slices.push_back(std::move(slice));
  return static_cast<int>(slices.size()) - 1;
}

std::vector<int> MakersOf(const Gir& gir) {
  std::vector<int> makers(gir.slices.size(), -1);
  for (size_t o = 0; o < gir.operators.size(); ++o) makers[gir.operators[o].writes] = static_cast<int>(o);
  return makers;
}

std::vector<int> PhasesOf(const Gir& gir) {
  std::vector<int> of_slice(gir.slices.size(), 0), phases;
  // Moves and computations that depend on nothing but DRAM from outside are made where they are needed, since registers
  // do not outlive a synchronisation of device scope.
  std::vector<char> outside(gir.slices.size(), 1);
  std::vector<std::vector<int>> users(gir.slices.size());
  for (size_t o = 0; o < gir.operators.size(); ++o) {
    const GOperator& op = gir.operators[o];
    int phase = 0;
    bool free = op.kind != GKind::kSync && gir.slices[op.writes].memory != Scope::kDevice;
    for (const int slice : op.reads) {
      phase = std::max(phase, of_slice[slice]);
      free = free && outside[slice];
      users[slice].push_back(static_cast<int>(o));
    }
    phases.push_back(phase);
    outside[op.writes] = free;
    of_slice[op.writes] = phase + (op.kind == GKind::kSync && op.scope == Scope::kDevice ? 1 : 0);
  }
  for (size_t o = gir.operators.size(); o-- > 0;) {
    const std::vector<int>& readers = users[gir.operators[o].writes];
    if (!outside[gir.operators[o].writes] || readers.empty()) continue;
    int first = phases[readers[0]];
    for (const int reader : readers) first = std::min(first, phases[reader]);
    phases[o] = first;
  }
  return phases;
}

MovedBytes BytesOf(const Gir& gir, const DeviceModel& device) {
  const std::vector<int> phases = PhasesOf(gir);
  const auto cache = static_cast<double>(LargestCacheBytes(device));
  // A phase touches a tensor; partial results are told apart by their slices.
  using Touch = std::pair<int, int64_t>;
  const auto touch = [&](int phase, int slice) {
    const ecg::ValueId value = gir.slices[slice].value;
    return Touch(phase, value == ecg::kNone ? -1 - int64_t{slice} : value);
  };
  std::map<Touch, double> read;
  std::set<Touch> written;
  MovedBytes moved;
  for (size_t o = 0; o < gir.operators.size(); ++o) {
    const GOperator& op = gir.operators[o];
    moved.phases = std::max(moved.phases, phases[o] + 1);
    if (op.kind == GKind::kSync) {
      if (op.scope == Scope::kDevice) continue;
      const Slice& near = gir.slices[op.writes];
      moved.exchanged += 2 * near.bytes;
      moved.unit_bytes = std::max(moved.unit_bytes, near.bytes / static_cast<double>(std::max<int64_t>(1, gir.units)));
      continue;
    }
    for (const int slice : op.reads) {
      const Slice& source = gir.slices[slice];
      if (source.memory != Scope::kDevice) continue;
      double bytes = source.bytes;
      // Rows that are looked up in a table that no cache holds are read one by one.
      if (op.looked_up_bytes > 0 && bytes > cache) bytes = std::min(bytes, op.looked_up_bytes);
      double& known = read[touch(phases[o], slice)];
      known = std::max(known, bytes);
    }
    const Slice& result = gir.slices[op.writes];
    if (result.memory == Scope::kDevice && written.insert(touch(phases[o], op.writes)).second) {
      moved.written += result.bytes;
    }
  }
  for (const auto& [where, bytes] : read) {
    if (written.count(where) == 0) moved.read += bytes;
  }
  return moved;
}

std::string Print(const ecg::Graph& graph, const Gir& gir) {
  const auto name = [&](int s) {
    const Slice& slice = gir.slices[s];
    const std::string value = slice.value == ecg::kNone ? "partial" : "%" + graph.value(slice.value).name;
    return absl::StrCat(value, "@",
                        slice.memory == Scope::kDevice  ? "DRAM"
                        : slice.memory == Scope::kBlock ? "block"
                                                        : "registers",
                        "[", ToString(slice.pattern), "]");
  };
  std::string text = absl::StrCat("parallel ", gir.units, " {\n");
  for (const GOperator& op : gir.operators) {
    absl::StrAppend(&text, "  ", GKindName(op.kind));
    if (op.kind == GKind::kSync) absl::StrAppend(&text, " ", ScopeName(op.scope));
    if (op.kind == GKind::kReduce) absl::StrAppend(&text, op.along_width ? " along width" : " along num");
    for (size_t r = 0; r < op.reads.size(); ++r) absl::StrAppend(&text, r == 0 ? " " : ", ", name(op.reads[r]));
    absl::StrAppend(&text, " -> ", name(op.writes), "\n");
  }
  return text + "}\n";
}

}  // namespace fusion::power_fusion

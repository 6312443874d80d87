#include "compiler/bundle/program_layout.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "compiler/ecg/run_checks.h"
#include "compiler/launch/memory_plan.h"
#include "compiler/movement/in_place.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// Returns the time at which each launch runs. Concurrent launches run at the same time.
std::vector<int> TimesOf(const std::vector<PlannedLaunch>& launches) {
  std::vector<int> times;
  for (const PlannedLaunch& launch : launches) {
    times.push_back(times.empty() ? 0 : times.back() + (launch.concurrent ? 0 : 1));
  }
  return times;
}

// Returns the buffers that several concurrent launches use, each with the time.
std::set<std::pair<int, int>> UsedTogether(const std::vector<Launch>& launches, const std::vector<int>& times) {
  std::set<std::pair<int, int>> used, together;
  for (size_t l = 0; l < launches.size(); ++l) {
    std::set<int> own;
    for (size_t s = 0; s < launches[l].sets(); ++s) own.insert(launches[l].set(s).begin(), launches[l].set(s).end());
    for (const int buffer : own) {
      if (!used.insert({times[l], buffer}).second) together.insert({times[l], buffer});
    }
  }
  return together;
}

// Puts a result into the memory of an operand, if its kernel is the operand's last reader and allows it: the two become
// one arena item. Returns the buffer whose memory each such result uses.
std::map<int, int> ShareInPlace(const std::vector<PlannedLaunch>& planned, const std::vector<Launch>& launches,
                                const std::vector<int>& times, std::map<int, ArenaItem>* arena) {
  std::map<int, int> owner;
  const std::set<std::pair<int, int>> together = UsedTogether(launches, times);
  for (size_t l = 0; l < launches.size(); ++l) {
    if (launches[l].sets() > 1) continue;  // another set of arguments may read the operand later
    const std::vector<int>& args = launches[l].buffers;
    const int time = times[l];
    const movement::Kernel& kernel = planned[l].fusion_kernel.kernel;
    std::vector<int> buffer_of;  // the manifest's buffer, by the kernel's
    size_t arg = 0;
    for (const movement::Buffer& buffer : kernel.buffers) {
      buffer_of.push_back(!movement::IsArgument(buffer) ? -1 : args[arg++]);
    }
    for (const movement::InPlacePair& pair : movement::InPlacePairs(kernel)) {
      const int out = buffer_of[pair.out];
      auto result = arena->find(out);
      auto known = owner.find(buffer_of[pair.in]);
      const int in = known != owner.end() ? known->second : buffer_of[pair.in];
      auto operand = arena->find(in);
      if (result == arena->end() || operand == arena->end() || result == operand) continue;
      if (result->second.first != time || operand->second.last != time) continue;
      if (together.count({time, buffer_of[pair.in]}) > 0) continue;  // another launch may read it later
      if (result->second.size_bytes != operand->second.size_bytes) continue;
      if (std::count(args.begin(), args.end(), buffer_of[pair.in]) != 1) continue;
      operand->second.last = result->second.last;
      arena->erase(result);
      owner[out] = in;
    }
  }
  return owner;
}

class ProgramLayout {
 public:
  ProgramLayout(const KernelTexts& texts, const BundleProgram& source, Weights* weights)
      : texts_(texts),
        source_(source),
        graph_(*source.graph),
        launches_(*source.launches),
        times_(TimesOf(launches_)),
        weights_(*weights),
        program_(result_.program) {}

  absl::StatusOr<LaidOut> Make() {
    program_.dims = source_.dims;
    AddInputs();
    for (size_t i = 0; i < graph_.outputs().size(); ++i) AddOutput(i);
    RETURN_IF_ERROR(BindOutputExtents());
    AddRepeats();
    for (size_t l = 0; l < launches_.size(); ++l) AddLaunch(static_cast<int>(l));
    HoldThroughRepeats();
    PlaceArena();
    return std::move(result_);
  }

 private:
  int NextBuffer() const { return static_cast<int>(program_.buffers.size()); }

  // Returns the buffer of a value. The first call makes it, of this kind.
  int ValueBuffer(ecg::ValueId v, Buffer::Kind kind) {
    auto [it, fresh] = buffer_of_value_.emplace(v, NextBuffer());
    if (!fresh) return it->second;
    const ecg::Value& value = graph_.value(v);
    const auto found = source_.layouts->find(v);
    const Layout layout = found == source_.layouts->end() ? Layout() : found->second;
    Buffer buffer;
    buffer.kind = kind;
    buffer.name = value.name;
    buffer.dtype = value.type.dtype;
    buffer.shape = layout.PhysicalShape(value.type.shape);
    buffer.size_bytes = NumElements(buffer.shape) * DTypeBytes(buffer.dtype);
    buffer.layout = layout.plain() ? "row-major" : layout.ToString(static_cast<int>(value.type.shape.size()));
    program_.buffers.push_back(buffer);
    return it->second;
  }

  void AddInputs() {
    std::set<int> extents;  // inputs that the runtime sets
    for (const onnx_import::InputExtent& e : source_.input_extents) extents.insert(e.extent);
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const ecg::ValueId v = graph_.inputs()[i];
      const ecg::Value& value = graph_.value(v);
      const int buffer = ValueBuffer(v, Buffer::Kind::kInput);
      if (extents.count(static_cast<int>(i)) > 0) continue;
      program_.inputs.push_back({value.name, value.type.dtype, value.type.shape, buffer});
      if (!source_.input_symbols.empty()) program_.inputs.back().symbols = source_.input_symbols[i];
    }
    // The inputs that hold extents come after all other inputs.
    for (const onnx_import::InputExtent& e : source_.input_extents) {
      Binding& binding = program_.inputs[e.input];
      binding.extents.resize(binding.shape.size(), -1);
      binding.extents[e.dim] = ValueBuffer(graph_.inputs()[e.extent], Buffer::Kind::kInput);
    }
  }

  // Adds the graph's output: as the program's output, as a check of the run, or as a buffer that an extent needs.
  void AddOutput(size_t i) {
    const ecg::ValueId v = graph_.outputs()[i];
    const ecg::Value& value = graph_.value(v);
    const std::string& name = graph_.output_names()[i];
    const int buffer = value.constant ? AddConstantOutput(v) : ValueBuffer(v, Buffer::Kind::kOutput);
    if (ecg::IsModelOutput(graph_, i)) {
      program_.outputs.push_back({name, value.type.dtype, value.type.shape, buffer});
    } else if (ecg::IsRunCheck(name)) {
      program_.checks.push_back({buffer, ecg::RunCheckMessage(name)});
    }
  }

  int AddConstantOutput(ecg::ValueId v) {
    const ecg::Value& value = graph_.value(v);
    const int buffer = NextBuffer();
    constant_outputs_[v] = buffer;
    Buffer constant;
    constant.kind = Buffer::Kind::kConstant;
    constant.name = value.name;
    constant.dtype = value.type.dtype;
    constant.shape = value.type.shape;
    constant.size_bytes = value.constant->size_bytes();
    constant.layout = "row-major";
    result_.constants.emplace_back(
        buffer, weights_.Add(BytesIdentity(*value.constant),
                             {*value.constant, nullptr, constant.dtype, constant.shape, constant.size_bytes}));
    program_.buffers.push_back(constant);
    return buffer;
  }

  absl::Status BindOutputExtents() {
    for (const ecg::OutputExtent& e : graph_.output_extents()) {
      const ecg::ValueId extent = graph_.outputs()[e.extent];
      if (graph_.value(graph_.outputs()[e.output]).constant) {
        return absl::InternalError("a constant output has extents: import cuts it instead");
      }
      Binding& binding = program_.outputs[e.output];
      binding.extents.resize(binding.shape.size(), -1);
      auto constant = constant_outputs_.find(extent);
      binding.extents[e.dim] =
          constant != constant_outputs_.end() ? constant->second : ValueBuffer(extent, Buffer::Kind::kOutput);
      result_.has_extents = true;
    }
    return absl::OkStatus();
  }

  void AddLaunch(int l) {
    const PlannedLaunch& planned = launches_[l];
    Launch launch;
    launch.label = planned.label;
    launch.nodes = planned.nodes;
    launch.concurrent = planned.concurrent;
    launch.buffers = BindArguments(planned.fusion_kernel, times_[l]);
    for (const FusionKernel& other : planned.others) launch.others.push_back(BindArguments(other, times_[l]));
    // All sets in all iterations.
    const int64_t sets = static_cast<int64_t>(launch.sets()) * program_.TripsOf(l);
    launch.flops = planned.fusion_kernel.flops * static_cast<double>(sets);
    for (const movement::Buffer* buffer : ArgBuffers(planned.fusion_kernel)) {
      const int loop = buffer->moves_with;
      const int64_t places = loop < 0 ? 1 : planned.fusion_kernel.kernel.phase_loops[loop].trips;
      launch.bytes += sets * places * movement::SizeBytes(*buffer);
    }
    const KernelTexts::Place& place = source_.places[l];
    auto [kernel, fresh] = kernel_index_.emplace(place.symbol, static_cast<int>(program_.kernels.size()));
    if (fresh) program_.kernels.push_back(MakeManifestKernel(texts_, planned.fusion_kernel, place));
    launch.kernel = kernel->second;
    program_.scratch_bytes_per_thread =
        std::max(program_.scratch_bytes_per_thread, planned.fusion_kernel.kernel.scratch_bytes);
    program_.launches.push_back(std::move(launch));
  }

  // Returns the buffers for the arguments of a kernel that runs at `time`.
  std::vector<int> BindArguments(const FusionKernel& fusion_kernel, int time) {
    std::vector<int> ids;
    const std::vector<const movement::Buffer*> buffers = ArgBuffers(fusion_kernel);
    for (size_t a = 0; a < fusion_kernel.args.size(); ++a) {
      const KernelArg& arg = fusion_kernel.args[a];
      switch (arg.kind) {
        case KernelArg::Kind::kValue:
          ids.push_back(BindValue(arg.value, time));
          break;
        case KernelArg::Kind::kTemporary:
          ids.push_back(AddTemporary(*buffers[a], time));
          break;
        case KernelArg::Kind::kConstant:
          ids.push_back(BindConstant(fusion_kernel, arg, *buffers[a]));
          break;
      }
    }
    return ids;
  }

  int BindValue(ecg::ValueId v, int time) {
    const int id = ValueBuffer(v, Buffer::Kind::kArena);
    if (program_.buffers[id].kind != Buffer::Kind::kArena) return id;
    std::optional<BufferSteps> steps;
    const auto [whole, offset] = MemoryOf(v, &steps);
    if (whole != id) {
      inside_[id] = {whole, offset};
      wholes_.insert(whole);
      program_.buffers[id].steps = steps;
    }
    const int64_t size_bytes = program_.buffers[whole].size_bytes;
    auto [it, fresh] = arena_.emplace(whole, ArenaItem{size_bytes, time, time});
    it->second.last = time;
    return id;
  }

  // Returns the buffer in whose memory a value lies, which may be its own, and the offset there: that of slot 0 where
  // `steps` say how it moves.
  std::pair<int, int64_t> MemoryOf(ecg::ValueId v, std::optional<BufferSteps>* steps) {
    const Inside at = WholeOf(v);
    if (source_.loops == nullptr) return {ValueBuffer(at.whole, Buffer::Kind::kArena), at.offset_bytes};
    const auto placed = source_.loops->memory.places.find(at.whole);
    if (placed == source_.loops->memory.places.end()) {
      return {ValueBuffer(at.whole, Buffer::Kind::kArena), at.offset_bytes};
    }
    const LoopPlace& place = placed->second;
    const LoopSlots& slots = source_.loops->memory.SlotsOf(place);
    std::pair<int, int64_t> memory;
    if (place.memory < 0) {
      memory = MemoryOf(place.whole, steps);  // what a loop scans does not move
    } else {
      memory = {LoopBuffer(place.memory), slots.lead_bytes};
    }
    memory.second += at.offset_bytes;
    if (place.loop < 0) {
      memory.second += place.first * slots.slot_bytes;
    } else {
      *steps = BufferSteps{repeat_of_loop_.at(place.loop), place.first, place.step, slots.slots, slots.slot_bytes};
    }
    return memory;
  }

  // The buffer of the slots that the iterations of a loop share.
  int LoopBuffer(int memory) {
    auto [it, fresh] = buffer_of_memory_.emplace(memory, NextBuffer());
    if (!fresh) return it->second;
    Buffer buffer;
    buffer.name = "loop";
    buffer.dtype = DType::kU8;
    buffer.size_bytes = source_.loops->memory.memories[memory].size_bytes();
    buffer.shape = {buffer.size_bytes};
    buffer.layout = "row-major";
    program_.buffers.push_back(buffer);
    return it->second;
  }

  void AddRepeats() {
    if (source_.loops == nullptr) return;
    for (const LaunchLoop& loop : source_.loops->launches) {
      repeat_of_loop_[loop.loop] = static_cast<int>(program_.repeats.size());
      program_.repeats.push_back(
          {static_cast<int>(loop.first), static_cast<int>(loop.end), loop.trips, loop.in_launch});
    }
  }

  // A value that is used in a repeat and outside of it is alive during all iterations. It is never shared in place,
  // because the next iteration may read it again.
  void HoldThroughRepeats() {
    for (const Repeat& repeat : program_.repeats) {
      const int first = times_[repeat.first], last = times_[repeat.end - 1];
      for (auto& [buffer, item] : arena_) {
        const bool apart = item.last < first || item.first > last, within = item.first >= first && item.last <= last;
        if (apart || within) continue;
        item.first = std::min(item.first, first);
        item.last = std::max(item.last, last);
        wholes_.insert(buffer);
      }
    }
  }

  // Returns the outermost value whose memory holds this one, and the offset in it.
  Inside WholeOf(ecg::ValueId v) const {
    Inside at{v, 0};
    for (auto it = source_.inside->find(v); it != source_.inside->end(); it = source_.inside->find(at.whole)) {
      at = {it->second.whole, at.offset_bytes + it->second.offset_bytes};
    }
    return at;
  }

  int AddTemporary(const movement::Buffer& temporary, int time) {
    Buffer buffer;
    buffer.name = "temporary";
    buffer.dtype = temporary.dtype;
    buffer.shape = {temporary.elements};
    buffer.size_bytes = movement::SizeBytes(temporary);
    const int id = NextBuffer();
    program_.buffers.push_back(buffer);
    arena_[id] = {buffer.size_bytes, time, time};
    return id;
  }

  // Returns the buffer of a constant argument; arguments of the same bytes and packing share one.
  int BindConstant(const FusionKernel& fusion_kernel, const KernelArg& arg, const movement::Buffer& argument) {
    const bool is_table = arg.value == ecg::kNone;
    const Tensor tensor = is_table ? arg.literal : *graph_.value(arg.value).constant;
    const movement::Pack* pack = arg.pack >= 0 ? &fusion_kernel.kernel.packs[arg.pack] : nullptr;
    std::string identity =
        is_table ? absl::StrCat("literal:", Sha256Hex(absl::string_view(static_cast<const char*>(tensor.data()),
                                                                        static_cast<size_t>(tensor.size_bytes()))))
                 : BytesIdentity(tensor);
    std::string packing = pack == nullptr ? "" : PackingText(*pack);
    if (pack != nullptr && !pack->transform.by_dimension.empty()) {
      absl::StrAppend(&packing, ShapeToString(tensor.shape()));
    }
    auto [it, fresh] = weight_buffers_.emplace(absl::StrCat(identity, packing), NextBuffer());
    if (pack != nullptr && !KeepsOrder(*pack, tensor.num_elements())) identity += packing;
    if (!fresh) return it->second;
    Buffer buffer;
    buffer.kind = Buffer::Kind::kConstant;
    buffer.name = is_table ? "table" : graph_.value(arg.value).name;
    buffer.dtype = argument.dtype;
    buffer.shape = pack != nullptr ? Shape{argument.elements} : tensor.shape();
    buffer.size_bytes = pack != nullptr ? movement::SizeBytes(argument) : tensor.size_bytes();
    buffer.layout = pack != nullptr ? "packed" : "row-major";
    program_.buffers.push_back(buffer);
    result_.constants.emplace_back(
        it->second, weights_.Add(identity, {tensor, pack, buffer.dtype, buffer.shape, buffer.size_bytes, is_table}));
    return it->second;
  }

  // Gives every buffer of the arena its offset.
  void PlaceArena() {
    // A value that holds others is kept out of in-place sharing: the others still read it.
    std::map<int, ArenaItem> holding;
    for (int whole : wholes_) holding.insert(arena_.extract(whole));
    const std::map<int, int> shared = ShareInPlace(launches_, program_.launches, times_, &arena_);
    arena_.merge(holding);
    std::vector<ArenaItem> items;
    std::vector<int> item_buffers;
    for (const auto& [buffer, item] : arena_) {
      items.push_back(item);
      item_buffers.push_back(buffer);
    }
    program_.arena_bytes = PlanArena(&items);
    for (size_t i = 0; i < items.size(); ++i) program_.buffers[item_buffers[i]].offset = items[i].offset;
    for (const auto& [buffer, owner] : shared) program_.buffers[buffer].offset = program_.buffers[owner].offset;
    for (const auto& [buffer, at] : inside_) {
      program_.buffers[buffer].offset = program_.buffers[at.first].offset + at.second;
    }
  }

  const KernelTexts& texts_;
  const BundleProgram& source_;
  const ecg::Graph& graph_;
  const std::vector<PlannedLaunch>& launches_;
  const std::vector<int> times_;  // parallel to `launches_`
  Weights& weights_;
  LaidOut result_;
  ManifestProgram& program_;  // of the result
  std::map<ecg::ValueId, int> buffer_of_value_;
  std::map<ecg::ValueId, int> constant_outputs_;
  std::map<int, int> repeat_of_loop_;              // by loop of the graph
  std::map<int, int> buffer_of_memory_;            // by memory of the loops
  std::map<int, std::pair<int, int64_t>> inside_;  // buffer -> the buffer that holds it, and the offset
  std::set<int> wholes_;                           // buffers that hold others
  std::map<std::string, int> weight_buffers_;      // identity of the bytes -> buffer
  std::map<int, ArenaItem> arena_;                 // by buffer
  std::map<std::string, int> kernel_index_;        // by symbol
};

}  // namespace

absl::StatusOr<LaidOut> LayOut(const KernelTexts& texts, const BundleProgram& source, Weights* weights) {
  return ProgramLayout(texts, source, weights).Make();
}

std::vector<const movement::Buffer*> ArgBuffers(const FusionKernel& fusion_kernel) {
  std::vector<const movement::Buffer*> buffers;
  for (const movement::Buffer& buffer : fusion_kernel.kernel.buffers) {
    if (movement::IsArgument(buffer)) buffers.push_back(&buffer);
  }
  return buffers;
}

}  // namespace fusion

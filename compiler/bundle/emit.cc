#include "compiler/bundle/emit.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/api/generator_version.h"
#include "compiler/backends/backend.h"
#include "compiler/backends/placement.h"
#include "compiler/bundle/account_weights.h"
#include "compiler/bundle/pack_weights.h"
#include "compiler/bundle/report.h"
#include "compiler/ecg/run_checks.h"
#include "compiler/launch/memory_plan.h"
#include "compiler/movement/constant_transform.h"
#include "compiler/movement/cost.h"
#include "compiler/movement/in_place.h"
#include "compiler/movement/pack_constant.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"
#include "runtime/bundle/bundle_writer.h"
#include "runtime/bundle/safetensors.h"

namespace fusion {
namespace {

// Texts of about this size occupy both cores for a small model and amortise the prelude for a large one.
constexpr size_t kFileBytes = 96 << 10;

std::string SourceName(const KernelTexts& texts, int file) {
  return absl::StrCat("src/kernels_", file, ".", FindBackend(texts.files[file].kind)->SourceExtension());
}
std::string BinaryName(const KernelTexts& texts, int file) {
  return absl::StrCat("kernels/kernels_", file, ".", FindBackend(texts.files[file].kind)->BinaryExtension());
}

Kernel ManifestKernel(const KernelTexts& texts, const BlockKernel& block, const KernelTexts::Place& place) {
  Kernel kernel;
  kernel.file = BinaryName(texts, place.file);
  kernel.source = SourceName(texts, place.file);
  kernel.on_host = texts.files[place.file].on_host;
  for (size_t a = 0; kernel.on_host && a < block.args.size(); ++a) {
    if (block.args[a].written) kernel.writes.push_back(static_cast<int>(a));
  }
  kernel.resident = block.kernel.resident;
  for (size_t p = 0; p < place.tasks.size(); ++p) {
    kernel.phases.push_back({PhaseSymbol(place.symbol, static_cast<int>(p)), place.tasks[p], {}});
    const LibraryCall* call = movement::LibraryCallOf(block.kernel.phases[p]);
    // A buffer's number is that of its argument: buffers of scope kBlock come last.
    if (call != nullptr) kernel.phases.back().library = *call;
  }
  return kernel;
}

void NeedHost(const KernelTexts::File& file, Manifest* manifest) {
  manifest->host_isa = file.instructions.isa;
  manifest->format = std::max(manifest->format, 4);
}

void NeedFormat(const BlockKernel& block, Manifest* manifest) {
  if (block.kernel.resident) manifest->format = std::max(manifest->format, 5);
  for (const movement::Phase& phase : block.kernel.phases) {
    const LibraryCall* call = movement::LibraryCallOf(phase);
    if (call == nullptr) continue;
    manifest->format = std::max(manifest->format, std::holds_alternative<LibraryProduct>(*call) ? 6 : 7);
  }
}

std::vector<const movement::Buffer*> ArgBuffers(const BlockKernel& block) {
  std::vector<const movement::Buffer*> buffers;
  for (const movement::Buffer& buffer : block.kernel.buffers) {
    if (buffer.scope != movement::BufferScope::kBlock) buffers.push_back(&buffer);
  }
  return buffers;
}

// Puts a result into the memory of an operand, if its kernel is the operand's last reader and allows it: the two become
// one arena item. Returns the buffer whose memory each such result uses.
std::map<int, int> ShareInPlace(const std::vector<PlannedLaunch>& planned, const std::vector<Launch>& launches,
                                std::map<int, ArenaItem>* arena) {
  std::map<int, int> owner;
  for (size_t l = 0; l < launches.size(); ++l) {
    if (launches[l].sets() > 1) continue;  // another set of arguments may read the operand later
    const std::vector<int>& args = launches[l].buffers;
    const int launch = static_cast<int>(l);
    const movement::Kernel& kernel = planned[l].block.kernel;
    std::vector<int> buffer_of;  // the manifest's buffer, by the kernel's
    size_t arg = 0;
    for (const movement::Buffer& buffer : kernel.buffers) {
      buffer_of.push_back(buffer.scope == movement::BufferScope::kBlock ? -1 : args[arg++]);
    }
    for (const movement::InPlacePair& pair : movement::InPlacePairs(kernel)) {
      const int out = buffer_of[pair.out];
      auto result = arena->find(out);
      auto known = owner.find(buffer_of[pair.in]);
      const int in = known != owner.end() ? known->second : buffer_of[pair.in];
      auto operand = arena->find(in);
      if (result == arena->end() || operand == arena->end() || result == operand) continue;
      if (result->second.first != launch || operand->second.last != launch) continue;
      if (result->second.size_bytes != operand->second.size_bytes) continue;
      if (std::count(args.begin(), args.end(), buffer_of[pair.in]) != 1) continue;
      operand->second.last = result->second.last;
      arena->erase(result);
      owner[out] = in;
    }
  }
  return owner;
}

// The constants of a bundle, with each combination of bytes and packing once.
struct Weights {
  struct Weight {
    Tensor source;
    const movement::Pack* pack;  // null: as it is
    DType dtype;
    Shape shape;  // in the bundle
    int64_t size_bytes;
    bool table = false;  // a lowering or a schedule made it
  };
  // Returns the index in `list`.
  size_t Add(const std::string& identity, Weight weight) {
    auto [it, fresh] = known.emplace(identity, list.size());
    if (fresh) list.push_back(std::move(weight));
    return it->second;
  }
  std::vector<Weight> list;
  std::map<std::string, size_t> known;
};

// The weight as the bundle's account counts it.
HeldWeight Held(const Weights::Weight& weight) {
  HeldWeight held;
  held.bytes = weight.size_bytes;
  if (weight.table) return held;
  held.source = weight.source.data();
  const int64_t element = DTypeBytes(weight.source.dtype());
  held.source_bytes = held.covered_bytes = held.transformed_bytes = weight.source.size_bytes();
  if (weight.pack == nullptr) return held;
  if (weight.pack->transform.by_dimension.empty()) {
    // A packing that repeats elements covers at most all of them.
    const movement::ConstantPacker packer(*weight.pack, weight.source.num_elements());
    held.covered_bytes = held.transformed_bytes = std::min(packer.held() * element, held.source_bytes);
  } else {
    const movement::TransformBlocks blocks = movement::BlocksOf(weight.pack->transform, weight.source.shape());
    held.transformed_bytes = NumElements(blocks.shape) * element;
  }
  return held;
}

// Returns a text that is equal for tensors in the same memory (see ConstantPool).
std::string BytesIdentity(const Tensor& tensor) {
  return absl::StrCat("bytes:", reinterpret_cast<uintptr_t>(tensor.data()), " ", DTypeName(tensor.dtype()),
                      ShapeToString(tensor.shape()));
}

struct LaidOut {
  Program program;                                // without the offsets of constants, which are not known yet
  std::vector<std::pair<int, size_t>> constants;  // buffer, index into Weights::list
  bool has_extents = false;
};

absl::StatusOr<LaidOut> LayOut(const KernelTexts& texts, const BundleProgram& source, Weights* weights) {
  const ecg::Graph& graph = *source.graph;
  const ValueLayouts& layouts = *source.layouts;
  const std::vector<PlannedLaunch>& launches = *source.launches;
  LaidOut result;
  Program& program = result.program;
  program.dims = source.dims;
  std::vector<std::pair<int, size_t>>& uses = result.constants;
  std::map<ecg::ValueId, int> buffer_of_value;
  auto layout_of = [&](ecg::ValueId v) {
    auto it = layouts.find(v);
    return it == layouts.end() ? Layout() : it->second;
  };
  auto value_buffer = [&](ecg::ValueId v, Buffer::Kind kind) {
    auto [it, fresh] = buffer_of_value.emplace(v, static_cast<int>(program.buffers.size()));
    if (fresh) {
      const ecg::Value& value = graph.value(v);
      const Layout layout = layout_of(v);
      Buffer buffer;
      buffer.kind = kind;
      buffer.name = value.name;
      buffer.dtype = value.type.dtype;
      buffer.shape = layout.PhysicalShape(value.type.shape);
      buffer.size_bytes = NumElements(buffer.shape) * DTypeBytes(buffer.dtype);
      buffer.layout = layout.plain() ? "row-major" : layout.ToString(static_cast<int>(value.type.shape.size()));
      program.buffers.push_back(buffer);
    }
    return it->second;
  };
  std::set<int> extents;  // inputs that the runtime sets
  for (const onnx_import::InputExtent& e : source.input_extents) extents.insert(e.extent);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ecg::ValueId v = graph.inputs()[i];
    const ecg::Value& value = graph.value(v);
    const int buffer = value_buffer(v, Buffer::Kind::kInput);
    if (extents.count(static_cast<int>(i)) > 0) continue;
    program.inputs.push_back({value.name, value.type.dtype, value.type.shape, buffer});
    if (!source.input_symbols.empty()) program.inputs.back().symbols = source.input_symbols[i];
  }
  // The inputs that hold extents come after all other inputs.
  for (const onnx_import::InputExtent& e : source.input_extents) {
    Binding& binding = program.inputs[e.input];
    binding.extents.resize(binding.shape.size(), -1);
    binding.extents[e.dim] = value_buffer(graph.inputs()[e.extent], Buffer::Kind::kInput);
  }
  std::map<ecg::ValueId, int> constant_buffers;  // of the outputs that are constants
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const ecg::ValueId v = graph.outputs()[i];
    const ecg::Value& value = graph.value(v);
    const bool is_check = ecg::IsRunCheck(graph.output_names()[i]);
    const bool only_extent = !ecg::IsModelOutput(graph, i);
    const auto add_check = [&](int buffer) {
      if (is_check) program.checks.push_back({buffer, ecg::RunCheckMessage(graph.output_names()[i])});
    };
    if (only_extent && !value.constant) {
      add_check(value_buffer(v, Buffer::Kind::kOutput));
      continue;
    }
    if (value.constant) {
      constant_buffers[v] = static_cast<int>(program.buffers.size());
      add_check(constant_buffers[v]);
      Buffer constant;
      constant.kind = Buffer::Kind::kConstant;
      constant.name = value.name;
      constant.dtype = value.type.dtype;
      constant.shape = value.type.shape;
      constant.size_bytes = value.constant->size_bytes();
      constant.layout = "row-major";
      uses.emplace_back(constant_buffers[v],
                        weights->Add(BytesIdentity(*value.constant),
                                     {*value.constant, nullptr, constant.dtype, constant.shape, constant.size_bytes}));
      if (!only_extent) {
        program.outputs.push_back({graph.output_names()[i], value.type.dtype, value.type.shape, constant_buffers[v]});
      }
      program.buffers.push_back(constant);
      continue;
    }
    const int buffer = value_buffer(v, Buffer::Kind::kOutput);
    program.outputs.push_back({graph.output_names()[i], value.type.dtype, value.type.shape, buffer});
  }

  for (const ecg::OutputExtent& e : graph.output_extents()) {
    const ecg::ValueId extent = graph.outputs()[e.extent];
    if (graph.value(graph.outputs()[e.output]).constant) {
      return absl::InternalError("a constant output has extents: import cuts it instead");
    }
    Binding& binding = program.outputs[e.output];
    binding.extents.resize(binding.shape.size(), -1);
    auto constant = constant_buffers.find(extent);
    binding.extents[e.dim] =
        constant != constant_buffers.end() ? constant->second : value_buffer(extent, Buffer::Kind::kOutput);
    result.has_extents = true;
  }

  // The outermost value whose memory holds this one, and the offset in it.
  const auto whole_of = [&](ecg::ValueId v) {
    Inside at{v, 0};
    for (auto it = source.inside->find(v); it != source.inside->end(); it = source.inside->find(at.whole)) {
      at = {it->second.whole, at.offset_bytes + it->second.offset_bytes};
    }
    return at;
  };
  std::map<int, std::pair<int, int64_t>> inside;  // buffer -> the buffer that holds it, and the offset
  std::set<int> wholes;

  // Launches, arena lifetimes and constants.
  std::map<std::string, int> weight_buffers;  // identity of the bytes -> buffer
  std::map<int, ArenaItem> arena;             // by buffer
  std::map<std::string, int> kernel_index;
  // The buffers for a kernel's arguments in launch `l`.
  const auto bind = [&](const BlockKernel& block, int l) {
    std::vector<int> ids;
    const std::vector<const movement::Buffer*> buffers = ArgBuffers(block);
    for (size_t a = 0; a < block.args.size(); ++a) {
      const KernelArg& arg = block.args[a];
      int id = -1;
      switch (arg.kind) {
        case KernelArg::Kind::kValue: {
          id = value_buffer(arg.value, Buffer::Kind::kArena);
          if (program.buffers[id].kind == Buffer::Kind::kArena) {
            const Inside at = whole_of(arg.value);
            const int whole = value_buffer(at.whole, Buffer::Kind::kArena);
            if (whole != id) {
              inside[id] = {whole, at.offset_bytes};
              wholes.insert(whole);
            }
            const int64_t size_bytes = program.buffers[whole].size_bytes;
            auto [it, fresh] = arena.emplace(whole, ArenaItem{size_bytes, l, l});
            it->second.last = l;
          }
          break;
        }
        case KernelArg::Kind::kTemporary: {
          Buffer buffer;
          buffer.name = "temporary";
          buffer.dtype = buffers[a]->dtype;
          buffer.shape = {buffers[a]->elements};
          buffer.size_bytes = movement::SizeBytes(*buffers[a]);
          id = static_cast<int>(program.buffers.size());
          program.buffers.push_back(buffer);
          arena[id] = {buffer.size_bytes, l, l};
          break;
        }
        case KernelArg::Kind::kConstant: {
          const Tensor tensor = arg.value == ecg::kNone ? arg.literal : *graph.value(arg.value).constant;
          const movement::Pack* pack = arg.pack >= 0 ? &block.kernel.packs[arg.pack] : nullptr;
          std::string identity =
              arg.value == ecg::kNone
                  ? absl::StrCat("literal:", Sha256Hex(absl::string_view(static_cast<const char*>(tensor.data()),
                                                                         static_cast<size_t>(tensor.size_bytes()))))
                  : BytesIdentity(tensor);
          if (pack != nullptr) {
            absl::StrAppend(&identity, PackingText(*pack));
          }
          auto [it, fresh] = weight_buffers.emplace(identity, static_cast<int>(program.buffers.size()));
          if (fresh) {
            Buffer buffer;
            buffer.kind = Buffer::Kind::kConstant;
            buffer.name = arg.value == ecg::kNone ? "table" : graph.value(arg.value).name;
            buffer.dtype = buffers[a]->dtype;
            buffer.shape = pack != nullptr ? Shape{buffers[a]->elements} : tensor.shape();
            buffer.size_bytes = pack != nullptr ? movement::SizeBytes(*buffers[a]) : tensor.size_bytes();
            buffer.layout = pack != nullptr ? "packed" : "row-major";
            program.buffers.push_back(buffer);
            uses.emplace_back(it->second, weights->Add(identity, {tensor, pack, buffer.dtype, buffer.shape,
                                                                  buffer.size_bytes, arg.value == ecg::kNone}));
          }
          id = it->second;
          break;
        }
      }
      ids.push_back(id);
    }
    return ids;
  };
  for (size_t l = 0; l < launches.size(); ++l) {
    const PlannedLaunch& planned = launches[l];
    Launch launch;
    launch.label = planned.label;
    launch.nodes = planned.nodes;
    launch.buffers = bind(planned.block, static_cast<int>(l));
    for (const BlockKernel& other : planned.others) launch.others.push_back(bind(other, static_cast<int>(l)));
    const auto sets = static_cast<int64_t>(launch.sets());
    launch.flops = planned.block.flops * static_cast<double>(sets);
    for (const movement::Buffer* buffer : ArgBuffers(planned.block))
      launch.bytes += sets * movement::SizeBytes(*buffer);
    const KernelTexts::Place& place = source.places[l];
    auto [kernel_it, fresh_kernel] = kernel_index.emplace(place.symbol, static_cast<int>(program.kernels.size()));
    if (fresh_kernel) program.kernels.push_back(ManifestKernel(texts, planned.block, place));
    launch.kernel = kernel_it->second;
    program.scratch_bytes_per_thread = std::max(program.scratch_bytes_per_thread, planned.block.kernel.scratch_bytes);
    program.launches.push_back(std::move(launch));
  }
  // A value that holds others is kept out of in-place sharing: the others still read it.
  std::map<int, ArenaItem> holding;
  for (int whole : wholes) holding.insert(arena.extract(whole));
  const std::map<int, int> shared = ShareInPlace(launches, program.launches, &arena);
  arena.merge(holding);
  std::vector<ArenaItem> items;
  std::vector<int> item_buffers;
  for (const auto& [buffer, item] : arena) {
    items.push_back(item);
    item_buffers.push_back(buffer);
  }
  program.arena_bytes = PlanArena(&items);
  for (size_t i = 0; i < items.size(); ++i) program.buffers[item_buffers[i]].offset = items[i].offset;
  for (const auto& [buffer, owner] : shared) program.buffers[buffer].offset = program.buffers[owner].offset;
  for (const auto& [buffer, at] : inside) {
    program.buffers[buffer].offset = program.buffers[at.first].offset + at.second;
  }
  return result;
}

}  // namespace

// A text for the packing. Axis numbers differ between kernels, so it names axes by position.
std::string PackingText(const movement::Pack& pack) {
  static const char* const kSigns[] = {"<", ">=", "==", "!="};
  std::string text;
  std::map<int, int> position;
  for (size_t i = 0; i < pack.axes.size(); ++i) {
    position[pack.axes[i].id] = static_cast<int>(i);
    absl::StrAppend(&text, "|", pack.axes[i].extent);
  }
  auto name = [&](int axis) { return absl::StrCat("a", position[axis]); };
  absl::StrAppend(&text, "|", te::ToString(pack.address, name));
  for (const auto& [dimension, matrix] : pack.transform.by_dimension) {
    absl::StrAppend(&text, "|through ", ShapeToString(matrix.shape()), " on ", dimension);
  }
  for (const te::Comparison& c : pack.pred) {
    absl::StrAppend(&text, "|", te::ToString(c.lhs, name), kSigns[static_cast<int>(c.cmp)], te::ToString(c.rhs, name));
  }
  return text;
}

KernelTexts PrintKernels(const std::vector<const BlockKernel*>& kernels, const DeviceModel& device) {
  KernelTexts texts;
  std::map<std::string, KernelTexts::Place> known;
  std::vector<std::set<std::string>> routines;  // the routines that each file calls
  std::vector<Placement> placements;            // parallel to the files: the processor that each is for
  std::vector<int> open;                        // files that accept more kernels, one for each set of instructions
  const auto file_for = [&](const Placement& placement, const Instructions& instructions, size_t bytes) {
    const auto add = [&] {
      texts.files.push_back({"", placement.device.kind, instructions, placement.on_host});
      placements.push_back(placement);
      return static_cast<int>(texts.files.size()) - 1;
    };
    for (int& f : open) {
      if (texts.files[f].on_host != placement.on_host || texts.files[f].instructions != instructions) continue;
      if (texts.files[f].text.size() + bytes > kFileBytes) f = add();
      return f;
    }
    open.push_back(add());
    return open.back();
  };
  for (const BlockKernel* block : kernels) {
    auto it = known.find(block->key);
    if (it == known.end()) {
      const std::string symbol = absl::StrCat("k_", texts.distinct++);
      const Placement placement = PlaceKernel(block->kernel, device);
      const Backend& backend = *placement.backend;
      const std::string text = backend.PrintKernel(block->kernel, symbol, placement.device);
      const int f = file_for(placement, backend.InstructionsOf(block->kernel, placement.device), text.size());
      texts.files[f].text += text;
      routines.resize(texts.files.size());
      routines[f].merge(RoutinesOf(block->kernel));
      KernelTexts::Place place{f, symbol, {}};
      place.tasks = backend.LaunchedTasks(block->kernel, placement.device);
      it = known.emplace(block->key, std::move(place)).first;
    }
    texts.places.push_back(it->second);
  }
  for (size_t f = 0; f < texts.files.size(); ++f) {
    texts.files[f].text.insert(0, placements[f].backend->Preamble(routines[f], placements[f].device));
  }
  return texts;
}

absl::StatusOr<std::vector<std::string>> BuildTexts(const KernelTexts& texts, Toolchain* toolchain) {
  std::vector<BuildUnit> units;
  for (const KernelTexts::File& file : texts.files) {
    units.push_back({file.kind, file.instructions.march, file.text});
  }
  if (units.empty()) return std::vector<std::string>();
  return toolchain->Build(units);
}

absl::Status WriteBundle(const std::vector<BundleProgram>& programs, const KernelTexts& texts,
                         const std::vector<std::string>& binaries, const Manifest& head, const std::string& path,
                         CompileAccount* account) {
  Manifest manifest = head;
  Weights weights;
  std::vector<LaidOut> laid_out;
  for (const BundleProgram& program : programs) {
    ASSIGN_OR_RETURN(laid_out.emplace_back(), LayOut(texts, program, &weights));
    for (const PlannedLaunch& launch : *program.launches) {
      NeedFormat(launch.block, &manifest);
      if (!launch.others.empty()) manifest.format = std::max(manifest.format, 8);
    }
    if (laid_out.back().has_extents) manifest.format = std::max(manifest.format, 2);
    if (!laid_out.back().program.checks.empty()) manifest.format = std::max(manifest.format, 9);
    account->arena_bytes = std::max(account->arena_bytes, laid_out.back().program.arena_bytes);
    if (laid_out.size() == 1) {
      static_cast<Program&>(manifest) = laid_out.back().program;
    } else {
      manifest.others.push_back(laid_out.back().program);
      manifest.format = std::max(manifest.format, 3);
    }
  }
  ASSIGN_OR_RETURN(std::unique_ptr<BundleWriter> writer, BundleWriter::Create(path));
  std::set<int> used;
  for (const BundleProgram& program : programs) {
    for (const KernelTexts::Place& place : program.places) used.insert(place.file);
  }
  for (const int f : used) {
    RETURN_IF_ERROR(writer->AddEntry(BinaryName(texts, f), binaries[f]));
    RETURN_IF_ERROR(writer->AddEntry(SourceName(texts, f), texts.files[f].text));
  }
  // The manifest's head names the device's instructions, or fewer where every kernel of the device needs the same
  // fewer.
  std::vector<Instructions> needed;
  for (const int f : used) {
    const KernelTexts::File& file = texts.files[f];
    if (file.on_host) {
      NeedHost(file, &manifest);
    } else {
      needed.push_back(file.instructions);
    }
  }
  if (!needed.empty() && std::count(needed.begin(), needed.end(), needed[0]) == std::ssize(needed)) {
    manifest.isa = needed[0].isa;
    manifest.march = needed[0].march;
  }
  if (!account->plan_json.empty()) RETURN_IF_ERROR(writer->AddEntry("plan.json", account->plan_json));
  std::vector<WeightInfo> infos;
  std::vector<HeldWeight> held;
  for (const Weights::Weight& weight : weights.list) {
    infos.push_back({absl::StrCat("w", infos.size()), weight.dtype, weight.shape});
    held.push_back(Held(weight));
    account->weight_bytes += weight.size_bytes;
  }
  ASSIGN_OR_RETURN(const SafetensorsLayout layout, LayOutSafetensors(infos));
  AccountWeights(held, layout.data_bytes, &account->weights);
  if (!infos.empty()) manifest.weights = account->weights;
  RETURN_IF_ERROR(writer->AddEntry("report.html", ReportHtml(manifest, *account)));
  if (!infos.empty()) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, writer->BeginWeights(infos));
    for (size_t p = 0; p < laid_out.size(); ++p) {
      for (const auto& [buffer, weight] : laid_out[p].constants) {
        (p == 0 ? manifest : manifest.others[p - 1]).buffers[buffer].offset = offsets[weight];
      }
    }
    std::vector<WeightToPack> to_pack;
    for (const Weights::Weight& weight : weights.list) to_pack.push_back({weight.source, weight.pack});
    const int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    RETURN_IF_ERROR(
        PackWeights(to_pack, threads, [&](absl::string_view bytes) { return writer->AppendWeights(bytes); }));
  }
  return writer->Finish(std::move(manifest));
}

absl::Status WriteMeasurementBundle(const KernelSequence& kernels, const KernelTexts& texts,
                                    std::vector<KernelTexts::Place>::const_iterator place,
                                    const std::vector<std::string>& binaries, const DeviceModel& device, int threads,
                                    const std::string& path) {
  Manifest manifest;
  manifest.generator = absl::StrCat("fusion generator ", kGeneratorVersion);
  manifest.target = device.kind;
  manifest.isa = device.isa;
  manifest.march = device.march;
  double estimate_ns = 0;
  std::vector<std::string> keys;
  std::vector<ArenaItem> temporaries;
  std::vector<int> temporary_buffers;
  std::vector<std::vector<int>> buffer_of;  // by kernel and argument
  std::map<int, std::string> files;         // index in `texts` -> entry
  for (int k = 0; k < static_cast<int>(kernels.size()); ++k, ++place) {
    const BlockKernel& block = *kernels[k];
    keys.push_back(block.key);
    estimate_ns += movement::EstimateCost(block.kernel, device, threads).latency_ns;
    manifest.scratch_bytes_per_thread = std::max(manifest.scratch_bytes_per_thread, block.kernel.scratch_bytes);
    Launch launch;
    launch.label = "question";
    launch.flops = block.flops;
    launch.kernel = k;
    std::vector<int>& own = buffer_of.emplace_back(block.args.size(), -1);
    for (const SharedArgument& shared : SharedArguments(kernels, k)) {
      own[shared.arg] = buffer_of[shared.earlier_kernel][shared.earlier_arg];
    }
    const std::vector<const movement::Buffer*> buffers = ArgBuffers(block);
    for (size_t a = 0; a < buffers.size(); ++a) {
      const int64_t bytes = movement::SizeBytes(*buffers[a]);
      launch.bytes += bytes;
      if (own[a] < 0) {
        own[a] = static_cast<int>(manifest.buffers.size());
        Buffer buffer;
        buffer.name = absl::StrCat("a", own[a]);
        buffer.dtype = buffers[a]->dtype;
        buffer.shape = {buffers[a]->elements};
        buffer.size_bytes = bytes;
        buffer.layout = "row-major";
        if (block.args[a].kind == KernelArg::Kind::kTemporary) {
          buffer.kind = Buffer::Kind::kArena;
          temporaries.push_back({buffer.size_bytes, k, k});
          temporary_buffers.push_back(own[a]);
        } else if (block.args[a].written) {
          buffer.kind = Buffer::Kind::kOutput;
          manifest.outputs.push_back({buffer.name, buffer.dtype, buffer.shape, own[a]});
        } else {
          buffer.kind = Buffer::Kind::kInput;
          manifest.inputs.push_back({buffer.name, buffer.dtype, buffer.shape, own[a]});
        }
        manifest.buffers.push_back(buffer);
      }
      launch.buffers.push_back(own[a]);
    }
    const KernelTexts::File& file = texts.files[place->file];
    if (file.on_host) NeedHost(file, &manifest);
    NeedFormat(block, &manifest);
    Kernel kernel = ManifestKernel(texts, block, *place);
    kernel.source.clear();
    kernel.file = files
                      .emplace(place->file, absl::StrCat("kernels/question", files.size(), ".",
                                                         FindBackend(file.kind)->BinaryExtension()))
                      .first->second;
    manifest.kernels.push_back(std::move(kernel));
    manifest.launches.push_back(std::move(launch));
  }
  manifest.options = {{"kernel", absl::StrJoin(keys, " ")}, {"estimate_ns", absl::StrFormat("%.1f", estimate_ns)}};
  manifest.arena_bytes = PlanArena(&temporaries);
  for (size_t t = 0; t < temporaries.size(); ++t) manifest.buffers[temporary_buffers[t]].offset = temporaries[t].offset;
  ASSIGN_OR_RETURN(std::unique_ptr<BundleWriter> writer, BundleWriter::Create(path));
  for (const auto& [file, entry] : files) RETURN_IF_ERROR(writer->AddEntry(entry, binaries[file]));
  return writer->Finish(std::move(manifest), /*durable=*/false);
}

}  // namespace fusion

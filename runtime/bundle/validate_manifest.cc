#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/bundle/manifest.h"
#include "runtime/bundle/validate_library_call.h"

namespace fusion {
namespace {

constexpr double kMaxTimeRatio = 1e6;
constexpr int64_t kMaxBytes = int64_t{1} << 40;  // keeps sums of two sizes far from overflow

template <typename... Parts>
absl::Status Bad(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("manifest: ", parts...));
}

bool IsSymbol(const std::string& name) {
  if (name.empty() || name.size() > 1000 || (name[0] >= '0' && name[0] <= '9')) return false;
  for (const char c : name) {
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) return false;
  }
  return true;
}

bool InRange(int index, size_t count) { return index >= 0 && static_cast<size_t>(index) < count; }

absl::Status CheckSteps(const ManifestProgram& program, const Buffer& buffer, const BufferSteps& steps) {
  if (buffer.kind != Buffer::Kind::kArena || !InRange(steps.repeat, program.repeats.size())) {
    return Bad("it moves with repeat ", steps.repeat, ", which takes a buffer of the arena and one of ",
               program.repeats.size(), " repeats");
  }
  const bool fits = steps.slots >= 1 && steps.slots <= kMostTrips + 1 && steps.first >= 0 &&
                    steps.first < steps.slots && (steps.by == 1 || steps.by == -1) && steps.slot_bytes >= 0 &&
                    steps.slot_bytes <= program.arena_bytes / steps.slots &&
                    steps.slot_bytes % DTypeBytes(buffer.dtype) == 0;
  if (!fits) {
    return Bad("it moves by ", steps.by, " from slot ", steps.first, " of ", steps.slots, " slots of ",
               steps.slot_bytes, " bytes");
  }
  const int64_t last = buffer.offset + (steps.slots - 1) * steps.slot_bytes + buffer.size_bytes;
  if (last > program.arena_bytes) return Bad("its last slot ends at ", last, ", the arena at ", program.arena_bytes);
  return absl::OkStatus();
}

bool IsPersistent(const ManifestProgram& program, const Launch& launch) {
  return InRange(launch.kernel, program.kernels.size()) && program.kernels[launch.kernel].persistent;
}

// Repeats are ascending and disjoint, and no launch inside runs at the same time as one outside. Iterations inside of a
// launch are those of one persistent kernel.
absl::Status CheckRepeats(const Manifest& manifest, const ManifestProgram& program) {
  if (program.repeats.empty()) return absl::OkStatus();
  const bool cpu = manifest.target == "cpu";
  const bool gpu = manifest.target == "cuda" || manifest.target == "opencl";
  if ((!cpu && !gpu) || manifest.format < (cpu ? 10 : 11))
    return Bad("it has repeats, which take format 10 and target cpu, or format 11 and target cuda or opencl");
  const int launches = static_cast<int>(program.launches.size());
  int behind = 0;
  for (size_t r = 0; r < program.repeats.size(); ++r) {
    const Repeat& repeat = program.repeats[r];
    const bool same_launch =
        r > 0 && repeat.in_launch && program.repeats[r - 1].in_launch && repeat.first == program.repeats[r - 1].first;
    if (repeat.first < (same_launch ? behind - 1 : behind) || repeat.end <= repeat.first || repeat.end > launches) {
      return Bad("repeat ", r, " has launches ", repeat.first, " to ", repeat.end, " of ", launches,
                 ", the one before ends at ", behind);
    }
    if (repeat.trips < 1 || repeat.trips > kMostTrips) return Bad("repeat ", r, " has ", repeat.trips, " iterations");
    behind = repeat.end;
    if (repeat.in_launch &&
        (cpu || repeat.end != repeat.first + 1 || !IsPersistent(program, program.launches[repeat.first]))) {
      return Bad("repeat ", r, " runs inside of launch ", repeat.first, ", which is no launch of a persistent kernel");
    }
    for (const int edge : {repeat.first, repeat.end}) {
      if (edge < launches && program.launches[edge].concurrent) {
        return Bad("launch ", edge, " runs at the same time as one on the other side of the edge of repeat ", r);
      }
    }
  }
  return absl::OkStatus();
}

// A buffer that moves with a repeat is used by launches of that repeat alone.
absl::Status CheckMoving(const ManifestProgram& program, int launch, int buffer) {
  const std::optional<BufferSteps>& steps = program.buffers[buffer].steps;
  if (!steps) return absl::OkStatus();
  const Repeat& repeat = program.repeats[steps->repeat];
  if (repeat.first <= launch && launch < repeat.end) return absl::OkStatus();
  return Bad("launch ", launch, " uses buffer ", buffer, ", which moves with another repeat");
}

// A GPU's kernels count on the alignment of their arguments in every iteration.
absl::Status CheckBuffer(const Manifest& manifest, const ManifestProgram& program, const Buffer& buffer,
                         int64_t weights_data_bytes) {
  ASSIGN_OR_RETURN(const int64_t shape_bytes, CheckedSizeBytes(buffer.shape, buffer.dtype));
  if (buffer.size_bytes < shape_bytes || buffer.size_bytes > kMaxBytes) {
    return Bad("size_bytes ", buffer.size_bytes, " does not hold ", DTypeName(buffer.dtype),
               ShapeToString(buffer.shape));
  }
  const bool moves = buffer.kind == Buffer::Kind::kArena && !program.repeats.empty() && manifest.target == "cpu";
  const int64_t alignment = moves ? DTypeBytes(buffer.dtype) : kBufferAlignBytes;
  if (buffer.offset < 0 || buffer.offset > kMaxBytes || buffer.offset % alignment != 0) {
    return Bad("offset ", buffer.offset, " is not a multiple of ", alignment);
  }
  if (buffer.steps) {
    RETURN_IF_ERROR(CheckSteps(program, buffer, *buffer.steps));
    if (buffer.steps->slot_bytes % alignment != 0)
      return Bad("slots of ", buffer.steps->slot_bytes, " bytes are no multiple of ", alignment);
  }
  switch (buffer.kind) {
    case Buffer::Kind::kInput:
    case Buffer::Kind::kOutput:
      if (buffer.size_bytes != shape_bytes) return Bad("an input's or output's size_bytes must equal shape x dtype");
      if (buffer.offset != 0) return Bad("an input's or output's offset must be 0");
      break;
    case Buffer::Kind::kConstant:
      if (buffer.offset + buffer.size_bytes > weights_data_bytes) {
        return Bad("constant ends at ", buffer.offset + buffer.size_bytes, ", the weights at ", weights_data_bytes);
      }
      break;
    case Buffer::Kind::kArena:
      if (buffer.offset + buffer.size_bytes > program.arena_bytes) {
        return Bad("it ends at ", buffer.offset + buffer.size_bytes, ", the arena at ", program.arena_bytes);
      }
      break;
  }
  return absl::OkStatus();
}

bool IsBound(const std::vector<Binding>& bindings, int buffer) {
  return std::any_of(bindings.begin(), bindings.end(), [&](const Binding& b) { return b.buffer == buffer; });
}

absl::Status CheckExtents(const ManifestProgram& program, int format, const Binding& binding, bool inputs) {
  if (binding.extents.empty()) return absl::OkStatus();
  const bool can = inputs ? format >= 3 : format >= 2 && program.buffers[binding.buffer].kind == Buffer::Kind::kOutput;
  if (!can || binding.extents.size() != binding.shape.size()) {
    return Bad("'", binding.name, "' cannot have these extents");
  }
  for (const int extent : binding.extents) {
    if (extent == -1) continue;
    if (!InRange(extent, program.buffers.size())) return Bad("'", binding.name, "': no buffer ", extent);
    const Buffer& buffer = program.buffers[extent];
    const bool fits = inputs ? buffer.kind == Buffer::Kind::kInput && !IsBound(program.inputs, extent)
                             : buffer.kind == Buffer::Kind::kOutput || buffer.kind == Buffer::Kind::kConstant;
    if (!fits || buffer.dtype != DType::kI64 || buffer.size_bytes != 8) {
      return Bad("'", binding.name, "': buffer ", extent, " is no extent");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBindings(const ManifestProgram& program, int format, const std::vector<Binding>& bindings,
                           bool inputs) {
  const char* what = inputs ? "input" : "output";
  std::set<std::string> names;
  std::set<int> used;
  for (const Binding& binding : bindings) {
    if (!names.insert(binding.name).second) return Bad("two ", what, "s are named '", binding.name, "'");
    if (!InRange(binding.buffer, program.buffers.size())) {
      return Bad(what, " '", binding.name, "': no buffer ", binding.buffer);
    }
    const Buffer& buffer = program.buffers[binding.buffer];
    if (buffer.steps) return Bad(what, " '", binding.name, "' binds a buffer that moves with a repeat");
    if (inputs && (buffer.kind != Buffer::Kind::kInput || !used.insert(binding.buffer).second)) {
      return Bad("input '", binding.name, "' does not have an input buffer of its own");
    }
    absl::StatusOr<int64_t> size_bytes = CheckedSizeBytes(binding.shape, binding.dtype);
    if (!size_bytes.ok())
      return Annotate(size_bytes.status(), absl::StrCat("manifest: ", what, " '", binding.name, "'"));
    if (inputs ? *size_bytes != buffer.size_bytes : *size_bytes > buffer.size_bytes) {
      return Bad(what, " '", binding.name, "' of ", *size_bytes, " bytes binds a buffer of ", buffer.size_bytes);
    }
    if (!binding.symbols.empty() && (!inputs || binding.symbols.size() != binding.shape.size())) {
      return Bad(what, " '", binding.name, "' has ", binding.symbols.size(), " symbols");
    }
    RETURN_IF_ERROR(CheckExtents(program, format, binding, inputs));
  }
  return absl::OkStatus();
}

absl::Status CheckKernel(const Manifest& manifest, const ManifestKernel& kernel, size_t index) {
  if (manifest.digests.count(kernel.file) == 0) return Bad("kernel ", index, ": no entry '", kernel.file, "'");
  if (kernel.phases.empty()) return Bad("kernel ", index, " has no phases");
  for (const Phase& phase : kernel.phases) {
    if (!IsSymbol(phase.symbol)) return Bad("kernel ", index, ": a phase's symbol is not a C identifier");
    if (phase.tasks < 0) return Bad("kernel ", index, ": negative tasks in phase '", phase.symbol, "'");
  }
  for (const Phase& phase : kernel.phases) {
    if (!phase.library) continue;
    const int format = std::holds_alternative<LibraryProduct>(*phase.library) ? 6 : 7;
    if (manifest.format < format || kernel.on_host || kernel.persistent) {
      return Bad("kernel ", index, " calls a library, which takes format ", format, " and a launch of the device");
    }
  }
  if (kernel.persistent && (manifest.format < 5 || kernel.phases.size() != 1 || kernel.on_host)) {
    return Bad("kernel ", index, " is persistent, which takes format 5 and one phase on the device");
  }
  if (kernel.on_host && (manifest.format < 4 || manifest.host_isa.empty())) {
    return Bad("kernel ", index, " runs on the host, which takes format 4 and a host_isa");
  }
  return absl::OkStatus();
}

absl::Status CheckRunCheck(const ManifestProgram& program, int format, const RunCheck& check) {
  if (format < 9) return Bad("it has checks of the run, which take format 9");
  if (!InRange(check.buffer, program.buffers.size())) return Bad("a check of the run: no buffer ", check.buffer);
  const Buffer& buffer = program.buffers[check.buffer];
  const bool kept = buffer.kind == Buffer::Kind::kOutput || buffer.kind == Buffer::Kind::kConstant;
  if (!kept || buffer.dtype != DType::kI64 || buffer.shape.size() != 1 || buffer.size_bytes < 8 * buffer.shape[0]) {
    return Bad("a check of the run: buffer ", check.buffer, " is no vector of i64 that is kept");
  }
  return absl::OkStatus();
}

absl::Status CheckProgram(const Manifest& manifest, const ManifestProgram& program, int64_t weights_data_bytes) {
  if (program.arena_bytes < 0 || program.arena_bytes > kMaxBytes) return Bad("arena_bytes is out of range");
  if (program.scratch_bytes_per_thread < 0 || program.scratch_bytes_per_thread > kMaxBytes / 1024) {
    return Bad("scratch_bytes_per_thread is out of range");
  }
  RETURN_IF_ERROR(CheckRepeats(manifest, program));
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    RETURN_IF_ERROR(Annotate(CheckBuffer(manifest, program, program.buffers[i], weights_data_bytes),
                             absl::StrCat("buffer ", i, " '", program.buffers[i].name, "'")));
  }
  RETURN_IF_ERROR(CheckBindings(program, manifest.format, program.inputs, /*inputs=*/true));
  RETURN_IF_ERROR(CheckBindings(program, manifest.format, program.outputs, /*inputs=*/false));
  for (const RunCheck& check : program.checks) RETURN_IF_ERROR(CheckRunCheck(program, manifest.format, check));
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    RETURN_IF_ERROR(CheckKernel(manifest, program.kernels[i], i));
  }
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const Launch& launch = program.launches[i];
    if (!InRange(launch.kernel, program.kernels.size())) return Bad("launch ", i, ": no kernel ", launch.kernel);
    for (size_t s = 0; s < launch.sets(); ++s) {
      if (launch.set(s).size() != launch.buffers.size()) return Bad("launch ", i, ": sets of different size");
      for (const int buffer : launch.set(s)) {
        if (!InRange(buffer, program.buffers.size())) return Bad("launch ", i, ": no buffer ", buffer);
        RETURN_IF_ERROR(CheckMoving(program, static_cast<int>(i), buffer));
      }
    }
    if (launch.sets() > 1 && (manifest.format < 8 || manifest.target != "cpu")) {
      return Bad("launch ", i, " is a batch, which takes format 8 and target cpu");
    }
    for (const Phase& phase : program.kernels[launch.kernel].phases) {
      if (phase.library) {
        RETURN_IF_ERROR(Annotate(ValidateLibraryCall(program, launch, *phase.library), absl::StrCat("launch ", i)));
      }
    }
    for (const int argument : program.kernels[launch.kernel].writes) {
      if (!InRange(argument, launch.buffers.size()) ||
          program.buffers[launch.buffers[argument]].kind == Buffer::Kind::kConstant) {
        return Bad("launch ", i, " cannot write its argument ", argument);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckWeights(const WeightsAccount& weights, int64_t weights_data_bytes) {
  if (weights.model_bytes < 0 || weights.model_bytes > kMaxBytes) return Bad("weights: model_bytes is out of range");
  int64_t bytes = weights.model_bytes;
  for (const auto& [cause, more] : weights.causes) {
    if (more < -kMaxBytes || more > kMaxBytes) return Bad("weights: cause '", cause, "' is out of range");
    bytes += more;
    if (bytes < -kMaxBytes || bytes > kMaxBytes) return Bad("weights: the causes' sum is out of range");
  }
  if (weights.bundle_bytes != weights_data_bytes) {
    return Bad("weights: bundle_bytes is ", weights.bundle_bytes, ", the entry has ", weights_data_bytes);
  }
  if (bytes != weights.bundle_bytes) {
    return Bad("weights: model_bytes and causes are ", bytes, " bytes, bundle_bytes is ", weights.bundle_bytes);
  }
  if (!(weights.time_ratio >= 0 && weights.time_ratio <= kMaxTimeRatio))
    return Bad("weights: time_ratio is out of range");
  for (const RepeatedWeight& weight : weights.repeated) {
    if (weight.forms.size() < 2) return Bad("weights: a repeated weight has fewer than two forms");
    bool in_range = weight.bytes >= 0 && weight.bytes <= kMaxBytes;
    for (const WeightForm& form : weight.forms) in_range = in_range && form.bytes >= 0 && form.bytes <= kMaxBytes;
    if (!in_range) return Bad("weights: bytes of a repeated weight are out of range");
  }
  return absl::OkStatus();
}

bool SameSignature(const std::vector<Binding>& a, const std::vector<Binding>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Binding& x, const Binding& y) {
    return x.name == y.name && x.dtype == y.dtype && x.shape.size() == y.shape.size() && x.symbols == y.symbols;
  });
}

}  // namespace

absl::Status ValidateManifest(const Manifest& manifest, int64_t weights_data_bytes) {
  if (manifest.weights) RETURN_IF_ERROR(CheckWeights(*manifest.weights, weights_data_bytes));
  if (!manifest.others.empty() && manifest.format < 3) return Bad("format ", manifest.format, " has specialisations");
  for (size_t i = 0; i < manifest.program_count(); ++i) {
    const ManifestProgram& program = manifest.program(i);
    RETURN_IF_ERROR(CheckProgram(manifest, program, weights_data_bytes));
    if (!SameSignature(program.inputs, manifest.inputs) || !SameSignature(program.outputs, manifest.outputs)) {
      return Bad("specialisation ", i, " has other inputs or outputs than the first");
    }
  }
  return absl::OkStatus();
}

}  // namespace fusion

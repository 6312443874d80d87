// Manifest: what a bundle computes, in which order, and with which memory. manifest.json (FORMAT.md) is its text form.
#ifndef FUSION_RUNTIME_BUNDLE_MANIFEST_H_
#define FUSION_RUNTIME_BUNDLE_MANIFEST_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/dtype.h"
#include "runtime/base/tensor.h"
#include "runtime/bundle/library_call.h"
#include "runtime/bundle/weights_account.h"

namespace fusion {

// This many bytes past the end of every buffer may be read, but never written: kernels load whole vectors at a tail.
inline constexpr int64_t kBufferSlackBytes = 64;
// Every buffer, the arena and each thread's scratch begin at a multiple of this.
inline constexpr int64_t kBufferAlignBytes = 64;

// Where a buffer lies in iteration t of a repeat: slot (first + by * t) mod slots of the equal slots that begin at its
// offset. So an iteration finds its slice of an input, writes its part of a stack, and finds what the one before it left.
struct BufferSteps {
  int repeat = 0;  // an index into ManifestProgram::repeats; only its launches use the buffer
  int64_t first = 0;
  int64_t by = 1;  // 1 or -1
  int64_t slots = 1;
  int64_t slot_bytes = 0;

  // The offset in iteration t, from the buffer's own.
  int64_t OffsetAt(int64_t t) const {
    const int64_t slot = (first + by * (t % slots)) % slots;
    return (slot < 0 ? slot + slots : slot) * slot_bytes;
  }
};

struct Buffer {
  enum class Kind { kInput, kOutput, kConstant, kArena };
  Kind kind = Kind::kArena;
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;             // physical, row-major: a blocked layout has its blocked extents here
  int64_t size_bytes = 0;  // at least shape x dtype; exactly that for inputs and outputs
  // kArena: from the start of the arena. kConstant: from the start of the data of weights.safetensors. Inputs and
  // outputs: 0. Always a multiple of 64, but for arena buffers of programs with repeats, which may be aligned to their
  // element's size only. Arena buffers may overlap if their lifetimes do not, or if they are views of one another.
  int64_t offset = 0;
  std::string layout;  // for people: "NCHWc16", "row-major"
  std::optional<BufferSteps> steps = {};  // kArena: it moves from iteration to iteration
};

// An input or output as the user sees it. `buffer` holds exactly this dtype and shape, row-major. An output may bind a
// buffer of any kind (a graph may return its input or a constant), and several outputs may bind the same buffer.
struct Binding {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  int buffer = 0;
  // Empty, or one entry per dimension: -1, or the index of an i64 buffer that holds the dimension's actual extent, 0 <=
  // extent <= the extent in `shape`. A run writes the extents of outputs; elements behind them are undefined. The
  // runtime writes the extents of inputs before a run; elements behind them are 0.
  std::vector<int> extents = {};
  // Inputs of specialisations: for each dimension its name in the model, or "". Otherwise empty.
  std::vector<std::string> symbols = {};
};

// A phase runs tasks [0, tasks) of one exported function, in any order and on any thread. A barrier separates phases.
// runtime/devices/cpu/kernel_abi.h has the function's signature.
struct Phase {
  std::string symbol;
  int64_t tasks = 0;
  std::optional<LibraryCall> library = {};  // set: a library of the target computes the phase instead of `symbol`
};

struct ManifestKernel {
  std::string file;           // "kernels/cpu.so"; several kernels may share one file
  std::vector<Phase> phases;  // at least one
  std::string source;         // "src/k3.cc"; may be empty
  // In a bundle for another target: the CPU beside the device runs this kernel, by the convention of
  // runtime/devices/cpu/kernel_abi.h.
  bool on_host = false;
  std::vector<int> writes = {};  // on_host: the arguments that the kernel writes
  // A persistent kernel: its work-groups wait for each other between its steps. It has one phase. The runtime launches
  // no more of the phase's tasks than the device can run at the same time; whatever their number, they do all of the
  // work. The kernel gets memory to synchronise in (see the target's kernel ABI).
  bool persistent = false;
};

// Kernels are launched one after the other, with a barrier between them.
struct Launch {
  int kernel = 0;
  std::vector<int> buffers;        // arguments in order, indices into Program::buffers
  std::string label;               // for people: "conv+relu 'layer1.0.conv1'"
  std::vector<std::string> nodes;  // names of the model's nodes that the launch covers
  double flops = 0;
  int64_t bytes = 0;
  // A batch: further sets of arguments, each as long as `buffers`. The kernel runs for each set, in any order or at the
  // same time.
  std::vector<std::vector<int>> others = {};
  // It may run at the same time as the launch in front of it. Launches of which each is concurrent with the one in front
  // of it are a group; none of them writes what another one reads or writes. Whoever runs launches one after another may
  // ignore it, so it takes no newer format.
  bool concurrent = false;

  size_t sets() const { return 1 + others.size(); }
  const std::vector<int>& set(size_t index) const { return index == 0 ? buffers : others[index - 1]; }
};

// Launches [first, end) run `trips` times, one iteration after the other, with a barrier between them.
struct Repeat {
  int first = 0, end = 0;
  int64_t trips = 1;
  // One launch of a persistent kernel runs the iterations itself. For each argument that moves it takes a table with
  // the places of all iterations. Several such repeats may share their launch.
  bool in_launch = false;
};
inline constexpr int64_t kMostTrips = int64_t{1} << 20;

// A condition that a run must satisfy, or it fails (runtime/base/run_check.h): the first element of an i64 vector is
// not 0.
struct RunCheck {
  int buffer = 0;       // kOutput or kConstant
  std::string message;  // of the error; "{1}" in it stands for element 1 of the vector
};

// A computation for one set of input shapes.
struct ManifestProgram {
  std::map<std::string, int64_t> dims;  // of a specialisation: the model's symbolic dimension → its extent here
  std::vector<Buffer> buffers;
  std::vector<Binding> inputs, outputs;
  int64_t arena_bytes = 0;
  int64_t scratch_bytes_per_thread = 0;
  std::vector<ManifestKernel> kernels;
  std::vector<Launch> launches;
  std::vector<Repeat> repeats = {};  // ascending, and disjoint but for those in one launch
  std::vector<RunCheck> checks = {};

  // How often a run executes the launch: once, where iterations run inside of it.
  int64_t TripsOf(int launch) const;
};

inline constexpr int kNewestFormat = 11;

// A bundle holds one program, or several specialisations of one model (docs/decisions/0010-specialisations.md). The
// first specialisation is the manifest itself; a caller that names no shapes gets it. All specialisations share
// weights, code, and the names, element types and ranks of inputs and outputs.
struct Manifest : ManifestProgram {
  // The lowest format whose readers understand the bundle:
  // - 2: an output has extents; a reader of format 1 would hand out undefined elements.
  // - 3: there are several specialisations; a reader of format 2 would know only the first.
  // - 4: a kernel runs on the host.
  // - 5: a kernel is persistent.
  // - 6: a library multiplies matrices.
  // - 7: a library convolves.
  // - 8: a launch is a batch.
  // - 9: there are checks; a reader of format 8 would hand out undefined results.
  // - 10: launches repeat.
  // - 11: launches of a GPU repeat, or a launch runs a repeat's iterations itself.
  int format = 1;
  std::string generator;                       // "fusion 0.1.0 (generator 1)"
  std::string target = "cpu";                  // selects the device
  std::string isa;                             // "avx512vnni", "avx512", "avx2", "neon": refused if the CPU lacks it
  std::string march;                           // the toolchain's option; for people
  std::string host_isa;                        // the instruction set of kernels that run on the host; "" without any
  std::string model_name, model_sha256;        // either may be empty
  std::map<std::string, std::string> options;  // how the model was compiled; for people, but the runtime reads `math`
  std::optional<WeightsAccount> weights;       // for people; absent without weights and in older bundles
  std::vector<ManifestProgram> others;         // specialisations after the first
  std::map<std::string, std::string> digests;  // entry name -> SHA-256, but for manifest.json; the writer fills it

  size_t program_count() const { return 1 + others.size(); }
  const ManifestProgram& program(size_t index) const { return index == 0 ? *this : others[index - 1]; }
};

// Returns "seq=32", or "batch=1 seq≤32" if `bounded` has seq, or "" if `dims` is empty.
std::string DimsInWords(const std::map<std::string, int64_t>& dims, const std::set<std::string>& bounded = {});
// Returns DimsInWords of the program. A dimension is bounded if an input has an extent for it.
std::string ProgramName(const ManifestProgram& program);

const char* BufferKindName(Buffer::Kind kind);  // "input", "output", "constant", "arena"

// Returns deterministic JSON text. Invalid UTF-8 in strings becomes replacement characters.
std::string SerializeManifest(const Manifest& manifest);

// Fails with INVALID_ARGUMENT and the field's name if the text is no manifest, FAILED_PRECONDITION for a newer format.
// Unknown fields are ignored. The result is not validated yet.
absl::StatusOr<Manifest> ParseManifest(absl::string_view json);

// Checks everything that the runtime relies on: indices are in range, sizes and offsets lie within the arena and
// `weights_data_bytes`, offsets are aligned, symbols and files have valid names, bindings match their buffers. Fails
// with INVALID_ARGUMENT and names the offender.
absl::Status ValidateManifest(const Manifest& manifest, int64_t weights_data_bytes);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_MANIFEST_H_

// Manifest: what a bundle computes, with what memory, in which order. manifest.json (FORMAT.md) is its text form.
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

// Bytes that may be read, never written, past the end of every buffer: kernels load whole vectors at a tail.
inline constexpr int64_t kBufferSlackBytes = 64;
// Every buffer, the arena and each thread's scratch begin at a multiple of this.
inline constexpr int64_t kBufferAlignBytes = 64;

struct Buffer {
  enum class Kind { kInput, kOutput, kConstant, kArena };
  Kind kind = Kind::kArena;
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;             // physical, row-major: a blocked layout has its blocked extents
  int64_t size_bytes = 0;  // at least shape x dtype; exactly that for inputs and outputs
  // kArena: from the arena's start. kConstant: from the start of the data of weights.safetensors. A multiple of 64.
  // Arena buffers may overlap where lifetimes do not, or to be views of one another. Inputs and outputs: 0.
  int64_t offset = 0;
  std::string layout;  // for people: "NCHWc16", "row-major"
};

// An input or output as the user sees it. The bytes of `buffer` are row-major of exactly this dtype and shape. An
// output may bind a buffer of any kind (a graph that returns its input or a constant); several may bind the same one.
struct Binding {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  int buffer = 0;
  // Outputs: empty, or for each dimension -1 or the buffer of an i64 that holds, after a run, how many of the `shape`'s
  // extent there are: 0 <= extent <= bound. What lies behind is undefined.
  std::vector<int> extents = {};
  // Inputs of specialisations: for each dimension its name in the model, "" for none. Otherwise empty.
  std::vector<std::string> symbols = {};
};

// A phase runs tasks [0, tasks) of one exported function, in any order and on any thread; phases are separated by a
// barrier. runtime/devices/cpu/kernel_abi.h has the signature.
struct Phase {
  std::string symbol;
  int64_t tasks = 0;
  std::optional<LibraryCall> library = {};  // instead of the function: what a library of the target computes
};

struct Kernel {
  std::string file;           // "kernels/cpu.so"; kernels may share one
  std::vector<Phase> phases;  // at least one
  std::string source;         // "src/k3.cc"; may be empty
  // In a bundle for another target: the processor beside the device runs it, as runtime/devices/cpu/kernel_abi.h says.
  bool on_host = false;
  std::vector<int> writes = {};  // on_host: which of its arguments it writes
  // Its groups wait for each other: of its one phase's tasks, no more than the device keeps at the same time are
  // launched, whatever their number they do all of the work, and they get memory to meet at (the target's kernel ABI).
  bool resident = false;
};

// Kernels are launched one after the other, with a barrier between.
struct Launch {
  int kernel = 0;
  std::vector<int> buffers;        // arguments in order, indices into Manifest::buffers
  std::string label;               // for people: "conv+relu 'layer1.0.conv1'"
  std::vector<std::string> nodes;  // names of the model's nodes that it covers
  double flops = 0;
  int64_t bytes = 0;
  // A batch: as many more sets of arguments. The kernel runs for each set, in any order or at the same time.
  std::vector<std::vector<int>> others = {};

  size_t sets() const { return 1 + others.size(); }
  const std::vector<int>& set(size_t index) const { return index == 0 ? buffers : others[index - 1]; }
};

// What a run must have computed to be one (runtime/base/run_check.h): an i64 vector whose first element is not 0.
struct RunCheck {
  int buffer = 0;       // kOutput or kConstant
  std::string message;  // of the error; "{1}" stands for element 1 of the vector
};

// A computation for one set of input shapes.
struct Program {
  std::map<std::string, int64_t> dims;  // a specialisation: the model's symbolic dimension → its extent here
  std::vector<Buffer> buffers;
  std::vector<Binding> inputs, outputs;
  int64_t arena_bytes = 0;
  int64_t scratch_bytes_per_thread = 0;
  std::vector<Kernel> kernels;
  std::vector<Launch> launches;
  std::vector<RunCheck> checks = {};
};

inline constexpr int kNewestFormat = 9;

// A bundle holds one program, or several specialisations of one model (docs/decisions/0010-specialisations.md): the
// first is the manifest itself, which a caller gets who names no shapes; all share weights, code and the names, element
// types and ranks of inputs and outputs.
struct Manifest : Program {
  // 2 where an output has extents: a reader of format 1 would hand out what is undefined. 3 where there are several
  // specialisations: a reader of format 2 would know only the first. 4 where a kernel runs on the host. 5 where one is
  // resident. 6 where a library multiplies matrices. 7 where one convolves. 8 where a launch is a batch.
  // 9 where there are checks: a reader of format 8 would hand out what is undefined.
  int format = 1;
  std::string generator;                       // "fusion 0.1.0 (generator 1)"
  std::string target = "cpu";                  // selects the device
  std::string isa;                             // "avx512vnni", "avx512", "avx2", "neon": refused where the CPU lacks it
  std::string march;                           // what the toolchain was told; for people
  std::string host_isa;                        // what kernels that run on the host need; "" without any
  std::string model_name, model_sha256;        // either may be empty
  std::map<std::string, std::string> options;  // how it was compiled; for people, and `math` for the runtime
  std::optional<WeightsAccount> weights;       // for people; absent where there are none and in older bundles
  std::vector<Program> others;                 // specialisations after the first
  std::map<std::string, std::string> digests;  // entry name -> SHA-256; every entry but manifest.json; by the writer

  size_t program_count() const { return 1 + others.size(); }
  const Program& program(size_t index) const { return index == 0 ? *this : others[index - 1]; }
};

// "seq=32", "batch=1 seq≤32" if `bounded` has seq; "" without dims.
std::string DimsInWords(const std::map<std::string, int64_t>& dims, const std::set<std::string>& bounded = {});
// That of the program: a dimension is bounded where an input has its extent.
std::string ProgramName(const Program& program);

const char* BufferKindName(Buffer::Kind kind);  // "input", "output", "constant", "arena"

// Deterministic JSON text; strings that are not UTF-8 get replacement characters.
std::string SerializeManifest(const Manifest& manifest);

// INVALID_ARGUMENT naming the field for text that is not such a manifest, FAILED_PRECONDITION for a newer format.
// Unknown fields are ignored. The result is not yet validated.
absl::StatusOr<Manifest> ParseManifest(absl::string_view json);

// Everything the runtime relies on: indices in range, sizes and offsets within the arena and `weights_data_bytes`,
// alignment, names of symbols and files, bindings that match their buffers. INVALID_ARGUMENT naming the offender.
absl::Status ValidateManifest(const Manifest& manifest, int64_t weights_data_bytes);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_MANIFEST_H_

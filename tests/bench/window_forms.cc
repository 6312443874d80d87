// Usage: window_forms [--threads N] [--rounds N] [--isa avx2] [--form FORM] [BLOCK ...]. Times blocks of convolutions
// in several forms of their schedule, in turns, and prints a line of a Markdown table for each form.
//   separate   a kernel for each convolution with what follows it, as the cost model chooses it
//   plain      the same kernels without minimal filtering
//   halos      one kernel whose tasks compute the halos of their windows
//   windows    one kernel whose tasks walk down the rows
// Times are medians over the rounds of medians of a round; a ratio is the median over rounds of that round's time by
// its time of `separate`. Values are blocked by a vector of channels. With --form a block runs in one form alone, 10
// times, for a simulator of caches.
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/backends/backend.h"
#include "compiler/backends/cpu/toolchain/clang_toolchain.h"
#include "compiler/kernels/fusion_kernel.h"
#include "compiler/movement/pack_constant.h"
#include "compiler/pipeline/testing/window_chains.h"
#include "compiler/tools/offline_device.h"
#include "runtime/base/random_inputs.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/cpu/worker_pool.h"

namespace fusion {
namespace {

using testing::Conv;
using testing::Depthwise;
using testing::GraphMaker;
using testing::Relu;
using Ints = std::vector<int64_t>;

struct Block {
  std::string name;
  ecg::Graph graph;
};

Block Finish(const std::string& name, GraphMaker* g, ecg::ValueId result) {
  g->Out(result);
  return {name, g->graph()};
}

Block Dilations(int64_t extent) {
  GraphMaker g;
  ecg::ValueId x = g.In({1, 64, extent, extent});
  for (const int64_t d : {1, 2, 3, 4, 3, 2, 1}) x = Relu(&g, Conv(&g, x, {64, 64, 3, 3}, Ints(4, d), {1, 1}, {d, d}));
  return Finish(absl::StrCat("sar_drn_", extent), &g, x);
}

Block TwoConvolutions(int64_t channels, int64_t extent) {
  GraphMaker g;
  ecg::ValueId x = g.In({1, channels, extent, extent});
  for (int layer = 0; layer < 2; ++layer) x = Relu(&g, Conv(&g, x, {channels, channels, 3, 3}));
  return Finish(absl::StrCat("unet_", channels, "_", extent), &g, x);
}

Block InvertedResidual(int64_t in, int64_t wide, int64_t out, int64_t extent, int64_t stride) {
  GraphMaker g;
  const ecg::ValueId x = g.In({1, in, extent, extent});
  const ecg::ValueId expanded = Relu(&g, Conv(&g, x, {wide, in, 1, 1}, Ints(4, 0)));
  const ecg::ValueId deep = Relu(&g, Depthwise(&g, expanded, wide, 3, stride));
  ecg::ValueId y = Conv(&g, deep, {out, wide, 1, 1}, Ints(4, 0));
  if (stride == 1 && in == out) y = g.Op("Add", {y, x});
  return Finish(absl::StrCat("mobilenet_", extent, "_", wide, "_", stride), &g, y);
}

std::vector<Block> AllBlocks() {
  return {Dilations(64),
          Dilations(128),
          Dilations(256),
          TwoConvolutions(32, 256),
          TwoConvolutions(64, 128),
          TwoConvolutions(64, 256),
          InvertedResidual(16, 96, 24, 112, 2),
          InvertedResidual(24, 144, 24, 56, 1)};
}

// Memory for values and scratch, aligned and with slack.
struct Free {
  void operator()(char* p) const { free(p); }
};
using Memory = std::unique_ptr<char, Free>;
Memory Allocate(int64_t bytes) {
  const int64_t whole = (bytes + 64 + 4095) / 4096 * 4096;
  Memory memory(static_cast<char*>(aligned_alloc(4096, whole)));
  memset(memory.get(), 0, whole);
  return memory;
}

// A block in one form: built, with all its memory.
class Program {
 public:
  static absl::StatusOr<std::unique_ptr<Program>> Make(const Block& block, const std::string& form,
                                                       const DeviceModel& device, ClangToolchain* clang) {
    std::unique_ptr<Program> program(new Program(block.graph, device));
    RETURN_IF_ERROR(program->Schedule(form));
    RETURN_IF_ERROR(program->Build(clang));
    return program;
  }

  void Run() { pool_->Run(phases_); }

  std::vector<float> Result() const {
    const ecg::ValueId out = graph_.outputs()[0];
    std::vector<float> result(Bytes(out) / 4);
    memcpy(result.data(), values_.at(out).get(), Bytes(out));
    return result;
  }
  size_t kernels() const { return kernels_.size(); }
  int64_t scratch_bytes() const { return scratch_bytes_; }
  size_t text_bytes() const { return text_bytes_; }
  int64_t tasks() const { return phases_.empty() ? 0 : phases_[0].tasks(); }

 private:
  Program(const ecg::Graph& graph, const DeviceModel& device) : graph_(graph), device_(device) {
    const Layout blocked{1, device.vector_bytes / 4};
    for (size_t v = 0; v < graph.values().size(); ++v) {
      const ecg::Value& value = graph.values()[v];
      if (!value.constant && value.type.shape.size() == 4) layouts_[static_cast<int>(v)] = blocked;
    }
  }

  int64_t Bytes(ecg::ValueId v) const {
    const auto layout = layouts_.find(v);
    const Shape& shape = graph_.value(v).type.shape;
    return 4 * NumElements(layout == layouts_.end() ? shape : layout->second.PhysicalShape(shape));
  }

  absl::Status Schedule(const std::string& form) {
    const bool together = form == "halos" || form == "windows";
    std::vector<FusionBlock> blocks;
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      if (blocks.empty() || (!together && graph_.nodes()[n].op == "Conv")) blocks.emplace_back();
      blocks.back().nodes.push_back(static_cast<int>(n));
    }
    for (FusionBlock& block : blocks) {
      if (form != "separate") block.directives = {{ecg::kNone, "form", form}};
      absl::StatusOr<FusionKernel> kernel =
          MakeFusionKernel(graph_, block, LiveOutOf(graph_, block), layouts_, device_);
      if (!kernel.ok() && form == "plain") {  // it has one form alone
        block.directives.clear();
        kernel = MakeFusionKernel(graph_, block, LiveOutOf(graph_, block), layouts_, device_);
      }
      if (!kernel.ok()) return kernel.status();
      scratch_bytes_ = std::max(scratch_bytes_, kernel->kernel.scratch_bytes);
      kernels_.push_back(*std::move(kernel));
    }
    return absl::OkStatus();
  }

  absl::Status Build(ClangToolchain* clang) {
    const Backend& backend = *FindBackend(device_.kind);
    std::string source = backend.Preamble({}, device_);
    for (size_t k = 0; k < kernels_.size(); ++k) {
      source += backend.PrintKernel(kernels_[k].kernel, absl::StrCat("k", k), device_);
    }
    text_bytes_ = source.size();
    const BuildUnit unit{device_.kind, device_.march, source};
    ASSIGN_OR_RETURN(const std::vector<std::string> built, clang->Build({&unit, 1}));
    static int libraries = 0;  // a name that was loaded once would be the same library again
    const std::string path = absl::StrCat(std::filesystem::temp_directory_path().string(), "/window_forms_",
                                          static_cast<int64_t>(getpid()), "_", ++libraries, ".so");
    std::ofstream(path, std::ios::binary) << built[0];
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    std::filesystem::remove(path);
    if (library == nullptr) return absl::InternalError(dlerror());
    ASSIGN_OR_RETURN(pool_, WorkerPool::Create(device_.parallel_units, scratch_bytes_ + 64));
    for (const ecg::ValueId v : graph_.inputs()) {
      Value(v);
      const Tensor random = RandomTensor(DType::kF32, {Bytes(v) / 4}, 7, 1);
      memcpy(values_[v].get(), random.data(), Bytes(v));
    }
    for (size_t k = 0; k < kernels_.size(); ++k) RETURN_IF_ERROR(AddLaunches(k, library));
    return absl::OkStatus();
  }

  char* Value(ecg::ValueId v) {
    Memory& memory = values_[v];
    if (memory == nullptr) memory = Allocate(Bytes(v));
    return memory.get();
  }

  absl::Status AddLaunches(size_t k, void* library) {
    const FusionKernel& kernel = kernels_[k];
    auto& args = args_.emplace_back(std::make_unique<std::vector<void*>>());
    size_t a = 0;
    for (const movement::Buffer& buffer : kernel.kernel.buffers) {
      if (!movement::IsArgument(buffer)) continue;
      const KernelArg& arg = kernel.args[a++];
      if (arg.kind == KernelArg::Kind::kValue) {
        args->push_back(Value(arg.value));
        continue;
      }
      own_.push_back(Allocate(movement::SizeBytes(buffer)));
      args->push_back(own_.back().get());
      if (arg.kind != KernelArg::Kind::kConstant) continue;
      Tensor source = arg.value == ecg::kNone ? arg.literal : *graph_.value(arg.value).constant;
      if (arg.pack >= 0) source = movement::PackedConstant(kernel.kernel.packs[arg.pack], source);
      memcpy(own_.back().get(), source.data(), source.size_bytes());
    }
    sets_.push_back(std::make_unique<void* const*>(args->data()));
    const std::vector<int64_t> tasks = FindBackend(device_.kind)->LaunchedTasks(kernel.kernel, device_);
    for (size_t p = 0; p < tasks.size(); ++p) {
      const std::string symbol = PhaseSymbol(absl::StrCat("k", k), static_cast<int>(p));
      auto* const function = reinterpret_cast<fusion_kernel_phase>(dlsym(library, symbol.c_str()));
      if (function == nullptr) return absl::InternalError(absl::StrCat("no function ", symbol));
      phases_.push_back(pool_->Cut({{function, {sets_.back().get(), 1}, tasks[p]}}));
    }
    return absl::OkStatus();
  }

  const ecg::Graph& graph_;
  const DeviceModel device_;
  ValueLayouts layouts_;
  std::vector<FusionKernel> kernels_;
  std::unique_ptr<WorkerPool> pool_;
  std::map<ecg::ValueId, Memory> values_;
  std::vector<Memory> own_;
  std::vector<std::unique_ptr<std::vector<void*>>> args_;
  std::vector<std::unique_ptr<void* const*>> sets_;
  std::vector<WorkerPool::Phase> phases_;
  int64_t scratch_bytes_ = 0;
  size_t text_bytes_ = 0;
};

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double SecondsOf(Program* program, int times) {
  std::vector<double> seconds;
  for (int t = 0; t < times; ++t) {
    const auto start = std::chrono::steady_clock::now();
    program->Run();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return Median(seconds);
}

// The largest difference of two results, by the largest value.
double Difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0, difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i])));
    difference = std::max(difference, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return largest > 0 ? difference / largest : difference;
}

void Compare(const Block& block, const DeviceModel& device, int rounds, ClangToolchain* clang) {
  const std::vector<std::string> forms = {"separate", "plain", "halos", "windows"};
  std::map<std::string, std::unique_ptr<Program>> programs;
  std::map<std::string, std::vector<double>> times;
  for (const std::string& form : forms) {
    absl::StatusOr<std::unique_ptr<Program>> made = Program::Make(block, form, device, clang);
    if (made.ok()) {
      SecondsOf(made->get(), 2);
      programs[form] = *std::move(made);
    } else {
      std::printf("| %s | %s | %s |\n", block.name.c_str(), form.c_str(), std::string(made.status().message()).c_str());
    }
  }
  if (programs.count("separate") == 0) return;
  const int runs = std::clamp(static_cast<int>(0.05 / SecondsOf(programs["separate"].get(), 3)), 3, 200);
  for (int round = 0; round < rounds; ++round) {
    for (size_t f = 0; f < forms.size(); ++f) {
      const std::string& form = forms[(f + static_cast<size_t>(round)) % forms.size()];
      if (const auto program = programs.find(form); program != programs.end()) {
        times[form].push_back(SecondsOf(program->second.get(), runs));
      }
    }
  }
  for (const std::string& form : forms) {
    if (programs.count(form) == 0) continue;
    const Program& program = *programs[form];
    std::vector<double> ratios;
    for (int round = 0; round < rounds; ++round) ratios.push_back(times[form][round] / times["separate"][round]);
    std::printf("| %s | %s | %zu | %lld | %.3f | %.2f | %.0f | %.0f | %.1e |\n", block.name.c_str(), form.c_str(),
                program.kernels(), static_cast<long long>(program.tasks()), 1e3 * Median(times[form]), Median(ratios),
                static_cast<double>(program.scratch_bytes()) / 1024, static_cast<double>(program.text_bytes()) / 1024,
                Difference(programs["separate"]->Result(), program.Result()));
    std::fflush(stdout);
  }
}

int Main(const std::vector<std::string>& words) {
  int threads = 1, rounds = 11;
  std::string isa, only;
  std::set<std::string> names;
  for (size_t w = 0; w < words.size(); ++w) {
    const bool more = w + 1 < words.size();
    bool good = true;
    if (words[w] == "--threads" && more) {
      good = absl::SimpleAtoi(words[++w], &threads) && threads >= 1;
    } else if (words[w] == "--rounds" && more) {
      good = absl::SimpleAtoi(words[++w], &rounds) && rounds >= 1;
    } else if (words[w] == "--isa" && more) {
      isa = words[++w];
    } else if (words[w] == "--form" && more) {
      only = words[++w];
    } else {
      names.insert(words[w]);
    }
    if (!good) {
      std::fprintf(stderr, "window_forms: '%s' is no number from 1 on\n", words[w].c_str());
      return 2;
    }
  }
  absl::StatusOr<DeviceModel> device = OfflineHostDevice();
  absl::StatusOr<std::unique_ptr<ClangToolchain>> clang = ClangToolchain::Create();
  if (!device.ok() || !clang.ok()) {
    std::fprintf(stderr, "window_forms: %s\n",
                 std::string((device.ok() ? clang.status() : device.status()).message()).c_str());
    return 1;
  }
  if (isa == "avx2") {
    const DeviceModel avx2 = testing::Avx2Device();
    device->isa = avx2.isa;
    device->march = avx2.march;
    device->vector_bytes = avx2.vector_bytes;
    device->vector_registers = avx2.vector_registers;
  }
  device->parallel_units = threads;
  if (only.empty()) {
    std::printf("| block | form | kernels | tasks | ms | by separate | scratch KiB | text KiB | difference |\n");
    std::printf("|---|---|---|---|---|---|---|---|---|\n");
  }
  for (const Block& block : AllBlocks()) {
    if (!names.empty() && names.count(block.name) == 0) continue;
    if (only.empty()) {
      Compare(block, *device, rounds, clang->get());
      continue;
    }
    const absl::StatusOr<std::unique_ptr<Program>> program = Program::Make(block, only, *device, clang->get());
    if (!program.ok()) {
      std::fprintf(stderr, "window_forms: %s: %s\n", block.name.c_str(),
                   std::string(program.status().message()).c_str());
      return 1;
    }
    for (int run = 0; run < 10; ++run) (*program)->Run();
  }
  return 0;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) { return fusion::Main(std::vector<std::string>(argv + 1, argv + argc)); }

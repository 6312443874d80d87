#include "runtime/devices/cuda/cuda_device.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/cpu/cpu_launches.h"
#include "runtime/devices/cpu/isa.h"
#include "runtime/devices/cuda/context.h"
#include "runtime/devices/cuda/library_calls.h"
#include "runtime/devices/launch_order.h"
#include "runtime/devices/mirrored_buffers.h"

namespace fusion {
namespace {

constexpr size_t kGridBarrierBytes = 4;

class CudaExecutable : public Executable {
 public:
  static absl::StatusOr<std::unique_ptr<Executable>> Create(std::shared_ptr<cuda::Context> context,
                                                            std::shared_ptr<const BundleReader> bundle,
                                                            const LoadOptions& options) {
    auto executable = std::make_unique<CudaExecutable>();
    executable->context_ = std::move(context);
    executable->bundle_ = std::move(bundle);
    executable->program_ = &executable->bundle_->manifest().program(options.program);
    const cuda::Current current(*executable->context_);
    RETURN_IF_ERROR(executable->LoadCode());
    RETURN_IF_ERROR(executable->PlaceBuffers());
    RETURN_IF_ERROR(executable->BindLaunches());
    ASSIGN_OR_RETURN(executable->host_launches_,
                     CpuLaunches::Create(*executable->bundle_, *executable->program_, CpuLaunches::Which::kOnHost,
                                         executable->buffers_.Bases(), options.threads, options.pool));
    executable->MakeParts();
    return executable;
  }

  ~CudaExecutable() override {
    if (context_ == nullptr) return;
    const cuda::Current current(*context_);
    for (const Part& part : parts_) {
      if (part.graph != nullptr) api().GraphExecDestroy(part.graph);
    }
    for (const auto& [file, module] : modules_) api().ModuleUnload(module);
    if (pinned_ != nullptr) api().MemHostUnregister(pinned_);
  }

  absl::Status Run(absl::Span<const void* const> inputs, absl::Span<void* const> outputs,
                   const LaunchObserver& observer) override {
    const cuda::Current current(*context_);
    absl::Status status =
        buffers_.UploadInputs(inputs, [this](int buffer, const void* from) { return Upload(buffer, from); });
    if (status.ok()) status = observer ? RunTimed(observer) : RunParts();
    if (status.ok()) {
      status = buffers_.DownloadOutputs(
          outputs, [this](int buffer, int64_t size_bytes, void* to) { return Download(buffer, size_bytes, to); });
    }
    const absl::Status finished = context_->Finish();  // also after an error: copies use the caller's memory
    return status.ok() ? finished : status;
  }

  void* input(int index) override { return HostOf(program_->inputs[index].buffer); }
  const void* output(int index) override { return HostOf(program_->outputs[index].buffer); }
  void* buffer(int index) override { return HostOf(index); }

 private:
  struct BoundPhase {
    std::unique_ptr<cuda::BoundCall> library;  // null: `function` runs instead
    cuda::FunctionHandle function;
    unsigned blocks, threads;
    bool together;  // the thread blocks wait for each other
  };
  struct BoundLaunch {
    LaunchedAt at;
    std::vector<BoundPhase> phases = {};  // empty on the host
    std::vector<cuda::DevicePointer> arguments = {};
  };

  // A part of a run: entries [begin, end) of launches_ on the device, or one on the host. Launches on the device become
  // one graph if the driver makes one, because launching a graph costs less.
  struct Part {
    cuda::GraphExecHandle graph;  // null: its launches are enqueued one by one
    size_t begin, end;
  };

  const cuda::Api& api() const { return context_->api(); }

  char* HostOf(int buffer) const { return buffers_.HostOf(buffer); }
  cuda::DevicePointer DeviceOf(int buffer, int64_t iteration = 0) const {
    const bool constant = buffers_.IsConstant(buffer);
    return (constant ? weights_ : memory_).data() +
           static_cast<cuda::DevicePointer>(buffers_.Offset(buffer) + MovedBy(*program_, buffer, iteration));
  }

  absl::Status LoadCode() {
    for (const fusion::ManifestKernel& kernel : program_->kernels) {
      const bool text =
          std::any_of(kernel.phases.begin(), kernel.phases.end(), [](const Phase& phase) { return !phase.library; });
      if (kernel.on_host || !text || modules_.count(kernel.file) != 0) continue;
      ASSIGN_OR_RETURN(const absl::string_view bytes, bundle_->Entry(kernel.file));
      cuda::ModuleHandle module = nullptr;
      RETURN_IF_ERROR(context_->Check(api().ModuleLoadData(&module, bytes.data()),
                                      absl::StrCat("'", context_->device().name, "' does not load ", kernel.file)));
      modules_[kernel.file] = module;
    }
    return absl::OkStatus();
  }

  // Places the arena, then inputs and outputs, in one piece of device memory. The host has a copy at the same offsets,
  // since callers may ask for the memory of inputs and outputs.
  absl::Status PlaceBuffers() {
    ASSIGN_OR_RETURN(buffers_, MirroredBuffers::Create(*bundle_, *program_));
    const int64_t bytes = buffers_.size_bytes();
    ASSIGN_OR_RETURN(memory_, context_->Allocate(bytes, "the bundle's buffers"));
    RETURN_IF_ERROR(context_->Check(api().MemsetD8(memory_.data(), 0, static_cast<size_t>(bytes)),
                                    "clearing the bundle's buffers"));
    ASSIGN_OR_RETURN(grid_barrier_, context_->Allocate(kGridBarrierBytes, "the grid barrier"));
    RETURN_IF_ERROR(
        context_->Check(api().MemsetD8(grid_barrier_.data(), 0, kGridBarrierBytes), "clearing the grid barrier"));
    const absl::string_view weights = bundle_->weights();
    if (!weights.empty()) {
      ASSIGN_OR_RETURN(weights_, context_->Allocate(static_cast<int64_t>(weights.size()) + kBufferSlackBytes,
                                                    "the bundle's weights"));
      RETURN_IF_ERROR(context_->Check(api().MemcpyHtoD(weights_.data(), weights.data(), weights.size()),
                                      "copying the weights to the device"));
    }
    PinInputsAndOutputs();
    // Runs are in a stream that waits for no other one, and these copies may go on after their calls return.
    return context_->Check(api().StreamSynchronize(nullptr), "waiting for the bundle's buffers");
  }

  // Pins the host's copy of inputs and outputs, which a caller may use in place: copies of pinned memory are several
  // times as fast. Where the system refuses, they are copied as any other memory.
  void PinInputsAndOutputs() {
    int64_t first = buffers_.size_bytes();
    for (const auto* bindings : {&program_->inputs, &program_->outputs}) {
      for (const Binding& binding : *bindings) {
        if (!buffers_.IsConstant(binding.buffer)) first = std::min(first, buffers_.Offset(binding.buffer));
      }
    }
    const auto bytes = static_cast<size_t>(buffers_.size_bytes() - first);
    if (bytes == 0 || api().MemHostRegister(buffers_.host() + first, bytes, 0) != cuda::kSuccess) return;
    pinned_ = buffers_.host() + first;
  }

  absl::Status BindLaunches() {
    for (const LaunchedAt& at : LaunchesInOrder(*program_)) {
      ASSIGN_OR_RETURN(launches_.emplace_back(), Bind(at));
    }
    return UploadTables();
  }

  absl::StatusOr<BoundLaunch> Bind(const LaunchedAt& at) {
    const Launch& launch = program_->launches[at.launch];
    const int64_t iteration = at.iteration;
    const fusion::ManifestKernel& kernel = program_->kernels[launch.kernel];
    BoundLaunch bound{at};
    if (kernel.on_host) return bound;
    for (const int buffer : launch.buffers) {
      bound.arguments.push_back(MovesInLaunch(*program_, buffer) ? AddTable(buffer) : DeviceOf(buffer, iteration));
    }
    if (kernel.persistent) bound.arguments.push_back(grid_barrier_.data());
    for (const Phase& phase : kernel.phases) {
      if (phase.tasks == 0) continue;
      BoundPhase one = {nullptr, nullptr, static_cast<unsigned>(phase.tasks), 0, false};
      if (phase.library) {
        const auto argument = [&](int index) {
          const int buffer = launch.buffers[index];
          return cuda::LibraryCalls::Argument{DeviceOf(buffer, iteration), program_->buffers[buffer].dtype};
        };
        ASSIGN_OR_RETURN(one.library, library_calls_.Plan(*phase.library, argument, context_));
        bound.phases.push_back(std::move(one));
        continue;
      }
      RETURN_IF_ERROR(context_->Check(
          api().ModuleGetFunction(&one.function, modules_[kernel.file], phase.symbol.c_str()), phase.symbol));
      int threads = 0;  // from the function's launch bounds, for which its code is written
      RETURN_IF_ERROR(
          context_->Check(api().FuncGetAttribute(&threads, cuda::kFunctionMaxThreads, one.function), phase.symbol));
      one.threads = static_cast<unsigned>(threads);
      if (kernel.persistent) {
        ASSIGN_OR_RETURN(const int most, context_->BlocksTogether(one.function, threads));
        one.blocks = std::min(one.blocks, static_cast<unsigned>(most));
        one.together = one.blocks > 1;
      }
      bound.phases.push_back(std::move(one));
    }
    return bound;
  }

  // Appends where the buffer lies in each iteration, and returns the table's place in `tables_`, which is allocated
  // later.
  cuda::DevicePointer AddTable(int buffer) {
    const cuda::DevicePointer place = table_.size() * sizeof(cuda::DevicePointer);
    const int64_t trips = program_->repeats[program_->buffers[buffer].steps->repeat].trips;
    for (int64_t t = 0; t < trips; ++t) table_.push_back(DeviceOf(buffer, t));
    return place;
  }

  // Brings the tables to the device, and makes the arguments that are places in them addresses.
  absl::Status UploadTables() {
    if (table_.empty()) return absl::OkStatus();
    const size_t bytes = table_.size() * sizeof(cuda::DevicePointer);
    ASSIGN_OR_RETURN(tables_, context_->Allocate(static_cast<int64_t>(bytes), "the places of the iterations of loops"));
    for (BoundLaunch& bound : launches_) {
      const Launch& launch = program_->launches[bound.at.launch];
      for (size_t a = 0; !bound.arguments.empty() && a < launch.buffers.size(); ++a) {
        if (MovesInLaunch(*program_, launch.buffers[a])) bound.arguments[a] += tables_.data();
      }
    }
    return context_->Check(api().MemcpyHtoD(tables_.data(), table_.data(), bytes), "copying the places of iterations");
  }

  std::string NameOf(const BoundLaunch& bound) const {
    return absl::StrCat("launch ", bound.at.launch, " '", program_->launches[bound.at.launch].label, "'");
  }

  absl::Status Enqueue(size_t index) {
    BoundLaunch& launch = launches_[index];
    std::vector<void*> parameters;
    for (cuda::DevicePointer& argument : launch.arguments) parameters.push_back(&argument);
    for (const BoundPhase& phase : launch.phases) {
      if (phase.library != nullptr) {
        RETURN_IF_ERROR(Annotate(phase.library->Enqueue(), NameOf(launch)));
        continue;
      }
      const cuda::StreamHandle stream = context_->stream();
      const cuda::Result code = phase.together
                                    ? api().LaunchCooperativeKernel(phase.function, phase.blocks, 1, 1, phase.threads,
                                                                    1, 1, 0, stream, parameters.data())
                                    : api().LaunchKernel(phase.function, phase.blocks, 1, 1, phase.threads, 1, 1, 0,
                                                         stream, parameters.data(), nullptr);
      RETURN_IF_ERROR(context_->Check(code, NameOf(launch)));
    }
    return absl::OkStatus();
  }

  bool OnHost(size_t index) const {
    return program_->kernels[program_->launches[launches_[index].at.launch].kernel].on_host;
  }

  // Consecutive launches on the device become one graph, which is possible because addresses never change.
  void MakeParts() {
    for (size_t l = 0; l < launches_.size();) {
      size_t end = l + 1;
      while (!OnHost(l) && end < launches_.size() && !OnHost(end)) ++end;
      parts_.push_back({OnHost(l) ? nullptr : Capture(l, end), l, end});
      l = end;
    }
  }

  // Returns null if the driver makes no graph. Errors in the launches themselves show when they run.
  cuda::GraphExecHandle Capture(size_t begin, size_t end) {
    if (api().StreamBeginCapture(context_->stream(), cuda::kCaptureThreadLocal) != cuda::kSuccess) return nullptr;
    absl::Status status;
    for (size_t l = begin; l < end && status.ok(); ++l) status = Enqueue(l);
    cuda::GraphHandle graph = nullptr;
    cuda::GraphExecHandle executable = nullptr;
    const bool captured = api().StreamEndCapture(context_->stream(), &graph) == cuda::kSuccess && status.ok();
    if (captured && api().GraphInstantiate(&executable, graph, 0) != cuda::kSuccess) executable = nullptr;
    if (graph != nullptr) api().GraphDestroy(graph);
    return executable;
  }

  absl::Status RunParts() {
    for (const Part& part : parts_) {
      if (part.graph != nullptr) {
        RETURN_IF_ERROR(context_->Check(api().GraphLaunch(part.graph, context_->stream()), "launching a graph"));
        continue;
      }
      for (size_t l = part.begin; l < part.end; ++l) RETURN_IF_ERROR(OnHost(l) ? RunOnHost(l) : Enqueue(l));
    }
    return absl::OkStatus();
  }

  // Runs a launch on the CPU: copies its buffers from the device, and the written ones back.
  absl::Status RunOnHost(size_t index) {
    const BoundLaunch& bound = launches_[index];
    const Launch& launch = program_->launches[bound.at.launch];
    const auto host = [&](int buffer) { return HostOf(buffer) + MovedBy(*program_, buffer, bound.at.iteration); };
    for (const int buffer : launch.buffers) {
      RETURN_IF_ERROR(Download(buffer, program_->buffers[buffer].size_bytes, host(buffer), bound.at.iteration));
    }
    RETURN_IF_ERROR(context_->Finish());
    host_launches_.Run(bound.at.launch, bound.at.iteration);
    for (const int argument : program_->kernels[launch.kernel].writes) {
      const int buffer = launch.buffers[argument];
      RETURN_IF_ERROR(Upload(buffer, host(buffer), bound.at.iteration));
    }
    return absl::OkStatus();
  }

  // Records an event between launches. A launch's latency is the time that it adds to a run in all its iterations, the
  // cost of launching included.
  absl::Status RunTimed(const LaunchObserver& observer) {
    RETURN_IF_ERROR(context_->Finish());  // so that the first launch does not include the copies of inputs
    std::vector<cuda::EventHandle> events(launches_.size() + 1, nullptr);
    absl::Status status;
    for (size_t l = 0; l <= launches_.size() && status.ok(); ++l) {
      status = context_->Check(api().EventCreate(&events[l], 0), "making an event");
      if (status.ok()) status = context_->Check(api().EventRecord(events[l], context_->stream()), "recording an event");
      if (status.ok() && l < launches_.size()) status = OnHost(l) ? RunOnHost(l) : Enqueue(l);
    }
    status.Update(context_->Finish());
    std::vector<double> ns(program_->launches.size(), 0);
    for (size_t l = 0; l < launches_.size() && status.ok(); ++l) {
      float milliseconds = 0;
      status = context_->Check(api().EventElapsedTime(&milliseconds, events[l], events[l + 1]), "reading an event");
      ns[launches_[l].at.launch] += 1e6 * milliseconds;
    }
    for (size_t l = 0; l < ns.size() && status.ok(); ++l) observer(static_cast<int>(l), static_cast<int64_t>(ns[l]));
    for (const cuda::EventHandle event : events) {
      if (event != nullptr) api().EventDestroy(event);
    }
    return status;
  }

  absl::Status Upload(int buffer, const void* from, int64_t iteration = 0) {
    const auto bytes = static_cast<size_t>(program_->buffers[buffer].size_bytes);
    if (bytes == 0) return absl::OkStatus();
    return context_->Check(api().MemcpyHtoDAsync(DeviceOf(buffer, iteration), from, bytes, context_->stream()),
                           "copying an input to the device");
  }

  absl::Status Download(int buffer, int64_t size_bytes, void* to, int64_t iteration = 0) {
    if (size_bytes == 0) return absl::OkStatus();
    const auto bytes = static_cast<size_t>(size_bytes);
    if (buffers_.IsConstant(buffer)) {
      if (to != HostOf(buffer)) std::memcpy(to, HostOf(buffer), bytes);
      return absl::OkStatus();
    }
    return context_->Check(api().MemcpyDtoHAsync(to, DeviceOf(buffer, iteration), bytes, context_->stream()),
                           "copying an output from the device");
  }

  std::shared_ptr<cuda::Context> context_;
  std::shared_ptr<const BundleReader> bundle_;
  const fusion::ManifestProgram* program_ = nullptr;
  std::map<std::string, cuda::ModuleHandle> modules_;  // by kernel file
  MirroredBuffers buffers_;
  cuda::Memory memory_, weights_, grid_barrier_;
  void* pinned_ = nullptr;  // the host's memory that is pinned
  cuda::LibraryCalls library_calls_;
  std::vector<BoundLaunch> launches_;       // of a run, in order
  std::vector<cuda::DevicePointer> table_;  // where the buffers that move inside of launches lie in each iteration
  cuda::Memory tables_;                     // the same on the device
  std::vector<Part> parts_;
  CpuLaunches host_launches_;
};

class CudaDevice : public Device {
 public:
  absl::Status CheckSupported(const Manifest& manifest) const override {
    const absl::StatusOr<cuda::DeviceFacts> device = cuda::ChosenDevice();
    if (!device.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the bundle is for cuda:", manifest.isa, "; ", device.status().message()));
    }
    if (!manifest.host_isa.empty()) RETURN_IF_ERROR(CheckIsa(manifest.host_isa));
    return cuda::CheckRuns(*device, manifest.isa);
  }

  absl::StatusOr<std::unique_ptr<Executable>> Load(std::shared_ptr<const BundleReader> bundle,
                                                   const LoadOptions& options) const override {
    ASSIGN_OR_RETURN(std::shared_ptr<cuda::Context> context, cuda::Context::Create());
    return CudaExecutable::Create(std::move(context), std::move(bundle), options);
  }
};

}  // namespace

std::unique_ptr<Device> MakeCudaDevice() { return std::make_unique<CudaDevice>(); }

}  // namespace fusion

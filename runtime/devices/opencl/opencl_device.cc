#include "runtime/devices/opencl/opencl_device.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/cpu/cpu_launches.h"
#include "runtime/devices/cpu/isa.h"
#include "runtime/devices/launch_order.h"
#include "runtime/devices/mirrored_buffers.h"
#include "runtime/devices/opencl/context.h"
#include "runtime/devices/opencl/program_file.h"

namespace fusion {
namespace {

using opencl::ToStatus;

class OpenClExecutable : public Executable {
 public:
  static absl::StatusOr<std::unique_ptr<Executable>> Create(std::shared_ptr<opencl::Context> context,
                                                            std::shared_ptr<const BundleReader> bundle,
                                                            const LoadOptions& options) {
    auto executable = std::make_unique<OpenClExecutable>();
    executable->context_ = std::move(context);
    executable->bundle_ = std::move(bundle);
    executable->program_ = &executable->bundle_->manifest().program(options.program);
    RETURN_IF_ERROR(executable->LoadCode());
    RETURN_IF_ERROR(executable->PlaceBuffers());
    RETURN_IF_ERROR(executable->BindLaunches());
    ASSIGN_OR_RETURN(executable->host_launches_,
                     CpuLaunches::Create(*executable->bundle_, *executable->program_, CpuLaunches::Which::kOnHost,
                                         executable->buffers_.Bases(), options.threads, options.pool));
    return executable;
  }

  absl::Status Run(absl::Span<const void* const> inputs, absl::Span<void* const> outputs,
                   const LaunchObserver& observer) override {
    std::vector<Event> events;
    absl::Status status =
        buffers_.UploadInputs(inputs, [this](int buffer, const void* from) { return Upload(buffer, from); });
    if (status.ok() && observer && !shared_) status = context_->Finish();  // excludes the copies from the first launch
    if (observer) host_ns_.assign(launches_.size(), 0);
    if (status.ok()) status = Enqueue(observer ? &events : nullptr);
    const absl::Status finished = context_->Finish();  // also after an error: commands use the caller's memory
    if (status.ok()) status = finished;
    if (status.ok() && observer) status = Report(events, observer);
    for (const Event& event : events) context_->api().clReleaseEvent(event.event);
    if (status.ok()) {
      status = buffers_.DownloadOutputs(
          outputs, [this](int buffer, int64_t size_bytes, void* to) { return Download(buffer, size_bytes, to); });
    }
    return status;
  }

  void* input(int index) override { return HostOf(program_->inputs[index].buffer); }
  const void* output(int index) override { return HostOf(program_->outputs[index].buffer); }
  void* buffer(int index) override { return HostOf(index); }

 private:
  struct Event {
    int launch;
    cl_event event;
  };
  struct BoundPhase {
    opencl::ClKernel kernel;
    int64_t tasks;
  };
  struct BoundLaunch {
    LaunchedAt at;
    std::vector<BoundPhase> phases = {};  // empty on the host
  };

  char* HostOf(int buffer, int64_t iteration = 0) const {
    return buffers_.HostOf(buffer) + MovedBy(*program_, buffer, iteration);
  }

  absl::Status LoadCode() {
    for (const fusion::ManifestKernel& kernel : program_->kernels) {
      if (kernel.on_host || programs_.count(kernel.file) != 0) continue;
      ASSIGN_OR_RETURN(const absl::string_view bytes, bundle_->Entry(kernel.file));
      ASSIGN_OR_RETURN(const opencl::ProgramFile file, opencl::ReadProgramFile(bytes));
      const opencl::DeviceFacts& device = context_->device();
      if (!file.binary.empty() && file.device == device.name && file.driver == device.driver) {
        absl::StatusOr<opencl::ClProgram> built = context_->BuildBinary(file.binary, kernel.file);
        if (built.ok()) {
          programs_[kernel.file] = *std::move(built);
          continue;
        }
      }
      ASSIGN_OR_RETURN(programs_[kernel.file], context_->BuildSource(file.source, kernel.file));
    }
    return absl::OkStatus();
  }

  // Places the arena, then inputs and outputs, in one memory object of the device. The host has a copy at the same
  // offsets, since callers may ask for the memory of inputs and outputs. A device that shares memory works in the
  // host's piece.
  absl::Status PlaceBuffers() {
    ASSIGN_OR_RETURN(buffers_, MirroredBuffers::Create(*bundle_, *program_));
    const int64_t bytes = buffers_.size_bytes();
    shared_ = context_->device().shares_memory;
    if (shared_) {
      ASSIGN_OR_RETURN(memory_, context_->ShareMemory(buffers_.host(), bytes));
    } else {
      ASSIGN_OR_RETURN(memory_, context_->MakeBuffer(bytes, "the bundle's buffers"));
    }
    const absl::string_view weights = bundle_->weights();
    if (!weights.empty()) {
      ASSIGN_OR_RETURN(weights_, context_->MakeBuffer(static_cast<int64_t>(weights.size()) + kBufferSlackBytes,
                                                      "the bundle's weights", weights.data()));
    }
    return absl::OkStatus();
  }

  absl::Status BindLaunches() {
    const opencl::Api& api = context_->api();
    // Launches run one after another, so one pair of counters serves all of them.
    static constexpr cl_int kNone[2] = {0, 0};
    ASSIGN_OR_RETURN(tickets_, context_->MakeBuffer(sizeof kNone, "tickets of work"));
    RETURN_IF_ERROR(ToStatus(api.clEnqueueWriteBuffer(context_->queue(), tickets_.get(), CL_TRUE, 0, sizeof kNone,
                                                      kNone, 0, nullptr, nullptr),
                             "preparing memory"));
    for (const LaunchedAt& at : LaunchesInOrder(*program_)) {
      ASSIGN_OR_RETURN(launches_.emplace_back(), Bind(at));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<BoundLaunch> Bind(const LaunchedAt& at) {
    const opencl::Api& api = context_->api();
    const Launch& launch = program_->launches[at.launch];
    const fusion::ManifestKernel& kernel = program_->kernels[launch.kernel];
    BoundLaunch bound{at};
    if (kernel.on_host) return bound;
    for (const Phase& phase : kernel.phases) {
      if (phase.tasks == 0) continue;
      ASSIGN_OR_RETURN(opencl::ClKernel made, context_->MakeKernel(programs_[kernel.file], phase.symbol));
      cl_uint parameters = 0, index = 0;
      RETURN_IF_ERROR(ToStatus(
          api.clGetKernelInfo(made.get(), CL_KERNEL_NUM_ARGS, sizeof parameters, &parameters, nullptr), phase.symbol));
      const auto pass = [&](const auto& value) {
        return ToStatus(api.clSetKernelArg(made.get(), index++, sizeof value, &value), phase.symbol);
      };
      // Few buffers are two parameters each; many lie in a table.
      const bool few = parameters == 2 * launch.buffers.size() + (kernel.persistent ? 1 : 0);
      if (!few) {
        ASSIGN_OR_RETURN(const cl_mem places, PlacesOf(launch, at.iteration));
        RETURN_IF_ERROR(pass(memory_.get()));
        RETURN_IF_ERROR(pass(weights_.get() != nullptr ? weights_.get() : memory_.get()));
        RETURN_IF_ERROR(pass(places));
      } else {
        for (const int buffer : launch.buffers) {
          RETURN_IF_ERROR(pass(InWeights(buffer) ? weights_.get() : memory_.get()));
          if (MovesInLaunch(*program_, buffer)) {
            ASSIGN_OR_RETURN(const cl_mem offsets, OffsetsOf(buffer));
            RETURN_IF_ERROR(pass(offsets));
          } else {
            RETURN_IF_ERROR(pass(cl_long{OffsetAt(buffer, at.iteration)}));
          }
        }
      }
      if (kernel.persistent) RETURN_IF_ERROR(pass(tickets_.get()));
      const int64_t most = kernel.persistent ? context_->device().persistent_groups : phase.tasks;
      bound.phases.push_back({std::move(made), std::min(phase.tasks, most)});
    }
    return bound;
  }

  // The buffer's offset in its memory object in an iteration of its repeat.
  int64_t OffsetAt(int buffer, int64_t iteration) const {
    return buffers_.Offset(buffer) + MovedBy(*program_, buffer, iteration);
  }

  // Makes the table of a buffer that moves inside of a launch (kernel_abi.md).
  absl::StatusOr<cl_mem> OffsetsOf(int buffer) {
    std::vector<cl_long>& offsets = places_.emplace_back();
    const int64_t trips = program_->repeats[program_->buffers[buffer].steps->repeat].trips;
    for (int64_t t = 0; t < trips; ++t) offsets.push_back(OffsetAt(buffer, t));
    return MakeTable(offsets);
  }

  absl::StatusOr<cl_mem> MakeTable(const std::vector<cl_long>& values) {
    ASSIGN_OR_RETURN(opencl::Buffer table, context_->MakeBuffer(static_cast<int64_t>(values.size() * sizeof(cl_long)),
                                                                "a launch's buffers", values.data()));
    tables_.push_back(std::move(table));
    return tables_.back().get();
  }

  bool InWeights(int buffer) const { return buffers_.IsConstant(buffer); }

  // Makes the table of a launch with many buffers (kernel_abi.md).
  absl::StatusOr<cl_mem> PlacesOf(const Launch& launch, int64_t iteration) {
    std::vector<cl_long>& places = places_.emplace_back();
    for (const int buffer : launch.buffers) {
      places.push_back(InWeights(buffer) ? 1 : 0);
      places.push_back(OffsetAt(buffer, iteration));
    }
    return MakeTable(places);
  }

  absl::Status Upload(int buffer, const void* from, int64_t iteration = 0) {
    const auto bytes = static_cast<size_t>(program_->buffers[buffer].size_bytes);
    if (bytes == 0 || (shared_ && from == HostOf(buffer, iteration))) return absl::OkStatus();
    if (shared_) {
      std::memcpy(HostOf(buffer, iteration), from, bytes);
      return absl::OkStatus();
    }
    return ToStatus(context_->api().clEnqueueWriteBuffer(context_->queue(), memory_.get(), CL_FALSE,
                                                         static_cast<size_t>(OffsetAt(buffer, iteration)), bytes, from,
                                                         0, nullptr, nullptr),
                    "copying an input to the device");
  }

  // Reads after the commands that were enqueued before. On a device that shares memory, the caller must wait for those
  // commands first.
  absl::Status Download(int buffer, int64_t size_bytes, void* to, int64_t iteration = 0) {
    const bool constant = buffers_.IsConstant(buffer);
    const char* const from = HostOf(buffer, iteration);
    if (size_bytes == 0 || ((shared_ || constant) && to == from)) return absl::OkStatus();
    if (shared_ || constant) {
      std::memcpy(to, from, static_cast<size_t>(size_bytes));
      return absl::OkStatus();
    }
    return ToStatus(context_->api().clEnqueueReadBuffer(context_->queue(), memory_.get(), CL_TRUE,
                                                        static_cast<size_t>(OffsetAt(buffer, iteration)),
                                                        static_cast<size_t>(size_bytes), to, 0, nullptr, nullptr),
                    "copying an output from the device");
  }

  absl::Status Enqueue(std::vector<Event>* events) {
    for (size_t l = 0; l < launches_.size(); ++l) {
      const Launch& launch = program_->launches[launches_[l].at.launch];
      const std::string name = absl::StrCat("launch ", launches_[l].at.launch, " '", launch.label, "'");
      if (program_->kernels[launch.kernel].on_host) RETURN_IF_ERROR(Annotate(RunOnHost(l, events != nullptr), name));
      for (const BoundPhase& phase : launches_[l].phases) {
        cl_event event = nullptr;
        RETURN_IF_ERROR(
            Annotate(context_->Launch(phase.kernel, phase.tasks, events != nullptr ? &event : nullptr), name));
        if (events != nullptr) events->push_back({static_cast<int>(l), event});
      }
    }
    return absl::OkStatus();
  }

  // Runs a launch on the CPU: copies its buffers from the device, and the written ones back.
  absl::Status RunOnHost(size_t l, bool timed) {
    using Clock = std::chrono::steady_clock;
    const auto [number, iteration] = launches_[l].at;
    const Launch& launch = program_->launches[number];
    if (shared_ || timed) RETURN_IF_ERROR(context_->Finish());
    const Clock::time_point start = timed ? Clock::now() : Clock::time_point();
    if (!shared_) {
      for (const int buffer : launch.buffers) {
        RETURN_IF_ERROR(Download(buffer, program_->buffers[buffer].size_bytes, HostOf(buffer, iteration), iteration));
      }
    }
    host_launches_.Run(number, iteration);
    for (const int argument : program_->kernels[launch.kernel].writes) {
      const int buffer = launch.buffers[argument];
      RETURN_IF_ERROR(Upload(buffer, HostOf(buffer, iteration), iteration));
    }
    if (!timed) return absl::OkStatus();
    RETURN_IF_ERROR(context_->Finish());
    host_ns_[l] = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
    return absl::OkStatus();
  }

  // A launch's latency runs from the time it was enqueued, or from the end of the launch before it if that is later, to
  // its own end: the time that it adds to a run, the cost of launching included. That of one that repeats is the sum of
  // its iterations.
  absl::Status Report(const std::vector<Event>& events, const LaunchObserver& observer) {
    auto time = [&](const Event& event, cl_profiling_info what, cl_ulong* ns) {
      return ToStatus(context_->api().clGetEventProfilingInfo(event.event, what, sizeof *ns, ns, nullptr),
                      "reading a launch's profile");
    };
    size_t e = 0;
    cl_ulong end = 0;
    std::vector<int64_t> latencies_ns(program_->launches.size(), 0);
    for (size_t l = 0; l < launches_.size(); ++l) {
      cl_ulong begin = end;
      for (size_t p = 0; p < launches_[l].phases.size(); ++p, ++e) {
        cl_ulong queued = 0;
        RETURN_IF_ERROR(time(events[e], CL_PROFILING_COMMAND_QUEUED, &queued));
        if (p == 0) begin = std::max(begin, queued);
        RETURN_IF_ERROR(time(events[e], CL_PROFILING_COMMAND_END, &end));
      }
      latencies_ns[launches_[l].at.launch] += host_ns_[l] + static_cast<int64_t>(std::max(begin, end) - begin);
    }
    for (size_t l = 0; l < latencies_ns.size(); ++l) observer(static_cast<int>(l), latencies_ns[l]);
    return absl::OkStatus();
  }

  std::shared_ptr<opencl::Context> context_;
  std::shared_ptr<const BundleReader> bundle_;
  const fusion::ManifestProgram* program_ = nullptr;
  std::map<std::string, opencl::ClProgram> programs_;  // by kernel file
  MirroredBuffers buffers_;
  bool shared_ = false;
  opencl::Buffer memory_, weights_, tickets_;
  std::vector<std::vector<cl_long>> places_;  // contents of tables_
  std::vector<opencl::Buffer> tables_;
  std::vector<BoundLaunch> launches_;  // of a run, in order
  CpuLaunches host_launches_;
  std::vector<int64_t> host_ns_;  // parallel to launches_, of the last observed run
};

class OpenClDevice : public Device {
 public:
  absl::Status CheckSupported(const Manifest& manifest) const override {
    if (!manifest.host_isa.empty()) RETURN_IF_ERROR(CheckIsa(manifest.host_isa));
    return opencl::FindDevices().status();
  }

  absl::StatusOr<std::unique_ptr<Executable>> Load(std::shared_ptr<const BundleReader> bundle,
                                                   const LoadOptions& options) const override {
    ASSIGN_OR_RETURN(std::shared_ptr<opencl::Context> context, opencl::Context::Create());
    return OpenClExecutable::Create(std::move(context), std::move(bundle), options);
  }
};

}  // namespace

std::unique_ptr<Device> MakeOpenClDevice() { return std::make_unique<OpenClDevice>(); }

}  // namespace fusion

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>

#include "runtime/base/status_macros.h"
#include "runtime/devices/cpu/thread_pool.h"
#include "runtime/loader/fusion_runtime.h"
#include "runtime/loader/session.h"

struct fusion_bundle {
  std::shared_ptr<const fusion::Bundle> bundle;  // shared with its sessions, which may outlive it
  std::vector<std::string> names;                // of its specialisations
};

struct fusion_pool {
  std::shared_ptr<fusion::ThreadPool> pool;  // shared with its sessions, which may outlive it
};

struct fusion_session {
  std::unique_ptr<fusion::Session> session;
  bool profiling = false;
  std::vector<int64_t> latencies_ns;
};

namespace {

using fusion::Binding;
using fusion::DType;

static_assert(static_cast<int>(DType::kF32) == FUSION_F32 && static_cast<int>(DType::kBF16) == FUSION_BF16 &&
              static_cast<int>(DType::kI8) == FUSION_I8 && static_cast<int>(DType::kI64) == FUSION_I64 &&
              static_cast<int>(DType::kU64) == FUSION_U64 && static_cast<int>(DType::kBool) == FUSION_BOOL &&
              static_cast<int>(DType::kI4) == FUSION_I4 && static_cast<int>(DType::kF8E4M3FN) == FUSION_F8E4M3FN &&
              static_cast<int>(DType::kF4E2M1) == FUSION_F4E2M1);

// The message of fusion_last_error, as with C's errno. It is the only mutable state outside of an object.
thread_local std::string last_error;

fusion_status Fail(const absl::Status& status) {
  last_error = std::string(status.message());
  return static_cast<fusion_status>(status.code());
}

// No exception leaves the library; the standard containers may throw when memory is exhausted.
template <typename Body>
fusion_status Guard(Body body) {
  try {
    const absl::Status status = body();
    return status.ok() ? FUSION_OK : Fail(status);
  } catch (const std::bad_alloc&) {
    return Fail(absl::ResourceExhaustedError("out of memory"));
  } catch (const std::exception& error) {
    return Fail(absl::InternalError(error.what()));
  }
}

const Binding* Input(const fusion_bundle* bundle, size_t index) {
  if (bundle == nullptr || index >= bundle->bundle->manifest().inputs.size()) return nullptr;
  return &bundle->bundle->manifest().inputs[index];
}
const Binding* Output(const fusion_bundle* bundle, size_t index) {
  if (bundle == nullptr || index >= bundle->bundle->manifest().outputs.size()) return nullptr;
  return &bundle->bundle->manifest().outputs[index];
}
const char* Name(const Binding* binding) { return binding == nullptr ? nullptr : binding->name.c_str(); }
int DTypeOf(const Binding* binding) { return binding == nullptr ? -1 : static_cast<int>(binding->dtype); }
int Rank(const Binding* binding) { return binding == nullptr ? -1 : static_cast<int>(binding->shape.size()); }
const int64_t* Extents(const Binding* binding) { return binding == nullptr ? nullptr : binding->shape.data(); }
size_t Bytes(const Binding* binding) {
  return binding == nullptr ? 0 : fusion::NumElements(binding->shape) * fusion::DTypeBytes(binding->dtype);
}

}  // namespace

const char* fusion_last_error(void) { return last_error.c_str(); }

static absl::StatusOr<fusion_bundle*> OpenBundle(const std::string& path, const char* keys_path) {
  ASSIGN_OR_RETURN(std::shared_ptr<const fusion::Bundle> opened,
                   keys_path == nullptr ? fusion::Bundle::Open(path) : fusion::Bundle::OpenSigned(path, keys_path));
  std::vector<std::string> names;
  for (size_t p = 0; p < opened->manifest().program_count(); ++p) {
    names.push_back(fusion::ProgramName(opened->manifest().program(p)));
  }
  return new fusion_bundle{std::move(opened), std::move(names)};
}

fusion_status fusion_bundle_open(const char* path, fusion_bundle** bundle) {
  return Guard([&]() -> absl::Status {
    if (path == nullptr || bundle == nullptr) return absl::InvalidArgumentError("fusion_bundle_open: null argument");
    *bundle = nullptr;
    const char* required = std::getenv("FUSION_REQUIRE_KEY");
    ASSIGN_OR_RETURN(*bundle, OpenBundle(path, required != nullptr && *required != '\0' ? required : nullptr));
    return absl::OkStatus();
  });
}

fusion_status fusion_bundle_open_signed(const char* path, const char* keys_path, fusion_bundle** bundle) {
  return Guard([&]() -> absl::Status {
    if (path == nullptr || keys_path == nullptr || bundle == nullptr) {
      return absl::InvalidArgumentError("fusion_bundle_open_signed: null argument");
    }
    *bundle = nullptr;
    ASSIGN_OR_RETURN(*bundle, OpenBundle(path, keys_path));
    return absl::OkStatus();
  });
}

void fusion_bundle_close(fusion_bundle* bundle) { delete bundle; }

const char* fusion_bundle_describe(const fusion_bundle* bundle) {
  return bundle == nullptr ? nullptr : bundle->bundle->reader()->manifest_json().c_str();
}

size_t fusion_bundle_input_count(const fusion_bundle* b) {
  return b == nullptr ? 0 : b->bundle->manifest().inputs.size();
}
const char* fusion_bundle_input_name(const fusion_bundle* b, size_t i) { return Name(Input(b, i)); }
int fusion_bundle_input_dtype(const fusion_bundle* b, size_t i) { return DTypeOf(Input(b, i)); }
int fusion_bundle_input_rank(const fusion_bundle* b, size_t i) { return Rank(Input(b, i)); }
const int64_t* fusion_bundle_input_shape(const fusion_bundle* b, size_t i) { return Extents(Input(b, i)); }
size_t fusion_bundle_input_bytes(const fusion_bundle* b, size_t i) { return Bytes(Input(b, i)); }

size_t fusion_bundle_output_count(const fusion_bundle* b) {
  return b == nullptr ? 0 : b->bundle->manifest().outputs.size();
}
const char* fusion_bundle_output_name(const fusion_bundle* b, size_t i) { return Name(Output(b, i)); }
int fusion_bundle_output_dtype(const fusion_bundle* b, size_t i) { return DTypeOf(Output(b, i)); }
int fusion_bundle_output_rank(const fusion_bundle* b, size_t i) { return Rank(Output(b, i)); }
const int64_t* fusion_bundle_output_shape(const fusion_bundle* b, size_t i) { return Extents(Output(b, i)); }
size_t fusion_bundle_output_bytes(const fusion_bundle* b, size_t i) { return Bytes(Output(b, i)); }

size_t fusion_bundle_specialisation_count(const fusion_bundle* b) {
  return b == nullptr ? 0 : b->bundle->manifest().program_count();
}
const char* fusion_bundle_specialisation_name(const fusion_bundle* b, size_t i) {
  return i < fusion_bundle_specialisation_count(b) ? b->names[i].c_str() : nullptr;
}

size_t fusion_bundle_launch_count(const fusion_bundle* b) {
  return b == nullptr ? 0 : b->bundle->manifest().launches.size();
}
const char* fusion_bundle_launch_label(const fusion_bundle* b, size_t i) {
  return i < fusion_bundle_launch_count(b) ? b->bundle->manifest().launches[i].label.c_str() : nullptr;
}

fusion_status fusion_pool_create(int threads, fusion_pool** pool) {
  return Guard([&]() -> absl::Status {
    if (pool == nullptr) return absl::InvalidArgumentError("fusion_pool_create: null argument");
    *pool = nullptr;
    ASSIGN_OR_RETURN(std::shared_ptr<fusion::ThreadPool> created, fusion::ThreadPool::Create(threads));
    *pool = new fusion_pool{std::move(created)};
    return absl::OkStatus();
  });
}

void fusion_pool_close(fusion_pool* pool) { delete pool; }

fusion_status fusion_session_create(const fusion_bundle* bundle, int threads, fusion_session** session) {
  return fusion_session_create_on(bundle, nullptr, threads, session);
}

fusion_status fusion_session_create_on(const fusion_bundle* bundle, fusion_pool* pool, int threads,
                                       fusion_session** session) {
  return Guard([&]() -> absl::Status {
    if (bundle == nullptr || session == nullptr) {
      return absl::InvalidArgumentError("fusion_session_create: null argument");
    }
    *session = nullptr;
    auto created = std::make_unique<fusion_session>();
    ASSIGN_OR_RETURN(created->session,
                     fusion::Session::Create(bundle->bundle, threads, pool == nullptr ? nullptr : pool->pool));
    *session = created.release();
    return absl::OkStatus();
  });
}

void fusion_session_close(fusion_session* session) { delete session; }

fusion_status fusion_session_select(fusion_session* session, const int64_t* const* shapes) {
  return Guard([&]() -> absl::Status {
    if (session == nullptr || shapes == nullptr) {
      return absl::InvalidArgumentError("fusion_session_select: null argument");
    }
    const std::vector<Binding>& inputs = session->session->manifest().inputs;
    std::vector<fusion::Shape> given;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const size_t rank = inputs[i].shape.size();
      if (shapes[i] == nullptr && rank > 0) return absl::InvalidArgumentError("fusion_session_select: null shape");
      given.emplace_back(shapes[i], shapes[i] + rank);
    }
    RETURN_IF_ERROR(session->session->Select(given));
    session->latencies_ns.assign(session->session->program().launches.size(), -1);
    return absl::OkStatus();
  });
}

size_t fusion_session_specialisation(const fusion_session* session) {
  return session == nullptr ? 0 : session->session->selected();
}

size_t fusion_session_input_bytes(const fusion_session* session, size_t index) {
  if (session == nullptr || index >= session->session->program().inputs.size()) return 0;
  return session->session->input_bytes(static_cast<int>(index));
}

size_t fusion_session_output_bytes(const fusion_session* session, size_t index) {
  if (session == nullptr || index >= session->session->program().outputs.size()) return 0;
  return Bytes(&session->session->program().outputs[index]);
}

fusion_status fusion_run(fusion_session* session, const void* const* inputs, void* const* outputs) {
  return Guard([&]() -> absl::Status {
    if (session == nullptr) return absl::InvalidArgumentError("fusion_run: null session");
    const fusion::Manifest& manifest = session->session->manifest();
    if ((inputs == nullptr && !manifest.inputs.empty()) || (outputs == nullptr && !manifest.outputs.empty())) {
      return absl::InvalidArgumentError("fusion_run: null argument");
    }
    fusion::LaunchObserver observer;
    if (session->profiling) {
      observer = [session](int launch, int64_t latency_ns) { session->latencies_ns[launch] = latency_ns; };
    }
    return session->session->RunRaw({inputs, manifest.inputs.size()}, {outputs, manifest.outputs.size()}, observer);
  });
}

fusion_status fusion_session_output_shape(const fusion_session* session, size_t index, int64_t* extents) {
  return Guard([&]() -> absl::Status {
    if (session == nullptr || index >= session->session->manifest().outputs.size()) {
      return absl::InvalidArgumentError("fusion_session_output_shape: no such output");
    }
    const fusion::Shape shape = session->session->output_shape(static_cast<int>(index));
    if (extents == nullptr && !shape.empty()) {
      return absl::InvalidArgumentError("fusion_session_output_shape: null argument");
    }
    std::copy(shape.begin(), shape.end(), extents);
    return absl::OkStatus();
  });
}

void* fusion_session_input(fusion_session* session, size_t index) {
  if (session == nullptr || index >= session->session->manifest().inputs.size()) return nullptr;
  return session->session->input(static_cast<int>(index));
}

void* fusion_session_output(fusion_session* session, size_t index) {
  if (session == nullptr || index >= session->session->manifest().outputs.size()) return nullptr;
  return const_cast<void*>(session->session->output(static_cast<int>(index)));
}

void fusion_session_set_profiling(fusion_session* session, int on) {
  if (session == nullptr) return;
  session->profiling = on != 0;
  session->latencies_ns.assign(session->session->program().launches.size(), -1);
}

int64_t fusion_session_latency_ns(const fusion_session* session, size_t launch) {
  return session != nullptr && launch < session->latencies_ns.size() ? session->latencies_ns[launch] : -1;
}

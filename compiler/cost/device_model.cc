#include "compiler/cost/device_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion {

using nlohmann::json;

std::string DeviceModel::Fingerprint() const {
  std::string text = absl::StrCat(kind, "/", name, "/", isa, "/", march, "/units=", parallel_units);
  if (work_group_size != 1) absl::StrAppend(&text, "/work_group_size=", work_group_size);
  for (const MatrixProduct& p : matrix_products) {
    absl::StrAppend(&text, "/", p.operands, "=", p.rows, "x", p.columns, "x", p.depth, "by", p.work_items,
                    p.from_memory ? "from_memory" : "");
  }
  if (async_copies) absl::StrAppend(&text, "/async_copies");
  if (!product_library.empty()) absl::StrAppend(&text, "/", product_library);
  if (!convolution_library.empty()) absl::StrAppend(&text, "/", convolution_library);
  if (persistent_groups != 0) absl::StrAppend(&text, "/persistent_groups=", persistent_groups);
  if (kind != "cpu" && host_isa != DeviceModel().host_isa) absl::StrAppend(&text, "/host=", host_isa);
  if (line_bytes != DeviceModel().line_bytes) absl::StrAppend(&text, "/line=", line_bytes);
  for (const MemoryLevel& level : memory) absl::StrAppend(&text, "/", level.name, "=", level.size_bytes);
  return text;
}

namespace {

// The nearest level that holds so many bytes and whose rate is known; null where none does.
const MemoryLevel* LevelThatHolds(const std::vector<MemoryLevel>& memory, double footprint_bytes) {
  constexpr double kServedShare = 0.75;
  for (const MemoryLevel& level : memory) {
    const bool holds = level.size_bytes == 0 || footprint_bytes <= kServedShare * static_cast<double>(level.size_bytes);
    if (holds && level.bandwidth_bytes_per_s > 0) return &level;
  }
  return nullptr;
}

}  // namespace

double DeviceModel::CopyBandwidth(double footprint_bytes) const {
  if (const MemoryLevel* level = LevelThatHolds(memory, footprint_bytes)) return level->bandwidth_bytes_per_s;
  return memory.empty() ? 1e10 : std::max(1.0, memory.back().bandwidth_bytes_per_s);
}

double DeviceModel::ReadBandwidth(double footprint_bytes) const {
  const MemoryLevel* level = LevelThatHolds(memory, footprint_bytes);
  const bool shared = level != nullptr && (level->shared || level->size_bytes == 0);
  return (shared ? 1 : 2) * CopyBandwidth(footprint_bytes);
}

double DeviceModel::BarrierSeconds(int threads) const {
  for (const ThreadsBarrier& barrier : fewer_threads) {
    if (threads <= barrier.threads && threads < parallel_units) return barrier.seconds;
  }
  return barrier_s;
}

DeviceModel DeviceModel::WithRatesOf(const DeviceModel& other) const {
  DeviceModel model = *this;
  model.fma_f32_flops_per_s = other.fma_f32_flops_per_s;
  model.special_cycles_ratio = other.special_cycles_ratio;
  model.launch_s = other.launch_s;
  model.barrier_s = other.barrier_s;
  model.fewer_threads = other.fewer_threads;
  model.lines_in_flight = other.lines_in_flight;
  model.ports = other.ports;
  for (size_t i = 0; i < std::min(matrix_products.size(), other.matrix_products.size()); ++i) {
    model.matrix_products[i].flops_per_s = other.matrix_products[i].flops_per_s;
  }
  for (size_t i = 0; i < std::min(memory.size(), other.memory.size()); ++i) {
    model.memory[i].bandwidth_bytes_per_s = other.memory[i].bandwidth_bytes_per_s;
  }
  return model;
}

namespace {

// Calls `visit` with the name and the value of each figure of the port model.
template <typename Ports, typename Visit>
void VisitPorts(Ports& ports, const Visit& visit) {
  visit("fmas_per_cycle", ports.fmas_per_cycle);
  visit("loads_per_cycle", ports.loads_per_cycle);
  visit("step_cycles", ports.step_cycles);
  visit("stream_cycles", ports.stream_cycles);
  visit("scatter_cycles", ports.scatter_cycles);
  visit("pack_cycles", ports.pack_cycles);
  visit("transpose_cycles", ports.transpose_cycles);
  visit("strided_broadcast", ports.strided_broadcast);
  visit("near_ways", ports.near_ways);
}

json PortsToJson(const PortModel& ports) {
  json object = json::object();
  VisitPorts(ports, [&](const char* name, double value) { object[name] = value; });
  return object;
}

}  // namespace

std::string DeviceModelToJson(const DeviceModel& m) {
  json memory = json::array();
  for (const MemoryLevel& level : m.memory) {
    memory.push_back({{"name", level.name},
                      {"size_bytes", level.size_bytes},
                      {"bandwidth_bytes_per_s", level.bandwidth_bytes_per_s},
                      {"shared", level.shared}});
  }
  json products = json::array();
  for (const MatrixProduct& p : m.matrix_products) {
    products.push_back({{"operands", p.operands},
                        {"rows", p.rows},
                        {"columns", p.columns},
                        {"depth", p.depth},
                        {"work_items", p.work_items},
                        {"flops_per_s", p.flops_per_s},
                        {"from_memory", p.from_memory}});
  }
  json fewer_threads = json::array();
  for (const ThreadsBarrier& barrier : m.fewer_threads) {
    fewer_threads.push_back({{"threads", barrier.threads}, {"barrier_s", barrier.seconds}});
  }
  const UnitLimits& limits = m.unit_limits;
  const json unit_limits{{"registers", limits.registers},
                         {"shared_bytes", limits.shared_bytes},
                         {"reserved_bytes", limits.reserved_bytes},
                         {"work_items", limits.work_items},
                         {"work_groups", limits.work_groups}};
  return json{{"kind", m.kind},
              {"name", m.name},
              {"isa", m.isa},
              {"march", m.march},
              {"toolchain", m.toolchain},
              {"vector_bytes", m.vector_bytes},
              {"vector_registers", m.vector_registers},
              {"parallel_units", m.parallel_units},
              {"work_group_size", m.work_group_size},
              {"async_copies", m.async_copies},
              {"matrix_products", products},
              {"persistent_groups", m.persistent_groups},
              {"unit_limits", unit_limits},
              {"product_library", m.product_library},
              {"convolution_library", m.convolution_library},
              {"byte_dots", m.byte_dots},
              {"fma_f32_flops_per_s", m.fma_f32_flops_per_s},
              {"special_cycles_ratio", m.special_cycles_ratio},
              {"launch_s", m.launch_s},
              {"barrier_s", m.barrier_s},
              {"fewer_threads", fewer_threads},
              {"host_isa", m.host_isa},
              {"write_allocate", m.write_allocate},
              {"memory", memory},
              {"line_bytes", m.line_bytes},
              {"lines_in_flight", m.lines_in_flight},
              {"ports", PortsToJson(m.ports)}}
      .dump(2);
}

namespace {

// Refuses fields that no kernel can be made for.
absl::Status CheckDeviceModel(const DeviceModel& m) {
  if (m.vector_bytes < 4 || m.vector_bytes > 256 || (m.vector_bytes & (m.vector_bytes - 1)) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("device model: vector_bytes ", m.vector_bytes, " is no power of two from 4 to 256"));
  }
  if (m.work_group_size < 1 || m.work_group_size > 1024 || (m.work_group_size & (m.work_group_size - 1)) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("device model: work_group_size ", m.work_group_size, " is no power of two from 1 to 1024"));
  }
  for (const MatrixProduct& p : m.matrix_products) {
    if (p.rows < 1 || p.columns < 1 || p.depth < 1 || p.work_items < 2 || p.rows * p.columns % p.work_items != 0 ||
        !(p.flops_per_s > 0)) {
      return absl::InvalidArgumentError(absl::StrCat("device model: a matrix product of ", p.rows, "x", p.columns, "x",
                                                     p.depth, " by ", p.work_items, " work-items at ", p.flops_per_s,
                                                     " flops_per_s is none"));
    }
  }
  if (m.persistent_groups < 0 || m.persistent_groups > 65536) {
    return absl::InvalidArgumentError(
        absl::StrCat("device model: persistent_groups ", m.persistent_groups, " is not from 0 to 65536"));
  }
  if (m.persistent_groups > 0 && m.kind != "opencl" && m.kind != "cuda") {
    return absl::InvalidArgumentError(absl::StrCat("device model: persistent_groups of kind '", m.kind,
                                                   "', only kernels of opencl and cuda have them"));
  }
  if (m.persistent_groups > 0 && m.kind == "opencl" && m.work_group_size > 1) {
    return absl::InvalidArgumentError(absl::StrCat("device model: persistent_groups with work_group_size ",
                                                   m.work_group_size,
                                                   ", only groups of one work-item stay on devices of opencl"));
  }
  const UnitLimits& limits = m.unit_limits;
  const bool limited = limits.registers != 0 || limits.shared_bytes != 0 || limits.reserved_bytes != 0 ||
                       limits.work_items != 0 || limits.work_groups != 0;
  if (limited && (!limits.Known() || limits.reserved_bytes < 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "device model: unit_limits has ", limits.registers, " registers, ", limits.shared_bytes, " shared_bytes, ",
        limits.reserved_bytes, " reserved_bytes, ", limits.work_items, " work_items and ", limits.work_groups,
        " work_groups; all must be above 0 (reserved_bytes not below), or all 0"));
  }
  for (const auto& [field, library] :
       {std::pair("product_library", &m.product_library), std::pair("convolution_library", &m.convolution_library)}) {
    if (library->empty() || m.kind == "cuda") continue;
    return absl::InvalidArgumentError(absl::StrCat("device model: ", field, " '", *library, "' of kind '", m.kind,
                                                   "', only bundles for cuda call libraries"));
  }
  int threads_before = 0;
  for (const ThreadsBarrier& barrier : m.fewer_threads) {
    if (barrier.threads <= threads_before || !(barrier.seconds >= 0)) {
      return absl::InvalidArgumentError(absl::StrCat("device model: fewer_threads has a barrier of ", barrier.seconds,
                                                     " s for ", barrier.threads, " threads behind one for ",
                                                     threads_before, "; threads must ascend from 1"));
    }
    threads_before = barrier.threads;
  }
  if (m.host_isa != "avx2" && m.host_isa != "neon") {
    return absl::InvalidArgumentError(
        absl::StrCat("device model: host_isa '", m.host_isa, "' is neither avx2 nor neon"));
  }
  if (m.line_bytes < 16 || m.line_bytes > 1024 || (m.line_bytes & (m.line_bytes - 1)) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("device model: line_bytes ", m.line_bytes, " is no power of two from 16 to 1024"));
  }
  if (m.lines_in_flight < 1 || m.lines_in_flight > 1024) {
    return absl::InvalidArgumentError(
        absl::StrCat("device model: lines_in_flight ", m.lines_in_flight, " is not from 1 to 1024"));
  }
  absl::Status ports;
  VisitPorts(m.ports, [&](const char* name, double value) {
    if (!(value > 0 && value < 1e6)) {
      ports = absl::InvalidArgumentError(
          absl::StrCat("device model: ports.", name, " ", value, " is not above 0 and below 1e6"));
    }
  });
  RETURN_IF_ERROR(ports);
  if (m.vector_registers < 8 || m.parallel_units < 1 || !(m.fma_f32_flops_per_s > 0)) {
    return absl::InvalidArgumentError(
        "device model: vector_registers, parallel_units or fma_f32_flops_per_s out of range");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DeviceModel> DeviceModelFromJson(const std::string& text) {
  const json j = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!j.is_object()) return absl::InvalidArgumentError("device model: not a JSON object");
  DeviceModel m;
  try {
    m.kind = j.value("kind", m.kind);
    m.name = j.value("name", m.name);
    m.isa = j.value("isa", m.isa);
    m.march = j.value("march", m.march);
    m.toolchain = j.value("toolchain", m.toolchain);
    m.vector_bytes = j.value("vector_bytes", m.vector_bytes);
    m.vector_registers = j.value("vector_registers", m.vector_registers);
    m.parallel_units = j.value("parallel_units", m.parallel_units);
    m.work_group_size = j.value("work_group_size", j.value("task_lanes", m.work_group_size));  // a former key
    m.async_copies = j.value("async_copies", m.async_copies);
    for (const json& p : j.value("matrix_products", json::array())) {
      m.matrix_products.push_back({p.value("operands", ""), p.value("rows", 0), p.value("columns", 0),
                                   p.value("depth", 0), p.value("work_items", 0), p.value("flops_per_s", 0.0),
                                   p.value("from_memory", false)});
    }
    m.persistent_groups =
        j.value("persistent_groups", j.value("resident_groups", m.persistent_groups));  // a former key
    const json limits = j.value("unit_limits", json::object());
    m.unit_limits = {limits.value("registers", int64_t{0}), limits.value("shared_bytes", int64_t{0}),
                     limits.value("reserved_bytes", int64_t{0}), limits.value("work_items", 0),
                     limits.value("work_groups", 0)};
    m.product_library = j.value("product_library", m.product_library);
    m.convolution_library = j.value("convolution_library", m.convolution_library);
    m.byte_dots = j.value("byte_dots", m.byte_dots);
    m.fma_f32_flops_per_s = j.value("fma_f32_flops_per_s", m.fma_f32_flops_per_s);
    m.special_cycles_ratio = j.value("special_cycles_ratio", m.special_cycles_ratio);
    m.launch_s = j.value("launch_s", m.launch_s);
    m.barrier_s = j.value("barrier_s", m.barrier_s);
    for (const json& barrier : j.value("fewer_threads", json::array())) {
      m.fewer_threads.push_back({barrier.value("threads", 0), barrier.value("barrier_s", 0.0)});
    }
    m.host_isa = j.value("host_isa", m.host_isa);
    m.write_allocate = j.value("write_allocate", m.write_allocate);
    for (const json& level : j.value("memory", json::array())) {
      m.memory.push_back({level.value("name", ""), level.value("size_bytes", int64_t{0}),
                          level.value("bandwidth_bytes_per_s", 0.0), level.value("shared", false)});
    }
    m.line_bytes = j.value("line_bytes", m.line_bytes);
    m.lines_in_flight = j.value("lines_in_flight", m.lines_in_flight);
    const json ports = j.value("ports", json::object());
    VisitPorts(m.ports, [&](const char* name, double& value) { value = ports.value(name, value); });
  } catch (const json::exception& e) {
    return absl::InvalidArgumentError(absl::StrCat("device model: ", e.what()));
  }
  RETURN_IF_ERROR(CheckDeviceModel(m));
  return m;
}

}  // namespace fusion

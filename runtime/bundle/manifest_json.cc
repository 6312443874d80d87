#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/bundle/json_fields.h"
#include "runtime/bundle/manifest.h"

namespace fusion {
namespace {

constexpr Buffer::Kind kKinds[] = {Buffer::Kind::kInput, Buffer::Kind::kOutput, Buffer::Kind::kConstant,
                                   Buffer::Kind::kArena};

Json BindingsToJson(const std::vector<Binding>& bindings) {
  Json list = Json::array();
  for (const Binding& binding : bindings) {
    list.push_back({{"name", binding.name},
                    {"dtype", DTypeName(binding.dtype)},
                    {"shape", binding.shape},
                    {"buffer", binding.buffer}});
    if (!binding.extents.empty()) list.back()["extents"] = binding.extents;
    if (!binding.symbols.empty()) list.back()["symbols"] = binding.symbols;
  }
  return list;
}

Json BuffersToJson(const std::vector<Buffer>& buffers) {
  Json list = Json::array();
  for (const Buffer& buffer : buffers) {
    list.push_back({{"kind", BufferKindName(buffer.kind)},
                    {"name", buffer.name},
                    {"dtype", DTypeName(buffer.dtype)},
                    {"shape", buffer.shape},
                    {"size_bytes", buffer.size_bytes},
                    {"offset", buffer.offset},
                    {"layout", buffer.layout}});
    if (!buffer.steps) continue;
    list.back()["steps"] = {{"repeat", buffer.steps->repeat},
                            {"first", buffer.steps->first},
                            {"by", buffer.steps->by},
                            {"slots", buffer.steps->slots},
                            {"slot_bytes", buffer.steps->slot_bytes}};
  }
  return list;
}

// Calls visit(name, member) for each field.
template <typename Product, typename Visit>
void VisitProduct(Product& product, Visit visit) {
  visit("a", product.a), visit("b", product.b), visit("d", product.d), visit("bias", product.bias);
  visit("m", product.m), visit("n", product.n), visit("depth", product.depth), visit("batches", product.batches);
  visit("a_along_depth", product.a_along_depth), visit("b_along_depth", product.b_along_depth);
  visit("a_pitch", product.a_pitch), visit("b_pitch", product.b_pitch), visit("d_pitch", product.d_pitch);
  visit("a_batch", product.a_batch), visit("b_batch", product.b_batch), visit("d_batch", product.d_batch);
  visit("tf32", product.tf32);
}

template <typename Convolution, typename Visit>
void VisitConvolution(Convolution& c, Visit visit) {
  visit("x", c.x), visit("w", c.w), visit("y", c.y);
  visit("images", c.images), visit("channels", c.channels), visit("results", c.results), visit("groups", c.groups);
  visit("in", c.in), visit("taps", c.taps), visit("out", c.out);
  visit("stride", c.stride), visit("dilation", c.dilation), visit("pad", c.pad);
  visit("x_pitch", c.x_pitch), visit("y_pitch", c.y_pitch);
  visit("channels_last", c.channels_last), visit("tf32", c.tf32);
}

constexpr char kProduct[] = "product", kConvolution[] = "convolution";  // fields of a phase

void LibraryToJson(const LibraryCall& call, Json* phase) {
  if (const auto* product = std::get_if<LibraryProduct>(&call)) {
    Json& json = (*phase)[kProduct];
    VisitProduct(*product, [&](const char* name, const auto& value) { json[name] = value; });
  } else {
    Json& json = (*phase)[kConvolution];
    VisitConvolution(std::get<LibraryConvolution>(call),
                     [&](const char* name, const auto& value) { json[name] = value; });
  }
}

std::optional<LibraryCall> ReadLibrary(const Json& phase, const std::string& path, absl::Status* status) {
  if (!phase.is_object()) return std::nullopt;
  if (phase.contains(kProduct)) {
    Fields fields(phase[kProduct], path + "product.", status);
    LibraryProduct product;
    VisitProduct(product, [&](const char* name, auto& value) { fields.Read(name, &value); });
    return product;
  }
  if (phase.contains(kConvolution)) {
    Fields fields(phase[kConvolution], path + "convolution.", status);
    LibraryConvolution convolution;
    VisitConvolution(convolution, [&](const char* name, auto& value) { fields.Read(name, &value); });
    return convolution;
  }
  return std::nullopt;
}

Json KernelsToJson(const std::vector<ManifestKernel>& kernels) {
  Json list = Json::array();
  for (const ManifestKernel& kernel : kernels) {
    Json phases = Json::array();
    for (const Phase& phase : kernel.phases) {
      phases.push_back({{"symbol", phase.symbol}, {"tasks", phase.tasks}});
      if (phase.library) LibraryToJson(*phase.library, &phases.back());
    }
    list.push_back({{"file", kernel.file}, {"phases", std::move(phases)}, {"source", kernel.source}});
    if (kernel.persistent) list.back()["resident"] = true;
    if (kernel.on_host) list.back()["host"] = {{"writes", kernel.writes}};
  }
  return list;
}

Json LaunchesToJson(const std::vector<Launch>& launches) {
  Json list = Json::array();
  for (const Launch& launch : launches) {
    list.push_back({{"kernel", launch.kernel},
                    {"buffers", launch.buffers},
                    {"label", launch.label},
                    {"nodes", launch.nodes},
                    {"flops", launch.flops},
                    {"bytes", launch.bytes}});
    if (!launch.others.empty()) list.back()["others"] = launch.others;
    if (launch.concurrent) list.back()["concurrent"] = true;
  }
  return list;
}

void ReadBindings(Fields& root, const char* key, absl::Status* status, std::vector<Binding>* out) {
  root.Each(key, [&](const Json& item, const std::string& path) {
    Fields fields(item, path, status);
    Binding& binding = out->emplace_back();
    fields.Read("name", &binding.name);
    fields.Read("dtype", &binding.dtype);
    fields.Read("shape", &binding.shape);
    fields.Read("buffer", &binding.buffer);
    if (item.is_object() && item.contains("extents")) fields.Read("extents", &binding.extents);
    if (item.is_object() && item.contains("symbols")) fields.Read("symbols", &binding.symbols);
  });
}

void ReadBuffer(const Json& item, const std::string& path, absl::Status* status, Buffer* buffer) {
  Fields fields(item, path, status);
  std::string kind;
  fields.Read("kind", &kind);
  bool known = false;
  for (const Buffer::Kind candidate : kKinds) {
    if (kind != BufferKindName(candidate)) continue;
    buffer->kind = candidate;
    known = true;
  }
  if (!known) fields.Fail("kind", "is none of input, output, constant, arena");
  fields.Read("name", &buffer->name);
  fields.Read("dtype", &buffer->dtype);
  fields.Read("shape", &buffer->shape);
  fields.Read("size_bytes", &buffer->size_bytes);
  fields.Read("offset", &buffer->offset);
  fields.Read("layout", &buffer->layout);
  if (!item.is_object() || !item.contains("steps")) return;
  Fields steps(item["steps"], path + "steps.", status);
  BufferSteps& to = buffer->steps.emplace();
  steps.Read("repeat", &to.repeat);
  steps.Read("first", &to.first);
  steps.Read("by", &to.by);
  steps.Read("slots", &to.slots);
  steps.Read("slot_bytes", &to.slot_bytes);
}

void ReadKernel(const Json& item, const std::string& path, absl::Status* status, ManifestKernel* kernel) {
  Fields fields(item, path, status);
  fields.Read("file", &kernel->file);
  fields.Read("source", &kernel->source);
  fields.Each("phases", [&](const Json& item, const std::string& path) {
    Fields phase_fields(item, path, status);
    Phase& phase = kernel->phases.emplace_back();
    phase_fields.Read("symbol", &phase.symbol);
    phase_fields.Read("tasks", &phase.tasks);
    phase.library = ReadLibrary(item, path, status);
  });
  if (item.is_object() && item.contains("resident")) fields.Read("resident", &kernel->persistent);
  if (!item.is_object() || !item.contains("host")) return;
  kernel->on_host = true;
  Fields(item["host"], path + "host.", status).Read("writes", &kernel->writes);
}

void ReadLaunch(const Json& item, Fields fields, Launch* launch) {
  fields.Read("kernel", &launch->kernel);
  fields.Read("buffers", &launch->buffers);
  if (item.is_object() && item.contains("others")) fields.Read("others", &launch->others);
  if (item.is_object() && item.contains("concurrent")) fields.Read("concurrent", &launch->concurrent);
  fields.Read("label", &launch->label);
  fields.Read("nodes", &launch->nodes);
  fields.Read("flops", &launch->flops);
  fields.Read("bytes", &launch->bytes);
}

void AddProgram(const ManifestProgram& program, Json* json) {
  Json& out = *json;
  if (!program.dims.empty()) out["dims"] = program.dims;
  out["inputs"] = BindingsToJson(program.inputs);
  out["outputs"] = BindingsToJson(program.outputs);
  out["arena_bytes"] = program.arena_bytes;
  out["scratch_bytes_per_thread"] = program.scratch_bytes_per_thread;
  out["buffers"] = BuffersToJson(program.buffers);
  out["kernels"] = KernelsToJson(program.kernels);
  out["launches"] = LaunchesToJson(program.launches);
  for (const Repeat& repeat : program.repeats) {
    out["repeats"].push_back({{"first", repeat.first}, {"end", repeat.end}, {"trips", repeat.trips}});
    if (repeat.in_launch) out["repeats"].back()["in_launch"] = true;
  }
  if (program.checks.empty()) return;
  out["checks"] = Json::array();
  for (const RunCheck& check : program.checks) {
    out["checks"].push_back({{"buffer", check.buffer}, {"message", check.message}});
  }
}

void ReadProgram(const Json& json, const std::string& path, absl::Status* status, ManifestProgram* program) {
  Fields fields(json, path, status);
  if (json.is_object() && json.contains("dims")) fields.Read("dims", &program->dims);
  ReadBindings(fields, "inputs", status, &program->inputs);
  ReadBindings(fields, "outputs", status, &program->outputs);
  fields.Read("arena_bytes", &program->arena_bytes);
  fields.Read("scratch_bytes_per_thread", &program->scratch_bytes_per_thread);
  fields.Each("buffers", [&](const Json& item, const std::string& where) {
    ReadBuffer(item, where, status, &program->buffers.emplace_back());
  });
  fields.Each("kernels", [&](const Json& item, const std::string& where) {
    ReadKernel(item, where, status, &program->kernels.emplace_back());
  });
  fields.Each("launches", [&](const Json& item, const std::string& where) {
    ReadLaunch(item, Fields(item, where, status), &program->launches.emplace_back());
  });
  if (json.is_object() && json.contains("repeats")) {
    fields.Each("repeats", [&](const Json& item, const std::string& where) {
      Fields repeat_fields(item, where, status);
      Repeat& repeat = program->repeats.emplace_back();
      repeat_fields.Read("first", &repeat.first);
      repeat_fields.Read("end", &repeat.end);
      repeat_fields.Read("trips", &repeat.trips);
      if (item.is_object() && item.contains("in_launch")) repeat_fields.Read("in_launch", &repeat.in_launch);
    });
  }
  if (!json.is_object() || !json.contains("checks")) return;
  fields.Each("checks", [&](const Json& item, const std::string& where) {
    Fields check_fields(item, where, status);
    RunCheck& check = program->checks.emplace_back();
    check_fields.Read("buffer", &check.buffer);
    check_fields.Read("message", &check.message);
  });
}

Json RepeatedToJson(const std::vector<RepeatedWeight>& repeated) {
  Json list = Json::array();
  for (const RepeatedWeight& weight : repeated) {
    Json forms = Json::array();
    for (const WeightForm& form : weight.forms) {
      Json readers = Json::array();
      for (const WeightReader& reader : form.readers) {
        readers.push_back({{"what", reader.what}, {"launches", reader.launches}, {"refused", reader.refused}});
      }
      forms.push_back({{"form", form.form}, {"bytes", form.bytes}, {"readers", std::move(readers)}});
    }
    list.push_back({{"names", weight.names}, {"bytes", weight.bytes}, {"forms", std::move(forms)}});
  }
  return list;
}

void ReadForm(const Json& json, const std::string& path, absl::Status* status, WeightForm* form) {
  Fields fields(json, path, status);
  fields.Read("form", &form->form);
  fields.Read("bytes", &form->bytes);
  fields.Each("readers", [&](const Json& item, const std::string& reader_path) {
    Fields reader(item, reader_path, status);
    reader.Read("what", &form->readers.emplace_back().what);
    reader.Read("launches", &form->readers.back().launches);
    reader.Read("refused", &form->readers.back().refused);
  });
}

void ReadRepeated(Fields* weights, absl::Status* status, std::vector<RepeatedWeight>* repeated) {
  weights->Each("repeated", [&](const Json& item, const std::string& path) {
    Fields fields(item, path, status);
    RepeatedWeight& weight = repeated->emplace_back();
    fields.Read("names", &weight.names);
    fields.Read("bytes", &weight.bytes);
    fields.Each("forms", [&](const Json& form, const std::string& form_path) {
      ReadForm(form, form_path, status, &weight.forms.emplace_back());
    });
  });
}

}  // namespace

int64_t ManifestProgram::TripsOf(int launch) const {
  for (const Repeat& repeat : repeats) {
    if (!repeat.in_launch && repeat.first <= launch && launch < repeat.end) return repeat.trips;
  }
  return 1;
}

const char* BufferKindName(Buffer::Kind kind) {
  switch (kind) {
    case Buffer::Kind::kInput:
      return "input";
    case Buffer::Kind::kOutput:
      return "output";
    case Buffer::Kind::kConstant:
      return "constant";
    case Buffer::Kind::kArena:
      return "arena";
  }
  return "unknown";
}

std::string DimsInWords(const std::map<std::string, int64_t>& dims, const std::set<std::string>& bounded) {
  return absl::StrJoin(dims, " ", [&](std::string* out, const auto& dim) {
    absl::StrAppend(out, dim.first, bounded.count(dim.first) > 0 ? "≤" : "=", dim.second);
  });
}

std::string ProgramName(const ManifestProgram& program) {
  std::set<std::string> bounded;
  for (const Binding& input : program.inputs) {
    for (size_t d = 0; d < input.extents.size() && d < input.symbols.size(); ++d) {
      if (input.extents[d] >= 0) bounded.insert(input.symbols[d]);
    }
  }
  return DimsInWords(program.dims, bounded);
}

std::string SerializeManifest(const Manifest& manifest) {
  Json json = {{"format", manifest.format},
               {"generator", manifest.generator},
               {"target", manifest.target},
               {"isa", manifest.isa},
               {"march", manifest.march},
               {"model_name", manifest.model_name},
               {"model_sha256", manifest.model_sha256},
               {"options", manifest.options}};
  if (!manifest.host_isa.empty()) json["host_isa"] = manifest.host_isa;
  if (manifest.weights) {
    json["weights"] = {{"model_bytes", manifest.weights->model_bytes},
                       {"bundle_bytes", manifest.weights->bundle_bytes},
                       {"causes", manifest.weights->causes}};
    if (manifest.weights->time_ratio > 0) json["weights"]["time_ratio"] = manifest.weights->time_ratio;
    if (!manifest.weights->repeated.empty()) json["weights"]["repeated"] = RepeatedToJson(manifest.weights->repeated);
  }
  AddProgram(manifest, &json);
  for (const ManifestProgram& other : manifest.others) AddProgram(other, &json["specialisations"].emplace_back());
  json["digests"] = manifest.digests;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::InvalidArgumentError("manifest: not JSON");
  absl::Status status;
  Manifest manifest;
  Fields root(json, "", &status);
  root.Read("format", &manifest.format);
  if (status.ok() && (manifest.format < 1 || manifest.format > kNewestFormat)) {
    return absl::FailedPreconditionError(absl::StrCat("the bundle has format ", manifest.format,
                                                      ", this runtime reads up to format ", kNewestFormat,
                                                      "; use a newer runtime"));
  }
  root.Read("generator", &manifest.generator);
  root.Read("target", &manifest.target);
  root.Read("isa", &manifest.isa);
  root.Read("march", &manifest.march);
  if (json.is_object() && json.contains("host_isa")) root.Read("host_isa", &manifest.host_isa);
  root.Read("model_name", &manifest.model_name);
  root.Read("model_sha256", &manifest.model_sha256);
  root.Read("options", &manifest.options);
  if (json.is_object() && json.contains("weights")) {
    const Json& object = json["weights"];
    Fields fields(object, "weights.", &status);
    WeightsAccount& weights = manifest.weights.emplace();
    fields.Read("model_bytes", &weights.model_bytes);
    fields.Read("bundle_bytes", &weights.bundle_bytes);
    fields.Read("causes", &weights.causes);
    if (object.is_object() && object.contains("time_ratio")) fields.Read("time_ratio", &weights.time_ratio);
    if (object.is_object() && object.contains("repeated")) ReadRepeated(&fields, &status, &weights.repeated);
  }
  ReadProgram(json, "", &status, &manifest);
  if (json.is_object() && json.contains("specialisations")) {
    root.Each("specialisations", [&](const Json& item, const std::string& path) {
      ReadProgram(item, path, &status, &manifest.others.emplace_back());
    });
  }
  root.Read("digests", &manifest.digests);
  RETURN_IF_ERROR(status);
  return manifest;
}

}  // namespace fusion

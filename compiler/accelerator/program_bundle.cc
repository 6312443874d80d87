#include "compiler/accelerator/program_bundle.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/api/generator_version.h"
#include "compiler/bundle/account_weights.h"
#include "compiler/bundle/report.h"
#include "compiler/ecg/run_checks.h"
#include "runtime/base/status_macros.h"
#include "runtime/bundle/bundle_writer.h"
#include "runtime/bundle/safetensors.h"
#include "runtime/devices/dsa/dsa_device.h"
#include "runtime/devices/dsa_sim/exact_integer.h"

namespace fusion::accelerator {
namespace {

std::string ProgramEntry(size_t number) {
  return number == 0 ? "kernels/program.dsa" : absl::StrCat("kernels/program_", number, ".dsa");
}

// A weight of a program's input.
absl::StatusOr<const Tensor*> WeightOf(const ModelOnMachine& model, const graph_turbo::ProgramInput& input) {
  const graph_turbo::Op& op = model.layers.ops[input.op];
  const ecg::ValueId value = op.values[input.input];
  const te::Program& program = op.access.program();
  const std::optional<Tensor>& constant =
      value != ecg::kNone ? model.graph->value(value).constant : program.tensors[program.inputs[input.input]].constant;
  if (!constant) return absl::InternalError(absl::StrCat("the weight ", input.buffer, " has no value"));
  return &*constant;
}

// UNIMPLEMENTED for an integer that the machine does not hold.
absl::Status CheckExact(const ModelOnMachine& model, const graph_turbo::ProgramInput& input, const Tensor& weight) {
  if (IsFloat(weight.dtype())) return absl::OkStatus();
  for (int64_t i = 0; i < weight.num_elements(); ++i) {
    if (dsa::IsExactAsFloat(weight.GetInt(i))) continue;
    return absl::UnimplementedError(absl::StrCat("a constant that ", model.layers.ops[input.op].name,
                                                 " reads: element ", i, " is ", dsa::InexactInWords(weight.GetInt(i))));
  }
  return absl::OkStatus();
}

// An input or output of a program, as a bundle sees it.
struct Argument {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  bool output = false;
  ecg::ValueId value = ecg::kNone;  // kNone: a weight
  const Tensor* weight = nullptr;
};

// In the order of the program's buffers, which is that of the launch.
absl::StatusOr<std::vector<Argument>> ArgumentsOf(const ModelOnMachine& model, const WholeProgram& program) {
  std::map<std::string, Argument> by_buffer;
  const auto of_tensor = [&](int tensor, bool output) {
    const ecg::ValueId id = model.layers.tensors[tensor].value;
    const ecg::Value& value = model.graph->value(id);
    return Argument{value.name, value.type.dtype, value.type.shape, output, id, nullptr};
  };
  for (const graph_turbo::ProgramInput& input : program.inputs) {
    if (input.tensor != graph_turbo::kNone) {
      by_buffer[input.buffer] = of_tensor(input.tensor, /*output=*/false);
      continue;
    }
    ASSIGN_OR_RETURN(const Tensor* weight, WeightOf(model, input));
    RETURN_IF_ERROR(CheckExact(model, input, *weight));
    by_buffer[input.buffer] = {input.buffer, weight->dtype(), weight->shape(), false, ecg::kNone, weight};
  }
  for (const graph_turbo::ProgramOutput& output : program.outputs) {
    by_buffer[output.buffer] = of_tensor(output.tensor, /*output=*/true);
  }
  std::vector<Argument> arguments;
  for (const std::string& buffer : program.arguments) {
    const auto found = by_buffer.find(buffer);
    if (found == by_buffer.end()) return absl::InternalError(absl::StrCat("nobody knows the buffer ", buffer));
    arguments.push_back(found->second);
  }
  return arguments;
}

Buffer BufferOf(const std::string& name, DType dtype, const Shape& shape, Buffer::Kind kind) {
  Buffer buffer;
  buffer.kind = kind;
  buffer.name = name;
  buffer.dtype = dtype;
  buffer.shape = shape;
  buffer.size_bytes = NumElements(shape) * DTypeBytes(dtype);
  buffer.layout = "row-major";
  return buffer;
}

// The kernel and the launch, whose arguments follow.
void AddLaunch(const ModelOnMachine& model, const WholeProgram& program, const std::string& entry,
               const std::string& label, ManifestProgram* manifest) {
  ManifestKernel kernel;
  kernel.file = entry;
  kernel.phases.push_back({program.name, 1});
  manifest->kernels.push_back(std::move(kernel));
  Launch launch;
  launch.label = label;
  launch.flops = model.flops();
  launch.bytes = static_cast<int64_t>(program.timing.ddr_read_bytes + program.timing.ddr_written_bytes);
  manifest->launches.push_back(std::move(launch));
}

absl::Status AddMachine(const dsa::Machine& machine, BundleWriter* writer) {
  return writer->AddEntry(kDsaMachineEntry, dsa::MachineToJson(machine));
}

// The weights of all programs. Equal memory is in the bundle once.
class BundleWeights {
 public:
  size_t Add(const Tensor& weight) {
    const auto [known, fresh] = number_of_.try_emplace({weight.data(), weight.size_bytes()}, list_.size());
    if (fresh) list_.push_back(&weight);
    return known->second;
  }
  const std::vector<const Tensor*>& list() const { return list_; }

 private:
  std::vector<const Tensor*> list_;
  std::map<std::pair<const void*, int64_t>, size_t> number_of_;
};

// One program of the bundle: its values are buffers, once each.
class ProgramLayout {
 public:
  ProgramLayout(const ModelOnMachine& model, BundleWeights* weights) : model_(model), weights_(weights) {}

  absl::Status LayOut(const ProgramInBundle& source, const std::string& entry) {
    const ecg::Graph& graph = *model_.graph;
    program_.dims = source.dims;
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      const ecg::Value& value = graph.value(graph.inputs()[i]);
      program_.inputs.push_back(
          {value.name, value.type.dtype, value.type.shape, BufferOfValue(graph.inputs()[i], Buffer::Kind::kInput)});
      if (!source.input_symbols.empty()) program_.inputs.back().symbols = source.input_symbols[i];
    }
    const WholeProgram& program = source.built->program;
    AddLaunch(model_, program, entry, ProgramInWords(model_, program), &program_);
    for (const ecg::Node& node : graph.nodes()) program_.launches[0].nodes.push_back(node.name);
    ASSIGN_OR_RETURN(const std::vector<Argument> arguments, ArgumentsOf(model_, program));
    for (const Argument& argument : arguments) {
      const int buffer = argument.weight != nullptr ? BufferOfWeight(argument.name, *argument.weight)
                         : argument.output          ? BufferOfValue(argument.value, Buffer::Kind::kOutput)
                                                    : BufferOfValue(argument.value, Buffer::Kind::kInput);
      program_.launches[0].buffers.push_back(buffer);
    }
    for (size_t o = 0; o < graph.outputs().size(); ++o) {
      if (!ecg::IsModelOutput(graph, o)) continue;
      const ecg::ValueId v = graph.outputs()[o];
      const ecg::Value& value = graph.value(v);
      if (buffer_of_.count(v) == 0 && !value.constant && NumElements(value.type.shape) == 0) {
        BufferOfValue(v, Buffer::Kind::kOutput);  // which nobody has to write
      }
      if (buffer_of_.count(v) == 0 && !value.constant) {
        return absl::UnimplementedError(absl::StrCat("no layer makes the output '", graph.output_names()[o], "'"));
      }
      const int buffer = value.constant && buffer_of_.count(v) == 0
                             ? BufferOfWeight(graph.output_names()[o], *value.constant)
                             : buffer_of_.at(v);
      program_.outputs.push_back({graph.output_names()[o], value.type.dtype, value.type.shape, buffer});
    }
    return absl::OkStatus();
  }

  // The offsets of weights are those in the bundle.
  ManifestProgram Take(const std::vector<int64_t>& offsets) {
    for (const auto& [buffer, weight] : constants_) program_.buffers[buffer].offset = offsets[weight];
    return std::move(program_);
  }
  const ManifestProgram& program() const { return program_; }

 private:
  int Add(Buffer buffer) {
    program_.buffers.push_back(std::move(buffer));
    return static_cast<int>(program_.buffers.size()) - 1;
  }
  int BufferOfValue(ecg::ValueId v, Buffer::Kind kind) {
    const auto known = buffer_of_.find(v);
    if (known != buffer_of_.end()) return known->second;
    const ecg::Value& value = model_.graph->value(v);
    return buffer_of_[v] = Add(BufferOf(value.name, value.type.dtype, value.type.shape, kind));
  }
  // Each use of a weight is a buffer.
  int BufferOfWeight(const std::string& name, const Tensor& weight) {
    const int buffer = Add(BufferOf(name, weight.dtype(), weight.shape(), Buffer::Kind::kConstant));
    constants_.emplace_back(buffer, weights_->Add(weight));
    return buffer;
  }

  const ModelOnMachine& model_;
  BundleWeights* const weights_;
  ManifestProgram program_;
  std::map<ecg::ValueId, int> buffer_of_;
  std::vector<std::pair<int, size_t>> constants_;  // a buffer, and its weight
};

// The manifest with all programs; the first is the manifest itself.
void SetPrograms(std::vector<ProgramLayout>* layouts, const std::vector<int64_t>& offsets, Manifest* manifest) {
  static_cast<ManifestProgram&>(*manifest) = (*layouts)[0].Take(offsets);
  for (size_t p = 1; p < layouts->size(); ++p) manifest->others.push_back((*layouts)[p].Take(offsets));
  if (layouts->size() > 1) manifest->format = std::max(manifest->format, 3);
}

}  // namespace

absl::Status WriteProgramBundle(absl::Span<const ProgramInBundle> programs, const Manifest& head,
                                const std::string& path, CompileAccount* account) {
  BundleWeights weights;
  std::vector<ProgramLayout> layouts;
  for (size_t p = 0; p < programs.size(); ++p) {
    RETURN_IF_ERROR(layouts.emplace_back(*programs[p].model, &weights).LayOut(programs[p], ProgramEntry(p)));
  }
  std::vector<WeightInfo> infos;
  std::vector<HeldWeight> held;
  for (const Tensor* weight : weights.list()) {
    const int64_t bytes = weight->size_bytes();
    infos.push_back({absl::StrCat("w", infos.size()), weight->dtype(), weight->shape()});
    held.push_back({weight->data(), bytes, bytes, bytes, bytes});
    account->weight_bytes += bytes;
  }
  ASSIGN_OR_RETURN(const SafetensorsLayout layout, LayOutSafetensors(infos));
  AccountWeights(held, layout.data_bytes, &account->weights);
  Manifest manifest = head;
  if (!infos.empty()) manifest.weights = account->weights;
  ASSIGN_OR_RETURN(std::unique_ptr<BundleWriter> writer, BundleWriter::Create(path));
  for (size_t p = 0; p < programs.size(); ++p) {
    RETURN_IF_ERROR(writer->AddEntry(ProgramEntry(p), programs[p].built->binary));
  }
  RETURN_IF_ERROR(AddMachine(programs[0].model->machine, writer.get()));
  RETURN_IF_ERROR(writer->AddEntry("plan.json", account->plan_json));
  Manifest reported = manifest;
  static_cast<ManifestProgram&>(reported) = layouts[0].program();
  RETURN_IF_ERROR(writer->AddEntry("report.html", ReportHtml(reported, *account)));
  std::vector<int64_t> offsets;
  if (!infos.empty()) {
    ASSIGN_OR_RETURN(offsets, writer->BeginWeights(infos));
    for (const Tensor* weight : weights.list()) {
      RETURN_IF_ERROR(
          writer->AppendWeights({static_cast<const char*>(weight->data()), static_cast<size_t>(weight->size_bytes())}));
    }
  }
  SetPrograms(&layouts, offsets, &manifest);
  return writer->Finish(std::move(manifest));
}

absl::StatusOr<std::string> MeasurementBundle(const ModelOnMachine& model, const WholeProgram& program,
                                              const std::string& binary, const DeviceModel& device,
                                              const std::string& key) {
  Manifest manifest;
  manifest.generator = absl::StrCat("fusion generator ", kGeneratorVersion);
  manifest.target = device.kind;
  manifest.isa = device.isa;
  manifest.march = device.march;
  manifest.options = {{"kernel", key}, {"estimate_ns", absl::StrFormat("%.1f", 1e9 * program.timing.seconds)}};
  AddLaunch(model, program, ProgramEntry(0), "question", &manifest);
  ASSIGN_OR_RETURN(const std::vector<Argument> arguments, ArgumentsOf(model, program));
  for (const Argument& argument : arguments) {
    const int number = static_cast<int>(manifest.buffers.size());
    const Buffer::Kind kind = argument.output ? Buffer::Kind::kOutput : Buffer::Kind::kInput;
    manifest.buffers.push_back(BufferOf(absl::StrCat("a", number), argument.dtype, argument.shape, kind));
    (argument.output ? manifest.outputs : manifest.inputs)
        .push_back({manifest.buffers.back().name, argument.dtype, argument.shape, number});
    manifest.launches[0].buffers.push_back(number);
  }
  std::string folder = (std::filesystem::temp_directory_path() / "fusion-question-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot make a temporary folder '", folder, "'"));
  }
  auto remove = absl::MakeCleanup([&] {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  });
  const std::string path = folder + "/question.fusion";
  ASSIGN_OR_RETURN(std::unique_ptr<BundleWriter> writer, BundleWriter::Create(path));
  RETURN_IF_ERROR(writer->AddEntry(ProgramEntry(0), binary));
  RETURN_IF_ERROR(AddMachine(model.machine, writer.get()));
  RETURN_IF_ERROR(writer->Finish(std::move(manifest), /*durable=*/false));
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

}  // namespace fusion::accelerator

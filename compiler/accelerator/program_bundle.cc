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
#include "runtime/base/status_macros.h"
#include "runtime/bundle/bundle_writer.h"
#include "runtime/bundle/safetensors.h"
#include "runtime/devices/dsa/dsa_device.h"

namespace fusion::accelerator {
namespace {

constexpr char kProgramEntry[] = "kernels/program.dsa";

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
void AddLaunch(const ModelOnMachine& model, const WholeProgram& program, const std::string& label, Manifest* manifest) {
  ManifestKernel kernel;
  kernel.file = kProgramEntry;
  kernel.phases.push_back({program.name, 1});
  manifest->kernels.push_back(std::move(kernel));
  Launch launch;
  launch.label = label;
  launch.flops = model.flops();
  launch.bytes = static_cast<int64_t>(program.timing.ddr_read_bytes + program.timing.ddr_written_bytes);
  manifest->launches.push_back(std::move(launch));
}

absl::Status AddPrograms(const ModelOnMachine& model, const std::string& binary, BundleWriter* writer) {
  RETURN_IF_ERROR(writer->AddEntry(kProgramEntry, binary));
  return writer->AddEntry(kDsaMachineEntry, dsa::MachineToJson(model.machine));
}

// The bundle of a model: its values are buffers, once each.
class ModelBundle {
 public:
  ModelBundle(const ModelOnMachine& model, const Manifest& head) : model_(model), manifest_(head) {}

  absl::Status LayOut(const BuiltProgram& built) {
    const ecg::Graph& graph = *model_.graph;
    for (const ecg::ValueId v : graph.inputs()) {
      const ecg::Value& value = graph.value(v);
      manifest_.inputs.push_back(
          {value.name, value.type.dtype, value.type.shape, BufferOfValue(v, Buffer::Kind::kInput)});
    }
    AddLaunch(model_, built.program, ProgramInWords(model_, built.program), &manifest_);
    for (const ecg::Node& node : graph.nodes()) manifest_.launches[0].nodes.push_back(node.name);
    ASSIGN_OR_RETURN(const std::vector<Argument> arguments, ArgumentsOf(model_, built.program));
    for (const Argument& argument : arguments) {
      const int buffer = argument.weight != nullptr ? BufferOfWeight(argument.name, *argument.weight)
                         : argument.output          ? BufferOfValue(argument.value, Buffer::Kind::kOutput)
                                                    : BufferOfValue(argument.value, Buffer::Kind::kInput);
      manifest_.launches[0].buffers.push_back(buffer);
    }
    for (size_t o = 0; o < graph.outputs().size(); ++o) {
      const ecg::ValueId v = graph.outputs()[o];
      const ecg::Value& value = graph.value(v);
      if (buffer_of_.count(v) == 0 && !value.constant) {
        return absl::UnimplementedError(absl::StrCat("no layer makes the output '", graph.output_names()[o], "'"));
      }
      const int buffer = value.constant && buffer_of_.count(v) == 0
                             ? BufferOfWeight(graph.output_names()[o], *value.constant)
                             : buffer_of_.at(v);
      manifest_.outputs.push_back({graph.output_names()[o], value.type.dtype, value.type.shape, buffer});
    }
    return absl::OkStatus();
  }

  absl::Status Write(const BuiltProgram& built, const std::string& path, CompileAccount* account) {
    std::vector<WeightInfo> infos;
    std::vector<HeldWeight> held;
    for (const Tensor* weight : weights_) {
      const int64_t bytes = weight->size_bytes();
      infos.push_back({absl::StrCat("w", infos.size()), weight->dtype(), weight->shape()});
      held.push_back({weight->data(), bytes, bytes, bytes, bytes});
      account->weight_bytes += bytes;
    }
    ASSIGN_OR_RETURN(const SafetensorsLayout layout, LayOutSafetensors(infos));
    AccountWeights(held, layout.data_bytes, &account->weights);
    if (!infos.empty()) manifest_.weights = account->weights;
    ASSIGN_OR_RETURN(std::unique_ptr<BundleWriter> writer, BundleWriter::Create(path));
    RETURN_IF_ERROR(AddPrograms(model_, built.binary, writer.get()));
    RETURN_IF_ERROR(writer->AddEntry("plan.json", account->plan_json));
    RETURN_IF_ERROR(writer->AddEntry("report.html", ReportHtml(manifest_, *account)));
    if (!infos.empty()) {
      ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, writer->BeginWeights(infos));
      for (const auto& [buffer, weight] : constants_) manifest_.buffers[buffer].offset = offsets[weight];
      for (const Tensor* weight : weights_) {
        RETURN_IF_ERROR(writer->AppendWeights(
            {static_cast<const char*>(weight->data()), static_cast<size_t>(weight->size_bytes())}));
      }
    }
    return writer->Finish(std::move(manifest_));
  }

 private:
  int Add(Buffer buffer) {
    manifest_.buffers.push_back(std::move(buffer));
    return static_cast<int>(manifest_.buffers.size()) - 1;
  }
  int BufferOfValue(ecg::ValueId v, Buffer::Kind kind) {
    const auto known = buffer_of_.find(v);
    if (known != buffer_of_.end()) return known->second;
    const ecg::Value& value = model_.graph->value(v);
    return buffer_of_[v] = Add(BufferOf(value.name, value.type.dtype, value.type.shape, kind));
  }
  // Each use of a weight is a buffer; equal memory is in the bundle once.
  int BufferOfWeight(const std::string& name, const Tensor& weight) {
    const int buffer = Add(BufferOf(name, weight.dtype(), weight.shape(), Buffer::Kind::kConstant));
    const auto [known, fresh] = weight_of_.try_emplace({weight.data(), weight.size_bytes()}, weights_.size());
    if (fresh) weights_.push_back(&weight);
    constants_.emplace_back(buffer, known->second);
    return buffer;
  }

  const ModelOnMachine& model_;
  Manifest manifest_;
  std::map<ecg::ValueId, int> buffer_of_;
  std::vector<const Tensor*> weights_;
  std::map<std::pair<const void*, int64_t>, size_t> weight_of_;
  std::vector<std::pair<int, size_t>> constants_;  // a buffer, and its weight
};

}  // namespace

absl::Status WriteProgramBundle(const ModelOnMachine& model, const BuiltProgram& built, const Manifest& head,
                                const std::string& path, CompileAccount* account) {
  ModelBundle bundle(model, head);
  RETURN_IF_ERROR(bundle.LayOut(built));
  return bundle.Write(built, path, account);
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
  AddLaunch(model, program, "question", &manifest);
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
  RETURN_IF_ERROR(AddPrograms(model, binary, writer.get()));
  RETURN_IF_ERROR(writer->Finish(std::move(manifest), /*durable=*/false));
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

}  // namespace fusion::accelerator

#include "compiler/bundle/emit.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/api/generator_version.h"
#include "compiler/backends/backend.h"
#include "compiler/bundle/account_weights.h"
#include "compiler/bundle/pack_weights.h"
#include "compiler/bundle/report.h"
#include "compiler/bundle/weights.h"
#include "compiler/launch/memory_plan.h"
#include "compiler/movement/cost.h"
#include "runtime/base/status_macros.h"
#include "runtime/bundle/bundle_writer.h"
#include "runtime/bundle/safetensors.h"

namespace fusion {
namespace {

void NeedHost(const KernelTexts::File& file, Manifest* manifest) {
  manifest->host_isa = file.instructions.isa;
  manifest->format = std::max(manifest->format, 4);
}

void NeedFormat(const FusionKernel& fusion_kernel, Manifest* manifest) {
  if (fusion_kernel.kernel.persistent) manifest->format = std::max(manifest->format, 5);
  for (const movement::Phase& phase : fusion_kernel.kernel.phases) {
    const LibraryCall* call = movement::LibraryCallOf(phase);
    if (call == nullptr) continue;
    manifest->format = std::max(manifest->format, std::holds_alternative<LibraryProduct>(*call) ? 6 : 7);
  }
}

}  // namespace

absl::Status WriteBundle(const std::vector<BundleProgram>& programs, const KernelTexts& texts,
                         const std::vector<std::string>& binaries, const Manifest& head, const std::string& path,
                         CompileAccount* account, bool durable) {
  Manifest manifest = head;
  Weights weights;
  std::vector<LaidOut> laid_out;
  for (const BundleProgram& program : programs) {
    ASSIGN_OR_RETURN(laid_out.emplace_back(), LayOut(texts, program, &weights));
    for (const PlannedLaunch& launch : *program.launches) {
      NeedFormat(launch.fusion_kernel, &manifest);
      if (!launch.others.empty()) manifest.format = std::max(manifest.format, 8);
    }
    if (laid_out.back().has_extents) manifest.format = std::max(manifest.format, 2);
    if (!laid_out.back().program.checks.empty()) manifest.format = std::max(manifest.format, 9);
    if (!laid_out.back().program.repeats.empty()) {
      manifest.format = std::max(manifest.format, head.target == "cpu" ? 10 : 11);
    }
    account->arena_bytes = std::max(account->arena_bytes, laid_out.back().program.arena_bytes);
    if (laid_out.size() == 1) {
      static_cast<ManifestProgram&>(manifest) = laid_out.back().program;
    } else {
      manifest.others.push_back(laid_out.back().program);
      manifest.format = std::max(manifest.format, 3);
    }
  }
  ASSIGN_OR_RETURN(std::unique_ptr<BundleWriter> writer, BundleWriter::Create(path));
  std::set<int> used;
  for (const BundleProgram& program : programs) {
    for (const KernelTexts::Place& place : program.places) used.insert(place.file);
  }
  for (const int f : used) {
    RETURN_IF_ERROR(writer->AddEntry(BinaryName(texts, f), binaries[f]));
    RETURN_IF_ERROR(writer->AddEntry(SourceName(texts, f), texts.files[f].text));
  }
  // The manifest's head names the device's instructions, or fewer where every kernel of the device needs the same
  // fewer.
  std::vector<Instructions> needed;
  for (const int f : used) {
    const KernelTexts::File& file = texts.files[f];
    if (file.on_host) {
      NeedHost(file, &manifest);
    } else {
      needed.push_back(file.instructions);
    }
  }
  if (!needed.empty() && std::count(needed.begin(), needed.end(), needed[0]) == std::ssize(needed)) {
    manifest.isa = needed[0].isa;
    manifest.march = needed[0].march;
  }
  if (!account->plan_json.empty()) RETURN_IF_ERROR(writer->AddEntry("plan.json", account->plan_json));
  std::vector<WeightInfo> infos;
  std::vector<HeldWeight> held;
  for (const Weights::Weight& weight : weights.list) {
    infos.push_back({absl::StrCat("w", infos.size()), weight.dtype, weight.shape});
    held.push_back(Held(weight));
    account->weight_bytes += weight.size_bytes;
  }
  ASSIGN_OR_RETURN(const SafetensorsLayout layout, LayOutSafetensors(infos));
  AccountWeights(held, layout.data_bytes, &account->weights);
  if (!infos.empty()) manifest.weights = account->weights;
  RETURN_IF_ERROR(writer->AddEntry("report.html", ReportHtml(manifest, *account)));
  if (!infos.empty()) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, writer->BeginWeights(infos));
    for (size_t p = 0; p < laid_out.size(); ++p) {
      for (const auto& [buffer, weight] : laid_out[p].constants) {
        (p == 0 ? manifest : manifest.others[p - 1]).buffers[buffer].offset = offsets[weight];
      }
    }
    std::vector<WeightToPack> to_pack;
    for (const Weights::Weight& weight : weights.list) to_pack.push_back({weight.source, weight.pack});
    const int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    RETURN_IF_ERROR(
        PackWeights(to_pack, threads, [&](absl::string_view bytes) { return writer->AppendWeights(bytes); }));
  }
  return writer->Finish(std::move(manifest), durable);
}

absl::Status WriteMeasurementBundle(const KernelSequence& kernels, const KernelTexts& texts,
                                    std::vector<KernelTexts::Place>::const_iterator place,
                                    const std::vector<std::string>& binaries, const DeviceModel& device, int threads,
                                    const std::string& path) {
  Manifest manifest;
  manifest.generator = absl::StrCat("fusion generator ", kGeneratorVersion);
  manifest.target = device.kind;
  manifest.isa = device.isa;
  manifest.march = device.march;
  double estimate_ns = 0;
  std::vector<std::string> keys;
  std::vector<ArenaItem> temporaries;
  std::vector<int> temporary_buffers;
  std::vector<std::vector<int>> buffer_of;  // by kernel and argument
  std::map<int, std::string> files;         // index in `texts` -> entry
  for (int k = 0; k < static_cast<int>(kernels.size()); ++k, ++place) {
    const FusionKernel& fusion_kernel = *kernels[k];
    keys.push_back(fusion_kernel.key);
    estimate_ns += movement::EstimateCost(fusion_kernel.kernel, device, threads).latency_ns;
    manifest.scratch_bytes_per_thread = std::max(manifest.scratch_bytes_per_thread, fusion_kernel.kernel.scratch_bytes);
    Launch launch;
    launch.label = "question";
    launch.flops = fusion_kernel.flops;
    launch.kernel = k;
    std::vector<int>& own = buffer_of.emplace_back(fusion_kernel.args.size(), -1);
    for (const SharedArgument& shared : SharedArguments(kernels, k)) {
      own[shared.arg] = buffer_of[shared.earlier_kernel][shared.earlier_arg];
    }
    const std::vector<const movement::Buffer*> buffers = ArgBuffers(fusion_kernel);
    for (size_t a = 0; a < buffers.size(); ++a) {
      const int64_t bytes = movement::SizeBytes(*buffers[a]);
      launch.bytes += bytes;
      if (own[a] < 0) {
        own[a] = static_cast<int>(manifest.buffers.size());
        Buffer buffer;
        buffer.name = absl::StrCat("a", own[a]);
        buffer.dtype = buffers[a]->dtype;
        buffer.shape = {buffers[a]->elements};
        buffer.size_bytes = bytes;
        buffer.layout = "row-major";
        if (fusion_kernel.args[a].kind == KernelArg::Kind::kTemporary) {
          buffer.kind = Buffer::Kind::kArena;
          temporaries.push_back({buffer.size_bytes, k, k});
          temporary_buffers.push_back(own[a]);
        } else if (fusion_kernel.args[a].written) {
          buffer.kind = Buffer::Kind::kOutput;
          manifest.outputs.push_back({buffer.name, buffer.dtype, buffer.shape, own[a]});
        } else {
          buffer.kind = Buffer::Kind::kInput;
          manifest.inputs.push_back({buffer.name, buffer.dtype, buffer.shape, own[a]});
        }
        manifest.buffers.push_back(buffer);
      }
      launch.buffers.push_back(own[a]);
    }
    const KernelTexts::File& file = texts.files[place->file];
    if (file.on_host) NeedHost(file, &manifest);
    NeedFormat(fusion_kernel, &manifest);
    ManifestKernel kernel = MakeManifestKernel(texts, fusion_kernel, *place);
    kernel.source.clear();
    kernel.file = files
                      .emplace(place->file, absl::StrCat("kernels/question", files.size(), ".",
                                                         FindBackend(file.kind)->BinaryExtension()))
                      .first->second;
    manifest.kernels.push_back(std::move(kernel));
    manifest.launches.push_back(std::move(launch));
  }
  manifest.options = {{"kernel", absl::StrJoin(keys, " ")}, {"estimate_ns", absl::StrFormat("%.1f", estimate_ns)}};
  manifest.arena_bytes = PlanArena(&temporaries);
  for (size_t t = 0; t < temporaries.size(); ++t) manifest.buffers[temporary_buffers[t]].offset = temporaries[t].offset;
  ASSIGN_OR_RETURN(std::unique_ptr<BundleWriter> writer, BundleWriter::Create(path));
  for (const auto& [file, entry] : files) RETURN_IF_ERROR(writer->AddEntry(entry, binaries[file]));
  return writer->Finish(std::move(manifest), /*durable=*/false);
}

}  // namespace fusion

#include "runtime/loader/testing/tiny_bundle.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/bundle/bundle_writer.h"
#include "runtime/devices/cpu/isa.h"

namespace fusion {

// Tasks are rows. k0_b reads the row that mirrors the one that k0_a wrote for the same task, so it needs the barrier
// between them.
const char kTinyKernelSource[] = R"(
extern "C" void k0_a(void* const* args, void* scratch, long begin, long end) {
  const float* x = (const float*)args[0];
  const float* w = (const float*)args[1];
  float* t = (float*)args[2];
  float* row = (float*)scratch;
  for (long r = begin; r < end; ++r) {
    for (long c = 0; c < 8; ++c) row[c] = x[r * 8 + c] * w[c];
    for (long c = 0; c < 8; ++c) t[r * 8 + c] = row[c];
  }
}
extern "C" void k0_b(void* const* args, void*, long begin, long end) {
  const float* b = (const float*)args[3];
  float* t = (float*)args[2];
  float* u = (float*)args[4];
  for (long r = begin; r < end; ++r)
    for (long c = 0; c < 8; ++c) u[(63 - r) * 8 + c] = t[(63 - r) * 8 + c] + b[c];
}
extern "C" void k1(void* const* args, void*, long begin, long end) {
  const float* u = (const float*)args[0];
  float* y = (float*)args[1];
  for (long i = begin * 8; i < end * 8; ++i) y[i] = u[i] > 0 ? u[i] : 0;
}
)";

absl::StatusOr<std::string> BuildSharedObject(const std::string& source) {
  std::string folder = "/tmp/fusion-tiny-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return absl::UnavailableError("cannot make a temporary folder");
  const std::string output = folder + "/kernel.so";
  absl::StatusOr<std::string> bytes = absl::InternalError("clang++ failed");
  FILE* pipe = popen(absl::StrCat("clang++ -shared -fPIC -O2 -x c++ - -o ", output).c_str(), "w");
  if (pipe != nullptr) {
    fwrite(source.data(), 1, source.size(), pipe);
    if (pclose(pipe) == 0) {
      auto file = MappedFile::Open(output);
      if (file.ok()) bytes = std::string((*file)->bytes());
    }
  }
  unlink(output.c_str());
  rmdir(folder.c_str());
  return bytes;
}

Manifest TinyManifest() {
  using Kind = Buffer::Kind;
  Manifest manifest;
  manifest.generator = "tiny";
  manifest.isa = HostIsa();
  manifest.model_name = "tiny";
  manifest.buffers = {{Kind::kInput, "x", DType::kF32, {64, 8}, 2048, 0, ""},
                      {Kind::kConstant, "w", DType::kF32, {8}, 32, 0, ""},
                      {Kind::kConstant, "b", DType::kF32, {8}, 32, 64, ""},
                      {Kind::kArena, "t", DType::kF32, {64, 8}, 2048, 0, ""},
                      {Kind::kArena, "u", DType::kF32, {64, 8}, 2048, 2048, ""},
                      {Kind::kOutput, "y", DType::kF32, {64, 8}, 2048, 0, ""},
                      {Kind::kConstant, "columns", DType::kI64, {1}, 8, 128, ""}};
  manifest.inputs = {{"x", DType::kF32, {64, 8}, 0}};
  manifest.outputs = {{"y", DType::kF32, {64, 8}, 5}, {"w", DType::kF32, {8}, 1}};
  manifest.arena_bytes = 4096;
  manifest.scratch_bytes_per_thread = 32;
  manifest.kernels = {{"kernels/cpu.so", {{"k0_a", 64}, {"k0_b", 64}}, "src/tiny.cc"},
                      {"kernels/cpu.so", {{"k1", 64}}, "src/tiny.cc"}};
  manifest.launches = {{0, {0, 1, 3, 2, 4}, "mul+add", {"mul", "add"}, 1024, 6208},
                       {1, {4, 5}, "relu", {"relu"}, 512, 4096}};
  return manifest;
}

Manifest TinyDynamicManifest() {
  Manifest manifest = TinyManifest();
  manifest.format = 2;
  manifest.outputs[0].extents = {-1, 6};
  return manifest;
}

Manifest TinySpecialisedManifest() {
  Manifest manifest = TinyManifest();
  manifest.format = 3;
  manifest.inputs[0].symbols = {"rows", ""};
  ManifestProgram small = manifest;
  manifest.dims["rows"] = 64;
  small.dims["rows"] = 16;
  // The second phase mirrors all rows of the arena, so the arena's shape stays as it is.
  small.inputs[0].shape[0] = small.outputs[0].shape[0] = 16;
  for (const int buffer : {0, 5}) small.buffers[buffer].shape[0] = 16, small.buffers[buffer].size_bytes = 512;
  small.kernels[0].phases[0].tasks = small.kernels[1].phases[0].tasks = 16;
  manifest.others.push_back(small);
  return manifest;
}

Manifest TinyRepeatingManifest(bool in_launch) {
  Manifest manifest = TinyManifest();
  manifest.format = 11;
  const BufferSteps rows{0, 0, 1, 32, 64};
  for (const int64_t offset : {0, 2048}) {
    manifest.buffers.push_back({Buffer::Kind::kArena, "rows", DType::kF32, {2, 8}, 64, offset, "", rows});
  }
  manifest.kernels[0].phases.pop_back();
  manifest.kernels.push_back({"kernels/cpu.so", {{in_launch ? "turns" : "one_turn", 2}}, "src/tiny.cc"});
  manifest.kernels.back().persistent = in_launch;
  manifest.launches.insert(manifest.launches.begin() + 1, {2, {7, 2, 8}, "turn", {"add"}, 512, 4096});
  manifest.repeats = {{1, 2, 32, in_launch}};
  return manifest;
}

absl::Status WriteTinyBundle(const std::string& path, const std::string& shared_object, const Manifest& manifest,
                             const std::map<std::string, std::string>& more) {
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleWriter> writer, BundleWriter::Create(path));
  RETURN_IF_ERROR(writer->AddEntry("kernels/cpu.so", shared_object));
  for (const auto& [name, bytes] : more) RETURN_IF_ERROR(writer->AddEntry(name, bytes));
  RETURN_IF_ERROR(writer->AddEntry("src/tiny.cc", kTinyKernelSource));
  RETURN_IF_ERROR(
      writer->BeginWeights({{"w", DType::kF32, {8}}, {"b", DType::kF32, {8}}, {"columns", DType::kI64, {1}}}).status());
  const float weights[16] = {1, 2, 3, 4, 5, 6, 7, 8, -1, -1, -1, -1, -1, -1, -1, -1};
  RETURN_IF_ERROR(writer->AppendWeights({reinterpret_cast<const char*>(weights), sizeof(weights)}));
  const int64_t columns = 3;
  RETURN_IF_ERROR(writer->AppendWeights({reinterpret_cast<const char*>(&columns), sizeof(columns)}));
  return writer->Finish(manifest);
}

}  // namespace fusion

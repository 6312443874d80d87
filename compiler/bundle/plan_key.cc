#include "compiler/bundle/plan_key.h"

#include <cstddef>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/api/generator_version.h"
#include "runtime/base/sha256.h"

namespace fusion {

std::string PlanKey(const LaidOut& program, const std::vector<PlannedLaunch>& launches, const DeviceModel& device,
                    int threads, const std::string& math) {
  Sha256 hash;
  hash.Update(absl::StrCat("plan|", device.Fingerprint(), "|threads=", threads, "|math=", math,
                           "|warm|generator=", kGeneratorVersion, "\n"));
  std::map<int, size_t> weight_of;
  for (const auto& [buffer, weight] : program.constants) weight_of[buffer] = weight;
  for (size_t b = 0; b < program.program.buffers.size(); ++b) {
    const Buffer& buffer = program.program.buffers[b];
    hash.Update(absl::StrCat(BufferKindName(buffer.kind), " ", buffer.size_bytes, " "));
    // Where constants lie is not known yet. Constants with one number are the same memory.
    const auto weight = weight_of.find(static_cast<int>(b));
    hash.Update(weight == weight_of.end() ? absl::StrCat("at ", buffer.offset, "\n")
                                          : absl::StrCat("weight ", weight->second, "\n"));
  }
  for (size_t l = 0; l < launches.size(); ++l) {
    hash.Update(absl::StrCat(launches[l].concurrent ? "concurrent " : "", launches[l].fusion_kernel.key));
    const Launch& launch = program.program.launches[l];
    for (size_t set = 0; set < launch.sets(); ++set) {
      hash.Update(absl::StrCat(" ", absl::StrJoin(launch.set(set), ",")));
    }
    hash.Update("\n");
  }
  for (const Repeat& repeat : program.program.repeats) {
    hash.Update(absl::StrCat("repeat ", repeat.first, " ", repeat.end, " ", repeat.trips,
                             repeat.in_launch ? " in its launch\n" : "\n"));
  }
  return hash.FinishHex();
}

}  // namespace fusion

#include "compiler/measure/question_keys.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/api/generator_version.h"
#include "compiler/movement/print.h"
#include "runtime/base/sha256.h"

namespace fusion {
namespace {

// Replaces every number in the text by one sign.
std::string WithoutNumbers(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) result += c;
    if (digit && (result.empty() || result.back() != '#')) result += '#';
  }
  return result;
}

}  // namespace

std::string QuestionKey(const KernelSequence& kernels, const DeviceModel& device, int threads) {
  std::string what = kernels[0]->key;
  for (size_t k = 1; k < kernels.size(); ++k) {
    absl::StrAppend(&what, "|then ", kernels[k]->key);
    for (const SharedArgument& shared : SharedArguments(kernels, static_cast<int>(k))) {
      absl::StrAppend(&what, " ", shared.arg, "=", shared.earlier_kernel, ".", shared.earlier_arg);
    }
  }
  return Sha256Hex(
      absl::StrCat(what, "|", device.Fingerprint(), "|threads=", threads, "|cold|generator=", kGeneratorVersion));
}

std::vector<std::string> KeysInGroups(const std::vector<KernelQuestion>& asked, const DeviceModel& device,
                                      int threads) {
  std::vector<std::string> keys;
  std::map<std::string, std::set<std::string>> groups;  // the keys of all members of each group
  for (const KernelQuestion& question : asked) {
    keys.push_back(QuestionKey(question.kernels, device, threads));
    if (!question.group.empty()) groups[question.group].insert(keys.back());
  }
  for (size_t k = 0; k < asked.size(); ++k) {
    const std::string& group = asked[k].group;
    if (!group.empty()) keys[k] = Sha256Hex(absl::StrCat(keys[k], "|beside ", absl::StrJoin(groups[group], " ")));
  }
  return keys;
}

std::string StructureKey(const FusionKernel& kernel, const DeviceModel& device, int threads) {
  return Sha256Hex(
      absl::StrCat(WithoutNumbers(movement::Print(kernel.kernel)), "|", device.Fingerprint(), "|threads=", threads));
}

}  // namespace fusion

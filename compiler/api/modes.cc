#include "compiler/api/modes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fusion {
namespace {

constexpr size_t kMaxShown = 64;  // characters shown of a word that the user wrote

absl::StatusOr<size_t> Place(const char* option, const std::string& word, const std::vector<std::string>& words) {
  const auto it = std::find(words.begin(), words.end(), word);
  if (it != words.end()) return it - words.begin();
  return absl::InvalidArgumentError(
      absl::StrCat(option, " '", word.substr(0, kMaxShown), "' is unknown; use one of ", absl::StrJoin(words, ", ")));
}

}  // namespace

const std::vector<std::string>& MathModes() {
  static const auto* const kModes = new std::vector<std::string>{"fast", "strict", "relaxed"};
  return *kModes;
}

const std::vector<std::string>& Precisions() {
  static const auto* const kPrecisions = new std::vector<std::string>{"fp32", "fp16", "tf32"};
  return *kPrecisions;
}

const std::vector<std::string>& SizeModes() {
  static const auto* const kSizes = new std::vector<std::string>{"any", "small"};
  return *kSizes;
}

absl::StatusOr<rewrite::MathLevel> MathLevelOf(const std::string& math) {
  const absl::StatusOr<size_t> place = Place("math", math, MathModes());
  if (!place.ok()) return place.status();
  constexpr rewrite::MathLevel kLevels[] = {rewrite::MathLevel::kFast, rewrite::MathLevel::kStrict,
                                            rewrite::MathLevel::kRelaxed};
  return kLevels[*place];
}

absl::Status CheckPrecision(const std::string& precision) {
  return Place("precision", precision, Precisions()).status();
}

absl::Status CheckSize(const std::string& size) { return Place("size", size, SizeModes()).status(); }

}  // namespace fusion

#include "runtime/bundle/weights_account.h"

#include <utility>

namespace fusion {

std::string WeightCauseInWords(const std::string& cause) {
  static constexpr std::pair<const char*, const char*> kWords[] = {
      {weight_cause::kRewritten, "folded, shared, left out or narrowed by rewriting"},
      {weight_cause::kTransformed, "filters transformed for Winograd"},
      {weight_cause::kPadding, "padding to vectors"},
      {weight_cause::kLayouts, "held in another layout, too (no schedule of its readers shares one at little cost)"},
      {weight_cause::kTables, "tables of kernels"},
      {weight_cause::kAlignment, "alignment"}};
  for (const auto& [word, words] : kWords) {
    if (cause == word) return words;
  }
  return cause;
}

}  // namespace fusion

#include "compiler/bundle/account_weights.h"

#include <algorithm>
#include <map>

namespace fusion {

void AccountWeights(const std::vector<HeldWeight>& weights, int64_t data_bytes, WeightsAccount* account) {
  std::map<std::string, int64_t> causes;
  std::map<const void*, std::vector<const HeldWeight*>> by_source;
  int64_t held = 0;
  for (const HeldWeight& weight : weights) {
    held += weight.bytes;
    if (weight.source == nullptr) {
      causes[weight_cause::kTables] += weight.bytes;
    } else {
      by_source[weight.source].push_back(&weight);
    }
  }
  int64_t used = 0;  // bytes of the sources, each once
  for (const auto& [source, forms] : by_source) {
    int64_t covered = 0;
    for (const HeldWeight* form : forms) {
      covered += form->covered_bytes;
      causes[weight_cause::kTransformed] += form->transformed_bytes - form->covered_bytes;
      causes[weight_cause::kPadding] += form->bytes - form->transformed_bytes;
    }
    const int64_t once = std::min(covered, forms[0]->source_bytes);
    used += once;
    causes[weight_cause::kLayouts] += covered - once;
  }
  causes[weight_cause::kRewritten] = used - account->model_bytes;
  causes[weight_cause::kAlignment] = data_bytes - held;
  account->bundle_bytes = data_bytes;
  account->causes.clear();
  for (const auto& [cause, bytes] : causes) {
    if (bytes != 0) account->causes[cause] = bytes;
  }
}

}  // namespace fusion

// WeightsAccount: why the weights of a bundle have another size than those of its model.
#ifndef FUSION_RUNTIME_BUNDLE_WEIGHTS_ACCOUNT_H_
#define FUSION_RUNTIME_BUNDLE_WEIGHTS_ACCOUNT_H_

#include <cstdint>
#include <map>
#include <string>

namespace fusion {

// The words of WeightsAccount::causes that writers use; readers take any.
namespace weight_cause {
inline constexpr char kRewritten[] = "rewritten";      // constants folded, shared, left out or stored narrower
inline constexpr char kTransformed[] = "transformed";  // filters of minimal filtering (Winograd)
inline constexpr char kPadding[] = "padding";          // to whole vectors and panels
inline constexpr char kLayouts[] = "layouts";          // weights that are held in several layouts, all but one
inline constexpr char kTables[] = "tables";            // constants that kernels have of their own
inline constexpr char kAlignment[] = "alignment";      // gaps between weights
}  // namespace weight_cause

struct WeightsAccount {
  int64_t model_bytes = 0;                // constants of the model
  int64_t bundle_bytes = 0;               // of the bundle: the data of its weights' entry
  std::map<std::string, int64_t> causes;  // of the difference, which is their sum; may be negative; none is zero
  // With --size small: the estimated time beside that of the plan without it. 0: says nothing.
  double time_ratio = 0;

  // 0 where the model has none.
  double ratio() const {
    return model_bytes > 0 ? static_cast<double>(bundle_bytes) / static_cast<double>(model_bytes) : 0;
  }
};

// "transformed filters for Winograd" for kTransformed and so on; a cause that is not known here is its own word.
std::string WeightCauseInWords(const std::string& cause);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_WEIGHTS_ACCOUNT_H_

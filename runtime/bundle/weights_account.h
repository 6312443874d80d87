// WeightsAccount: explains why the weights of a bundle and those of its model differ in size.
#ifndef FUSION_RUNTIME_BUNDLE_WEIGHTS_ACCOUNT_H_
#define FUSION_RUNTIME_BUNDLE_WEIGHTS_ACCOUNT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fusion {

// The values of WeightsAccount::causes that writers use; readers accept any.
namespace weight_cause {
inline constexpr char kRewritten[] = "rewritten";      // constants folded, shared, left out or stored narrower
inline constexpr char kTransformed[] = "transformed";  // transformed filters for minimal filtering (Winograd)
inline constexpr char kPadding[] = "padding";          // to whole vectors and panels
inline constexpr char kLayouts[] = "layouts";          // further copies of weights that are held in several layouts
inline constexpr char kTables[] = "tables";            // constants that belong to kernels
inline constexpr char kAlignment[] = "alignment";      // gaps between weights
}  // namespace weight_cause

// A kernel that reads a weight of which the bundle holds several forms.
struct WeightReader {
  std::string what;      // its operators, and the name of the first
  int64_t launches = 0;  // that run the kernel and read a weight so
  std::string refused;   // why it reads none of the other forms, for people
  bool operator==(const WeightReader&) const = default;
};
struct WeightForm {
  std::string form;   // for people: "as it is", "packed [8, 256, 128]"
  int64_t bytes = 0;  // in the bundle
  std::vector<WeightReader> readers;
  bool operator==(const WeightForm&) const = default;
};
// A weight, or several that the same kernels read, of which the bundle holds more than one form.
struct RepeatedWeight {
  std::vector<std::string> names;  // in the model
  int64_t bytes = 0;               // of one of them in the model
  std::vector<WeightForm> forms;   // of one of them; at least two
};

struct WeightsAccount {
  int64_t model_bytes = 0;                // size of the model's constants
  int64_t bundle_bytes = 0;               // size of the data in the bundle's weights entry
  std::map<std::string, int64_t> causes;  // cause -> its part of the difference, may be negative, never zero
  // With --size small: estimated time, relative to the plan without that option. 0: unknown.
  double time_ratio = 0;
  std::vector<RepeatedWeight> repeated = {};  // those with the most bytes first

  // Returns 0 if the model has no constants.
  double ratio() const {
    return model_bytes > 0 ? static_cast<double>(bundle_bytes) / static_cast<double>(model_bytes) : 0;
  }
};

// Returns "filters transformed for Winograd" for kTransformed and so on. A cause that is not known here is returned as
// it is.
std::string WeightCauseInWords(const std::string& cause);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_WEIGHTS_ACCOUNT_H_

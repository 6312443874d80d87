#include "client/verbs/repeated_weights.h"

#include "absl/strings/str_cat.h"
#include "client/cli/words.h"

namespace fusion {

std::string RepeatedWeightsTable(const std::vector<RepeatedWeight>& repeated) {
  std::vector<std::vector<std::string>> rows;
  for (const RepeatedWeight& weight : repeated) {
    std::string name = weight.names.empty() ? "" : weight.names[0];
    if (weight.names.size() > 1) absl::StrAppend(&name, " and ", weight.names.size() - 1, " more");
    for (const WeightForm& form : weight.forms) {
      std::string words = form.form, bytes = BytesInWords(form.bytes);
      for (const WeightReader& reader : form.readers) {
        const std::string launches = reader.launches > 1 ? absl::StrCat(", ", reader.launches, " launches") : "";
        rows.push_back({name, words, bytes, absl::StrCat(reader.what, launches), reader.refused});
        name.clear(), words.clear(), bytes.clear();
      }
    }
  }
  return Table({"WEIGHT HELD TWICE", "FORM", "SIZE", "READER", "WHY IT READS NO OTHER FORM"}, rows);
}

}  // namespace fusion

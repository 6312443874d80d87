#include "compiler/backends/text/task_text.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace fusion::text {
namespace {

using Vector = std::vector<std::string>;

// Runs the printed shuffles on vectors whose elements are "row.lane".
TEST(ExchangeLanes, GivesTheLanesOfEveryRow) {
  for (const int lanes : {1, 4, 8, 16}) {
    std::map<std::string, Vector> values;
    std::vector<std::string> rows;
    for (int r = 0; r < lanes; ++r) {
      rows.push_back("r" + std::to_string(r));
      for (int l = 0; l < lanes; ++l) values[rows[r]].push_back(std::to_string(r) + "." + std::to_string(l));
    }
    CodeWriter out;
    int next_temp = 0;
    const std::vector<std::string> exchanged = ExchangeLanes(rows, "vf", "zip_", &next_temp, &out);
    std::istringstream lines(out.text());
    for (std::string line; std::getline(lines, line);) {  // const vf t0 = zip_low(r0, r4);
      const size_t name = line.find(" t") + 1, zip = line.find("zip_"), open = line.find('('), comma = line.find(", ");
      const Vector& a = values.at(line.substr(open + 1, comma - open - 1));
      const Vector& b = values.at(line.substr(comma + 2, line.find(')') - comma - 2));
      const int first = line.substr(zip, open - zip) == "zip_high" ? lanes / 2 : 0;
      Vector zipped;
      for (int l = first; l < first + lanes / 2; ++l) zipped.insert(zipped.end(), {a[l], b[l]});
      values[line.substr(name, line.find(" =") - name)] = zipped;
    }
    ASSERT_EQ(exchanged.size(), static_cast<size_t>(lanes));
    for (int l = 0; l < lanes; ++l) {
      for (int r = 0; r < lanes; ++r) {
        EXPECT_EQ(values.at(exchanged[l])[r], std::to_string(r) + "." + std::to_string(l)) << lanes << " lanes";
      }
    }
  }
}

}  // namespace
}  // namespace fusion::text

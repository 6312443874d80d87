#include "compiler/api/specialisations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace fusion {
namespace {

using testing::HasSubstr;
using Dims = std::map<std::string, int64_t>;

TEST(Specialisations, AreAllCombinations) {
  CompileOptions options;
  EXPECT_EQ(*Specialisations(options), std::vector<Dims>{{}});
  options.specialised_dims["seq"] = {32, 8};
  options.specialised_dims["batch"] = {1, 4};
  EXPECT_EQ(*Specialisations(options), (std::vector<Dims>{{{"batch", 1}, {"seq", 32}},
                                                          {{"batch", 1}, {"seq", 8}},
                                                          {{"batch", 4}, {"seq", 32}},
                                                          {{"batch", 4}, {"seq", 8}}}));
}

std::string Refusal(const CompileOptions& options) {
  const absl::Status status = Specialisations(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(Specialisations, RefuseWhatCannotBeBuilt) {
  CompileOptions options;
  options.specialised_dims["seq"] = {32, 0};
  EXPECT_THAT(Refusal(options), HasSubstr("--dim seq=0 must be at least 1"));
  options.specialised_dims["seq"] = {32, 8, 32};
  EXPECT_THAT(Refusal(options), HasSubstr("--dim seq: 32 is given twice"));
  options.specialised_dims["seq"] = {};
  EXPECT_THAT(Refusal(options), HasSubstr("no extents"));
  options.specialised_dims["seq"] = {32, 8};
  options.dims["seq"] = 8;
  EXPECT_THAT(Refusal(options), HasSubstr("bound twice"));
  options.dims.clear();
  options.specialised_dims["batch"].resize(kMaxSpecialisations / 2 + 1);
  std::iota(options.specialised_dims["batch"].begin(), options.specialised_dims["batch"].end(), 1);
  EXPECT_THAT(Refusal(options), HasSubstr("more than 16"));
}

}  // namespace
}  // namespace fusion

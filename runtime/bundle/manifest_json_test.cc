#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/bundle/manifest.h"
#include "runtime/bundle/testing/small_manifest.h"

namespace fusion {
namespace {

using ::fusion::testing::SmallManifest;
using ::testing::HasSubstr;

TEST(ParseManifest, ParsingNamesTheField) {
  const auto why = [](const std::string& from, const std::string& to) {
    std::string text = SerializeManifest(SmallManifest({0, 0, 64}));
    EXPECT_TRUE(ParseManifest(text).ok());
    text.replace(text.find(from), from.size(), to);
    return std::string(ParseManifest(text).status().message());
  };
  EXPECT_THAT(why("\"format\": 1", "\"format\": " + std::to_string(kNewestFormat + 1)), HasSubstr("newer runtime"));
  EXPECT_THAT(why("\"arena_bytes\": 128", "\"arena_bytes\": \"128\""), HasSubstr("arena_bytes is not an integer"));
  EXPECT_THAT(why("\"tasks\": 2", "\"tasks\": 1e300"), HasSubstr("kernels[0].phases[0].tasks is not an integer"));
  EXPECT_THAT(why("\"kind\": \"arena\"", "\"kind\": \"area\""), HasSubstr("buffers[3].kind"));
  EXPECT_THAT(why("\"dtype\": \"i64\"", "\"dtype\": \"i63\""), HasSubstr("buffers[2].dtype"));
  EXPECT_THAT(why("\"label\":", "\"lable\":"), HasSubstr("launches[0].label is missing"));
  EXPECT_THAT(why("\"launches\": [", "\"launches\": 5, \"x\": ["), HasSubstr("launches is not an array"));
  EXPECT_THAT(why("{", "["), HasSubstr("not JSON"));
  EXPECT_THAT(why("\"format\": 1", "\"format\": 1, \"weights\": 3"), HasSubstr("weights. is not an object"));
  EXPECT_THAT(why("\"format\": 1", "\"format\": 1, \"weights\": {\"model_bytes\": 1}"),
              HasSubstr("weights.bundle_bytes is missing"));
}

}  // namespace
}  // namespace fusion

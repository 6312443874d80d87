#include "server/scheduler/build_election.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

BuildRow Row(const std::string& builder, const std::string& binary, bool trusted, int64_t ms = 1,
             const std::string& toolchain = "clang", bool reproduces = true) {
  return {std::string(64, 'k'), binary, ms, toolchain, builder, trusted, reproduces};
}
std::string Elected(const std::vector<BuildRow>& rows, const std::set<std::string>& toolchains = {}) {
  return ElectBuild(rows, toolchains).binary_digest;
}

TEST(BuildElection, OneTrustedBuilderSuffices) {
  EXPECT_EQ(Elected({}), "");
  EXPECT_EQ(Elected({Row("a", "x", true)}), "x");
  EXPECT_EQ(Elected({Row("a", "x", true), Row("b", "x", true)}), "x");
}

TEST(BuildElection, AnUntrustedOneNeedsAnother) {
  EXPECT_EQ(Elected({Row("a", "x", false)}), "");
  EXPECT_EQ(Elected({Row("a", "x", false), Row("b", "y", false)}), "");
  const BuildElection third = ElectBuild({Row("a", "x", false), Row("b", "y", false), Row("c", "y", false)}, {});
  EXPECT_EQ(third.binary_digest, "y");
  EXPECT_THAT(third.deviates, ElementsAre("a"));
  EXPECT_EQ(Elected({Row("a", "x", false), Row("b", "y", false), Row("c", "y", false), Row("d", "x", false)}), "");
  EXPECT_EQ(Elected({Row("a", "x", false), Row("b", "x", false, 1, "other clang")}), "") << "of one toolchain";
}

TEST(BuildElection, UntrustedOnesDoNotOutvoteATrustedOne) {
  const BuildElection election =
      ElectBuild({Row("a", "x", false, 5), Row("b", "x", false, 6), Row("c", "x", false, 7), Row("t", "y", true)}, {});
  EXPECT_EQ(election.binary_digest, "y");
  EXPECT_THAT(election.deviates, ElementsAre("a", "b", "c"));
}

TEST(BuildElection, TrustedOnesThatDisagreeAreDisputedUntilMostAgree) {
  const BuildElection two = ElectBuild({Row("a", "x", true), Row("b", "y", true, 9), Row("u", "y", false)}, {});
  EXPECT_EQ(two.binary_digest, "");
  EXPECT_THAT(two.disputed, ElementsAre("a", "b"));
  const BuildElection three = ElectBuild({Row("a", "x", true), Row("b", "y", true, 9), Row("c", "x", true)}, {});
  EXPECT_EQ(three.binary_digest, "x");
  EXPECT_THAT(three.disputed, IsEmpty());
  EXPECT_THAT(three.deviates, ElementsAre("b"));
  EXPECT_EQ(Elected({Row("a", "x", true), Row("b", "y", true), Row("c", "z", true)}), "");
}

TEST(BuildElection, AToolchainThatDoesNotReproduceIsNotCompared) {
  const BuildElection election =
      ElectBuild({Row("a", "x", true, 1, "nvrtc", false), Row("b", "y", true, 2, "nvrtc", false)}, {});
  EXPECT_EQ(election.binary_digest, "y") << "the newest";
  EXPECT_THAT(election.deviates, IsEmpty());
  EXPECT_EQ(Elected({Row("a", "x", false, 1, "nvrtc", false), Row("b", "y", false, 2, "nvrtc", false)}), "");
}

TEST(BuildElection, OnlyTheToolchainsThatAreAskedForAndTheUnknownOneCount) {
  const std::vector<BuildRow> rows = {Row("a", "x", true, 1, "old"), Row("a", "y", true, 2, "new")};
  EXPECT_EQ(Elected(rows), "y");
  EXPECT_EQ(Elected(rows, {"old"}), "x");
  EXPECT_EQ(Elected(rows, {"third"}), "");
  EXPECT_EQ(Elected({Row("", "z", true, 1, "")}, {"third"}), "z");
  EXPECT_EQ(Elected({Row("a", "p", false, 9, "new"), Row("a", "x", true, 1, "old")}), "x");
}

}  // namespace
}  // namespace fusion

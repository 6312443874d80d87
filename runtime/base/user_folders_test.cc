#include "runtime/base/user_folders.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>
#include <optional>

namespace fusion {
namespace {

// Sets variables of the environment, or unsets them, for the length of a test.
class UserFoldersTest : public ::testing::Test {
 protected:
  ~UserFoldersTest() override {
    for (const auto& [name, value] : before_) Put(name, value);
  }
  void Set(const std::string& name, const std::optional<std::string>& value) {
    const char* old = getenv(name.c_str());
    before_.try_emplace(name, old == nullptr ? std::nullopt : std::optional<std::string>(old));
    Put(name, value);
  }

 private:
  static void Put(const std::string& name, const std::optional<std::string>& value) {
    value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
  }
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(UserFoldersTest, StandBelowHomeUnlessAVariableNamesAnAbsolutePath) {
  Set("HOME", "/home/ada");
  for (const std::optional<std::string>& ignored : {std::optional<std::string>(), {""}, {"relative/path"}}) {
    Set("XDG_STATE_HOME", ignored);
    Set("XDG_CACHE_HOME", ignored);
    EXPECT_EQ(UserStateFolder(), "/home/ada/.local/state/fusion");
    EXPECT_EQ(UserCacheFolder(), "/home/ada/.cache/fusion");
    EXPECT_EQ(UserConfigFolder(), "/home/ada/.config/fusion");
  }
  Set("XDG_STATE_HOME", "/var/state");
  Set("XDG_CACHE_HOME", "/var/cache");
  EXPECT_EQ(UserStateFolder(), "/var/state/fusion");
  EXPECT_EQ(UserCacheFolder(), "/var/cache/fusion");
}

TEST_F(UserFoldersTest, WithoutHomeTheyStandInTmp) {
  Set("HOME", std::nullopt);
  Set("XDG_STATE_HOME", std::nullopt);
  EXPECT_EQ(UserStateFolder(), "/tmp/.local/state/fusion");
}

TEST_F(UserFoldersTest, TheServerIsNamedOrHasASocketInItsStateFolder) {
  Set("FUSION_SERVER", std::nullopt);
  EXPECT_EQ(DefaultServerAddress("/state"), "unix:/state/fusion.sock");
  Set("FUSION_SERVER", "");
  EXPECT_EQ(DefaultServerAddress("/state"), "unix:/state/fusion.sock");
  Set("FUSION_SERVER", "farm:7070");
  EXPECT_EQ(DefaultServerAddress("/state"), "farm:7070");
}

}  // namespace
}  // namespace fusion

#include "runtime/base/user_folders.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace fusion {
namespace {

absl::string_view FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string UserFolder(const char* variable, const char* below_home) {
  const absl::string_view root = FromEnvironment(variable), home = FromEnvironment("HOME");
  if (!root.empty() && root[0] == '/') return absl::StrCat(root, "/fusion");
  return absl::StrCat(home.empty() ? "/tmp" : home, below_home, "/fusion");
}

}  // namespace

std::string UserStateFolder() { return UserFolder("XDG_STATE_HOME", "/.local/state"); }

std::string UserCacheFolder() { return UserFolder("XDG_CACHE_HOME", "/.cache"); }

std::string UserConfigFolder() { return UserFolder("XDG_CONFIG_HOME", "/.config"); }

std::string DefaultServerAddress(const std::string& state_folder) {
  const absl::string_view named = FromEnvironment("FUSION_SERVER");
  return named.empty() ? absl::StrCat("unix:", state_folder, "/fusion.sock") : std::string(named);
}

}  // namespace fusion

#include "runtime/bundle/target_path.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"

namespace fusion {

std::string PathForTarget(const std::string& path, const std::string& target) {
  std::string word = target;
  std::replace_if(
      word.begin(), word.end(),
      [](char c) { return !absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-'; }, '-');
  std::filesystem::path whole(path);
  const std::string extension = whole.extension().string();
  return whole.replace_extension().string() + "." + word + extension;
}

}  // namespace fusion

// The rule files, embedded at build time.
#ifndef FUSION_COMPILER_REWRITE_RULE_FILES_H_
#define FUSION_COMPILER_REWRITE_RULE_FILES_H_

#include <string_view>
#include <vector>

namespace fusion::rewrite {

struct RuleFile {
  std::string_view name, text;
};
std::vector<RuleFile> RuleFiles();

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_RULE_FILES_H_

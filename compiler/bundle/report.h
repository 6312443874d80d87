// report.html of a bundle tells people what the compiler did with a model. It is self-contained (no script, nothing
// loaded from elsewhere) and reproducible (no times).
#ifndef FUSION_COMPILER_BUNDLE_REPORT_H_
#define FUSION_COMPILER_BUNDLE_REPORT_H_

#include <string>

#include "compiler/api/compile_account.h"
#include "runtime/bundle/manifest.h"

namespace fusion {

// Decisions and rewrites come from `account.plan_json` (if it is absent or damaged, none are shown), kernels and memory
// from the manifest. Names are the model's, so every text is escaped.
std::string ReportHtml(const Manifest& manifest, const CompileAccount& account);

// Returns a text for an element or a quoted attribute: markup is escaped, and control characters become U+FFFD.
std::string HtmlEscape(const std::string& text);

}  // namespace fusion

#endif  // FUSION_COMPILER_BUNDLE_REPORT_H_

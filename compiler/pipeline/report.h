// report.html of a bundle: what the compiler did with a model, for people. Self-contained: no script and nothing loaded
// from elsewhere. Reproducible: no times.
#ifndef FUSION_COMPILER_PIPELINE_REPORT_H_
#define FUSION_COMPILER_PIPELINE_REPORT_H_

#include <string>

#include "compiler/pipeline/compile.h"
#include "runtime/bundle/manifest.h"

namespace fusion {

// `account.plan_json` gives decisions and rewrites (absent or damaged: none are shown); kernels and memory come from
// the manifest. Names are the model's, so every text is escaped.
std::string ReportHtml(const Manifest& manifest, const CompileAccount& account);

// Text for an element or a quoted attribute: markup is escaped, control characters become U+FFFD.
std::string HtmlEscape(const std::string& text);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_REPORT_H_

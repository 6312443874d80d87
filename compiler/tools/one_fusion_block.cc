#include "compiler/tools/one_fusion_block.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// The node that makes the value of this name.
absl::StatusOr<ecg::NodeId> NodeOf(const ecg::Graph& graph, const std::string& option, const std::string& value) {
  for (ecg::NodeId id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    for (ecg::ValueId v : graph.node(id).outputs) {
      if (v != ecg::kNone && graph.value(v).name == value) return id;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(option, ": no operator makes '", value, "'"));
}

absl::StatusOr<Scope> ParseScope(absl::string_view name) {
  for (const Scope scope : {Scope::kLane, Scope::kWarp, Scope::kBlock, Scope::kDevice}) {
    if (name == ScopeName(scope)) return scope;
  }
  return absl::InvalidArgumentError(absl::StrCat("--hand-over: '", name, "' is none of lane, warp, block, device"));
}

// "y>z:block..device": what the operator that makes y hands to the one that makes z. One scope stands for both.
absl::StatusOr<HandOver> ParseHandOver(const ecg::Graph& graph, const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, absl::ByAnyChar(">:"));
  if (parts.size() != 3) {
    return absl::InvalidArgumentError(absl::StrCat("--hand-over '", text, "' is not VALUE>VALUE:SCOPE..SCOPE"));
  }
  const std::vector<std::string> scopes = absl::StrSplit(parts[2], "..");
  HandOver hand_over;
  ASSIGN_OR_RETURN(hand_over.producer, NodeOf(graph, "--hand-over", parts[0]));
  ASSIGN_OR_RETURN(hand_over.consumer, NodeOf(graph, "--hand-over", parts[1]));
  ASSIGN_OR_RETURN(hand_over.nearest, ParseScope(scopes.front()));
  ASSIGN_OR_RETURN(hand_over.furthest, ParseScope(scopes.back()));
  for (ecg::ValueId v : graph.node(hand_over.consumer).inputs) {
    if (v != ecg::kNone && graph.value(v).name == parts[0]) hand_over.value = v;
  }
  return hand_over;
}

// "y:tile=6x4" or "form=plain".
absl::StatusOr<Directive> ParseDirective(const ecg::Graph& graph, const std::string& text) {
  const std::pair<std::string, std::string> sides = absl::StrSplit(text, absl::MaxSplits('=', 1));
  const std::vector<std::string> parts = absl::StrSplit(sides.first, ':');
  if (parts.size() > 2 || parts.back().empty() || sides.second.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--directive '", text, "' is neither VALUE:CHOICE=ALTERNATIVE nor CHOICE=ALTERNATIVE"));
  }
  Directive directive{ecg::kNone, parts.back(), sides.second};
  if (parts.size() == 2) {
    ASSIGN_OR_RETURN(directive.node, NodeOf(graph, "--directive", parts[0]));
  }
  return directive;
}

}  // namespace

absl::StatusOr<FusionBlock> OneFusionBlock(const ecg::Graph& graph, const std::vector<std::string>& hand_overs,
                                           const std::vector<std::string>& directives) {
  FusionBlock all;
  for (size_t id = 0; id < graph.nodes().size(); ++id) all.nodes.push_back(static_cast<int>(id));
  for (const std::string& text : hand_overs) {
    ASSIGN_OR_RETURN(all.inner.emplace_back(), ParseHandOver(graph, text));
  }
  for (const std::string& text : directives) {
    ASSIGN_OR_RETURN(all.directives.emplace_back(), ParseDirective(graph, text));
  }
  std::sort(all.inner.begin(), all.inner.end());
  std::sort(all.directives.begin(), all.directives.end());
  return all;
}

}  // namespace fusion

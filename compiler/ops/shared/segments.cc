#include "compiler/ops/shared/segments.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace fusion::ops {
namespace {

ecg::ValueId AddSegment(const Segment& segment, int axis, const std::string& name, ecg::Graph* graph) {
  ecg::ValueType type = graph->value(segment.value).type;
  if (segment.begin == 0 && segment.end == type.shape[axis]) return segment.value;
  type.shape[axis] = segment.end - segment.begin;
  const auto number = [&](const char* what, int64_t value) {
    return graph->AddConstant(absl::StrCat(name, "_", what), Tensor::From<int64_t>(DType::kI64, {1}, {value}));
  };
  const ecg::ValueId begin = number("begin", segment.begin), end = number("end", segment.end);
  const ecg::ValueId along = number("axis", axis);
  return graph->node(graph->AddNode("Slice", name, {segment.value, begin, end, along}, {}, {type}, {name})).outputs[0];
}

}  // namespace

ecg::ValueId AddSegments(const std::vector<Segment>& segments, int axis, const std::string& name, ecg::Graph* graph) {
  std::vector<ecg::ValueId> parts;
  int64_t extent = 0;
  for (size_t s = 0; s < segments.size(); ++s) {
    parts.push_back(AddSegment(segments[s], axis, absl::StrCat(name, "_", s), graph));
    extent += segments[s].end - segments[s].begin;
  }
  if (parts.size() == 1) return parts[0];
  ecg::ValueType type = graph->value(parts[0]).type;
  type.shape[axis] = extent;
  ecg::Attributes attributes;
  attributes.Set("axis", int64_t{axis});
  return graph->node(graph->AddNode("Concat", name, std::move(parts), std::move(attributes), {type}, {name}))
      .outputs[0];
}

}  // namespace fusion::ops

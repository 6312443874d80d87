#include "compiler/movement/library_call_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fusion::movement {
namespace {

std::string Text(const LibraryProduct& p) {
  std::string text = absl::StrCat("b", p.d, "[", p.m, ", ", p.n, "] pitch ", p.d_pitch, " = b", p.a,
                                  p.a_along_depth ? " along depth" : "", " pitch ", p.a_pitch, " * b", p.b,
                                  p.b_along_depth ? " along depth" : "", " pitch ", p.b_pitch, " depth ", p.depth,
                                  p.bias >= 0 ? absl::StrCat(" + b", p.bias) : "", p.tf32 ? " tf32" : "");
  if (p.batches > 1) {
    absl::StrAppend(&text, " batches ", p.batches, " of ", p.d_batch, ", ", p.a_batch, ", ", p.b_batch);
  }
  return text;
}

std::string Text(const LibraryConvolution& c) {
  const auto list = [](const auto& numbers) { return absl::StrJoin(numbers, ", "); };
  return absl::StrCat("b", c.y, "[", list(c.y_extents()), "] pitch ", list(c.y_pitch), " = b", c.x, "[",
                      list(c.x_extents()), "] pitch ", list(c.x_pitch), " * b", c.w, "[", list(c.w_extents()), "]",
                      c.channels_last ? " channels last" : "", " groups ", c.groups, " stride ", list(c.stride),
                      " dilation ", list(c.dilation), " pad ", list(c.pad), c.tf32 ? " tf32" : "");
}

}  // namespace

std::string LibraryCallText(const LibraryCall& call) {
  return std::visit([](const auto& one) { return Text(one); }, call);
}

}  // namespace fusion::movement

#include "compiler/ops/shared/window.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

constexpr int64_t kLargest = int64_t{1} << 40;  // limit of any stride, pad, dilation or kernel; keeps products in range

}  // namespace

std::vector<te::Index> Window::At(const std::vector<te::Index>& i, const std::vector<te::Index>& k) const {
  std::vector<te::Index> at;
  at.reserve(spatial());
  for (int d = 0; d < spatial(); ++d) at.push_back(i[d] * strides[d] + k[d] * dilations[d] - te::Index(before[d]));
  return at;
}

bool Window::ReadsOutside() const {
  for (int d = 0; d < spatial(); ++d) {
    if (before[d] > 0 || (out[d] - 1) * strides[d] + Span(d) - before[d] > in[d]) return true;
  }
  return false;
}

absl::StatusOr<Shape> SpatialInts(const OpContext& context, const char* name, int spatial, int64_t otherwise) {
  if (!context.attrs.Has(name)) return Shape(spatial, otherwise);
  Shape values = context.attrs.Ints(name);
  if (static_cast<int>(values.size()) != spatial) {
    return context.Error(absl::StrCat(name, " has ", values.size(), " values for ", spatial, " spatial dimensions"));
  }
  for (int64_t value : values) {
    if (value < 0 || value > kLargest) return context.Error(absl::StrCat(name, " has the value ", value));
  }
  return values;
}

absl::Status SplitPads(const OpContext& context, int spatial, Shape* before, Shape* after) {
  const Shape pads = context.attrs.Ints("pads", Shape(2 * spatial, 0));
  if (static_cast<int>(pads.size()) != 2 * spatial) {
    return context.Error(absl::StrCat("pads has ", pads.size(), " values for ", spatial, " spatial dimensions"));
  }
  for (int64_t pad : pads) {
    if (pad < 0 || pad > kLargest) return context.Error(absl::StrCat("pads has the value ", pad));
  }
  before->assign(pads.begin(), pads.begin() + spatial);
  after->assign(pads.begin() + spatial, pads.end());
  return absl::OkStatus();
}

absl::StatusOr<Window> MakeWindow(const OpContext& context, Shape kernel) {
  if (context.Rank(0) < 3) {
    return context.Error(absl::StrCat("input ", ShapeToString(context.ShapeOf(0)), " has no spatial dimensions"));
  }
  Window w;
  w.in.assign(context.ShapeOf(0).begin() + 2, context.ShapeOf(0).end());
  const int spatial = static_cast<int>(w.in.size());
  if (static_cast<int>(kernel.size()) != spatial) {
    return context.Error(
        absl::StrCat("kernel ", ShapeToString(kernel), " does not fit the input ", ShapeToString(context.ShapeOf(0))));
  }
  w.kernel = std::move(kernel);
  ASSIGN_OR_RETURN(w.strides, SpatialInts(context, "strides", spatial, 1));
  ASSIGN_OR_RETURN(w.dilations, SpatialInts(context, "dilations", spatial, 1));
  const std::string auto_pad = context.attrs.String("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID") {
    return context.Error(absl::StrCat("auto_pad '", auto_pad, "' is unknown"));
  }
  if (auto_pad == "NOTSET") {
    RETURN_IF_ERROR(SplitPads(context, spatial, &w.before, &w.after));
  } else {
    w.before = w.after = Shape(spatial, 0);
  }
  const bool ceil_mode = context.attrs.Int("ceil_mode") != 0;
  for (int d = 0; d < spatial; ++d) {
    if (w.kernel[d] < 1 || w.kernel[d] > kLargest || w.strides[d] < 1 || w.dilations[d] < 1) {
      return context.Error(absl::StrCat("kernel ", ShapeToString(w.kernel), ", strides ", ShapeToString(w.strides),
                                        " and dilations ", ShapeToString(w.dilations), " must be positive"));
    }
    if (w.dilations[d] > kLargest / w.kernel[d]) return context.Error("dilated kernel is out of range");
    if (same) {
      w.out.push_back((w.in[d] + w.strides[d] - 1) / w.strides[d]);
      const int64_t total = std::max<int64_t>(0, (w.out[d] - 1) * w.strides[d] + w.Span(d) - w.in[d]);
      w.before[d] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.after[d] = total - w.before[d];
      continue;
    }
    const int64_t room = w.in[d] + w.before[d] + w.after[d] - w.Span(d);
    if (room < 0) {
      return context.Error(absl::StrCat("kernel ", ShapeToString(w.kernel), " is larger than the padded input ",
                                        ShapeToString(context.ShapeOf(0))));
    }
    int64_t out = room / w.strides[d] + 1;
    if (ceil_mode && room % w.strides[d] != 0 && out * w.strides[d] < w.in[d] + w.before[d]) ++out;
    w.out.push_back(out);
  }
  return w;
}

te::Scalar LoadWindow(const te::Builder& builder, te::TensorId tensor, std::vector<te::Index> indices, bool padded,
                      const te::Scalar& outside) {
  return te::Load(tensor, builder.info(tensor).dtype, std::move(indices), padded ? outside : nullptr);
}

std::vector<te::Index> DropUnit(std::vector<te::Index> indices, const Shape& shape) {
  for (size_t d = 0; d < indices.size(); ++d) {
    if (shape[d] == 1) indices[d] = te::Index(0);
  }
  return indices;
}

}  // namespace fusion::ops

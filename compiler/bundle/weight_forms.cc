#include "compiler/bundle/weight_forms.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/bundle/program_layout.h"
#include "compiler/bundle/weights.h"
#include "compiler/movement/kernel.h"

namespace fusion {
namespace {

std::string InWords(const movement::Pack& pack) {
  Shape box;
  for (const te::Axis& axis : pack.axes) {
    if (axis.extent > 1) box.push_back(axis.extent);
  }
  return absl::StrCat(pack.transform.by_dimension.empty() ? "" : "transformed, ", "packed ", ShapeToString(box));
}

}  // namespace

void AddForms(const ecg::Graph& graph, const FusionKernel& fusion_kernel, Forms* forms) {
  const std::vector<const movement::Buffer*> buffers = ArgBuffers(fusion_kernel);
  for (size_t a = 0; a < fusion_kernel.args.size(); ++a) {
    const KernelArg& arg = fusion_kernel.args[a];
    if (arg.kind != KernelArg::Kind::kConstant || arg.value == ecg::kNone) continue;
    const Tensor& constant = *graph.value(arg.value).constant;
    const movement::Pack* pack = arg.pack < 0 ? nullptr : &fusion_kernel.kernel.packs[arg.pack];
    const bool plain = pack == nullptr || KeepsOrder(*pack, constant.num_elements());
    const int64_t bytes = plain ? constant.size_bytes() : movement::SizeBytes(*buffers[a]);
    auto [it, fresh] = forms->emplace(Form{constant.data(), plain ? "" : PackingText(*pack)}, FormFacts{});
    if (!fresh) continue;
    const HeldWeight held =
        Held({constant, plain ? nullptr : pack, constant.dtype(), constant.shape(), bytes, /*table=*/false});
    const char* part = held.covered_bytes < held.source_bytes ? "a part, " : "";
    it->second = {bytes, held.covered_bytes, held.source_bytes, graph.value(arg.value).name,
                  plain ? "as it is" : absl::StrCat(part, InWords(*pack))};
  }
}

}  // namespace fusion

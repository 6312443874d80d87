// libFuzzer target: reads any bytes as a model. Import must answer. A model that it accepts must be a legal graph,
// before and after simplification, and each of its operators must become legal tensor expressions or be refused.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/import.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/simplify/passes.h"

namespace {

void Require(const absl::Status& status, const char* when) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", when, status.ToString().c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int fd = memfd_create("model", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  fusion::onnx_import::ImportRequest request;
  request.model_path = absl::StrCat("/proc/self/fd/", fd);
  request.model_name = "model.onnx";
  const auto model = fusion::onnx_import::ImportOnnx(request);
  close(fd);
  if (!model.ok()) {
    if (absl::IsInternal(model.status())) Require(model.status(), "import");
    return 0;
  }
  Require(fusion::ecg::Verify(model->graph), "after import");
  const fusion::ecg::Graph simplified = fusion::simplify::Simplify(model->graph);
  Require(fusion::ecg::Verify(simplified), "after simplify");
  for (fusion::ecg::NodeId node = 0; node < static_cast<int>(simplified.nodes().size()); ++node) {
    const auto lowered = fusion::ops::LowerNodes(simplified, {node}, simplified.node(node).outputs);
    if (lowered.ok()) {
      Require(fusion::te::Verify(lowered->program), "lowered");
    } else if (absl::IsInternal(lowered.status())) {
      Require(lowered.status(), "lower");
    }
  }
  return 0;
}

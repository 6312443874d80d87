#include "runtime/devices/cuda/library_calls.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion::cuda {
namespace {

template <typename Library>
absl::Status OpenOnce(std::shared_ptr<Library>* library, const std::shared_ptr<const Context>& context,
                      const Memory& workspace, const char* leaves) {
  if (*library != nullptr) return absl::OkStatus();
  absl::StatusOr<std::shared_ptr<Library>> opened = Library::Open(context, workspace.data());
  if (!opened.ok()) {
    return Annotate(opened.status(),
                    absl::StrCat("the bundle leaves ", leaves, " (compiled with --tune off it needs none)"));
  }
  *library = *std::move(opened);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<BoundCall>> LibraryCalls::Plan(const LibraryCall& call, const Arguments& arguments,
                                                              std::shared_ptr<const Context> context) {
  if (workspace_.data() == 0) {
    ASSIGN_OR_RETURN(workspace_,
                     context->Allocate(static_cast<int64_t>(kLibraryWorkspaceBytes), "what libraries work in"));
  }
  return std::visit([&](const auto& one) { return PlanOne(one, arguments, context); }, call);
}

absl::StatusOr<std::unique_ptr<BoundCall>> LibraryCalls::PlanOne(const LibraryProduct& product,
                                                                 const Arguments& arguments,
                                                                 const std::shared_ptr<const Context>& context) {
  RETURN_IF_ERROR(OpenOnce(&products_, context, workspace_, "products of matrices to cuBLASLt"));
  const Argument a = arguments(product.a), d = arguments(product.d);
  ProductLibrary::Operands operands;
  operands.a = a.data, operands.b = arguments(product.b).data, operands.d = d.data;
  if (product.bias >= 0) operands.bias = arguments(product.bias).data;
  operands.operand = a.dtype, operands.result = d.dtype;
  return products_->Plan(product, operands);
}

absl::StatusOr<std::unique_ptr<BoundCall>> LibraryCalls::PlanOne(const LibraryConvolution& convolution,
                                                                 const Arguments& arguments,
                                                                 const std::shared_ptr<const Context>& context) {
  RETURN_IF_ERROR(OpenOnce(&convolutions_, context, workspace_, "convolutions to cuDNN"));
  const Argument x = arguments(convolution.x);
  ConvolutionLibrary::Operands operands;
  operands.x = x.data, operands.w = arguments(convolution.w).data, operands.y = arguments(convolution.y).data;
  operands.dtype = x.dtype;
  return convolutions_->Plan(convolution, operands);
}

}  // namespace fusion::cuda

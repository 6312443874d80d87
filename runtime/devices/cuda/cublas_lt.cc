#include "runtime/devices/cuda/cublas_lt.h"

#include <dlfcn.h>

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/bundle/manifest.h"
#include "runtime/devices/cuda/library_object.h"

namespace fusion::cuda {
namespace {

constexpr const char* kLibraries[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11",
                                      "/usr/local/cuda/lib64/libcublasLt.so"};

// The values of cublasComputeType_t, cudaDataType_t, cublasOperation_t, cublasLtEpilogue_t and attributes that are
// used.
constexpr int kCompute32F = 68, kCompute32FFastTf32 = 77;
constexpr int kReal32F = 0, kReal16F = 2;
constexpr int kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8;
constexpr int kBatchCount = 5, kBatchOffset = 6;
constexpr int kMaxWorkspaceBytes = 1, kMinAlignment[] = {5, 6, 7, 8};
constexpr uint32_t kEpilogueBias = 4;

using Handle = struct cublasLtContext*;
using Description = LibraryObject;
struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

// F(name, parameters)
#define FUSION_CUBLASLT_FUNCTIONS(F)                                                                             \
  F(Create, (Handle * handle))                                                                                   \
  F(Destroy, (Handle handle))                                                                                    \
  F(MatmulDescCreate, (Description * matmul, int compute_type, int scale_type))                                  \
  F(MatmulDescDestroy, (Description matmul))                                                                     \
  F(MatmulDescSetAttribute, (Description matmul, int attribute, const void* value, size_t size_bytes))           \
  F(MatrixLayoutCreate, (Description * layout, int type, uint64_t rows, uint64_t columns, int64_t pitch))        \
  F(MatrixLayoutDestroy, (Description layout))                                                                   \
  F(MatrixLayoutSetAttribute, (Description layout, int attribute, const void* value, size_t size_bytes))         \
  F(MatmulPreferenceCreate, (Description * preference))                                                          \
  F(MatmulPreferenceDestroy, (Description preference))                                                           \
  F(MatmulPreferenceSetAttribute, (Description preference, int attribute, const void* value, size_t size_bytes)) \
  F(MatmulAlgoGetHeuristic, (Handle handle, Description matmul, Description a, Description b, Description c,     \
                             Description d, Description preference, int wanted, Heuristic* results, int* count)) \
  F(Matmul,                                                                                                      \
    (Handle handle, Description matmul, const void* alpha, const void* a, Description a_layout, const void* b,   \
     Description b_layout, const void* beta, const void* c, Description c_layout, void* d, Description d_layout, \
     const Algorithm* algorithm, void* workspace, size_t workspace_bytes, StreamHandle stream))

struct Functions {
  size_t (*GetVersion)() = nullptr;
#define FUSION_CUBLASLT_MEMBER(name, parameters) int(*name) parameters = nullptr;
  FUSION_CUBLASLT_FUNCTIONS(FUSION_CUBLASLT_MEMBER)
#undef FUSION_CUBLASLT_MEMBER
};

absl::StatusOr<const Functions*> OpenLibrary() {
  void* library = nullptr;
  for (const char* name : kLibraries) {
    if (library == nullptr) library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  }
  if (library == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("no cuBLASLt on this machine (looked for ",
                                                      absl::StrJoin(kLibraries, ", "),
                                                      "): install the libraries of CUDA 11.4 or newer"));
  }
  static Functions functions;
  const char* missing = nullptr;
#define FUSION_CUBLASLT_RESOLVE(name, ...)                                                       \
  functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(library, "cublasLt" #name)); \
  if (functions.name == nullptr) missing = "cublasLt" #name;
  FUSION_CUBLASLT_RESOLVE(GetVersion)
  FUSION_CUBLASLT_FUNCTIONS(FUSION_CUBLASLT_RESOLVE)
#undef FUSION_CUBLASLT_RESOLVE
  if (missing != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("cuBLASLt has no ", missing, ": that of CUDA 11.4 or newer is needed"));
  }
  return &functions;
}

absl::StatusOr<const Functions*> LoadLibrary() {
  static const absl::StatusOr<const Functions*> functions = OpenLibrary();
  return functions;
}

absl::Status Check(int code, const char* what) {
  if (code == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cuBLASLt, ", what, ": status ", code));
}

int TypeOf(DType dtype) { return dtype == DType::kF16 ? kReal16F : kReal32F; }

class CublasLt : public ProductLibrary, public std::enable_shared_from_this<CublasLt> {
 public:
  CublasLt(const Functions* functions, std::shared_ptr<const Context> context, DevicePointer workspace)
      : functions_(*functions), context_(std::move(context)), workspace_(workspace) {}
  ~CublasLt() override {
    if (handle_ == nullptr) return;
    const Current current(*context_);
    functions_.Destroy(handle_);
  }

  absl::Status Start() { return Check(functions_.Create(&handle_), "starting"); }

  absl::StatusOr<std::unique_ptr<BoundCall>> Plan(const LibraryProduct& product, const Operands& operands) override;

  const Functions& functions() const { return functions_; }
  Handle handle() const { return handle_; }
  const Context& context() const { return *context_; }
  void* workspace() const { return ToPointer(workspace_); }

 private:
  const Functions& functions_;
  const std::shared_ptr<const Context> context_;
  const DevicePointer workspace_;
  Handle handle_ = nullptr;
};

class CublasLtProduct : public BoundCall {
 public:
  CublasLtProduct(std::shared_ptr<const CublasLt> library, const ProductLibrary::Operands& operands)
      : library_(std::move(library)),
        operands_(operands),
        matmul_(library_->functions().MatmulDescDestroy),
        a_(library_->functions().MatrixLayoutDestroy),
        b_(library_->functions().MatrixLayoutDestroy),
        d_(library_->functions().MatrixLayoutDestroy) {}

  // cuBLAS stores a matrix by columns: its rows are neighbours in memory, and its columns are `pitch` elements apart.
  absl::Status Plan(const LibraryProduct& p) {
    const Functions& lt = library_->functions();
    RETURN_IF_ERROR(
        Check(lt.MatmulDescCreate(matmul_.place(), p.tf32 ? kCompute32FFastTf32 : kCompute32F, kReal32F), "a product"));
    RETURN_IF_ERROR(SetProduct(kTransposeA, int32_t{p.a_along_depth}));
    RETURN_IF_ERROR(SetProduct(kTransposeB, int32_t{!p.b_along_depth}));
    if (p.bias >= 0) {
      RETURN_IF_ERROR(SetProduct(kEpilogue, kEpilogueBias));
      RETURN_IF_ERROR(SetProduct(kBiasPointer, operands_.bias));
    }
    RETURN_IF_ERROR(SetLayout(&a_, operands_.operand, p.a_along_depth ? p.depth : p.m, p.a_along_depth ? p.m : p.depth,
                              p.a_pitch, p.batches, p.a_batch));
    RETURN_IF_ERROR(SetLayout(&b_, operands_.operand, p.b_along_depth ? p.depth : p.n, p.b_along_depth ? p.n : p.depth,
                              p.b_pitch, p.batches, p.b_batch));
    RETURN_IF_ERROR(SetLayout(&d_, operands_.result, p.m, p.n, p.d_pitch, p.batches, p.d_batch));
    Owned preference(lt.MatmulPreferenceDestroy);
    RETURN_IF_ERROR(Check(lt.MatmulPreferenceCreate(preference.place()), "a preference"));
    const auto prefer = [&](int attribute, auto value) {
      return Check(lt.MatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value), "a preference");
    };
    RETURN_IF_ERROR(prefer(kMaxWorkspaceBytes, kLibraryWorkspaceBytes));
    for (const int attribute : kMinAlignment) RETURN_IF_ERROR(prefer(attribute, uint32_t{kBufferAlignBytes}));
    int count = 0;
    Heuristic found = {};
    RETURN_IF_ERROR(Check(lt.MatmulAlgoGetHeuristic(library_->handle(), matmul_.get(), a_.get(), b_.get(), d_.get(),
                                                    d_.get(), preference.get(), 1, &found, &count),
                          "choosing an algorithm"));
    if (count == 0) return absl::InternalError("cuBLASLt has no algorithm for a product");
    algorithm_ = found.algorithm;
    return Check(found.state, "choosing an algorithm");
  }

  absl::Status Enqueue() override {
    constexpr float kOne = 1, kZero = 0;
    return Check(library_->functions().Matmul(
                     library_->handle(), matmul_.get(), &kOne, ToPointer(operands_.a), a_.get(), ToPointer(operands_.b),
                     b_.get(), &kZero, ToPointer(operands_.d), d_.get(), ToPointer(operands_.d), d_.get(), &algorithm_,
                     library_->workspace(), kLibraryWorkspaceBytes, library_->context().stream()),
                 "multiplying");
  }

 private:
  template <typename T>
  absl::Status SetProduct(int attribute, T value) {
    return Check(library_->functions().MatmulDescSetAttribute(matmul_.get(), attribute, &value, sizeof value),
                 "a product");
  }

  absl::Status SetLayout(Owned* layout, DType dtype, int64_t rows, int64_t columns, int64_t pitch, int64_t batches,
                         int64_t batch) {
    const Functions& lt = library_->functions();
    RETURN_IF_ERROR(Check(lt.MatrixLayoutCreate(layout->place(), TypeOf(dtype), static_cast<uint64_t>(rows),
                                                static_cast<uint64_t>(columns), pitch),
                          "a matrix"));
    if (batches == 1) return absl::OkStatus();
    const auto count = static_cast<int32_t>(batches);
    RETURN_IF_ERROR(Check(lt.MatrixLayoutSetAttribute(layout->get(), kBatchCount, &count, sizeof count), "a matrix"));
    return Check(lt.MatrixLayoutSetAttribute(layout->get(), kBatchOffset, &batch, sizeof batch), "a matrix");
  }

  const std::shared_ptr<const CublasLt> library_;
  const ProductLibrary::Operands operands_;
  Owned matmul_, a_, b_, d_;
  Algorithm algorithm_ = {};
};

absl::StatusOr<std::unique_ptr<BoundCall>> CublasLt::Plan(const LibraryProduct& product, const Operands& operands) {
  auto planned = std::make_unique<CublasLtProduct>(shared_from_this(), operands);
  RETURN_IF_ERROR(planned->Plan(product));
  return planned;
}

}  // namespace

absl::StatusOr<std::string> ProductLibraryName() {
  ASSIGN_OR_RETURN(const Functions* functions, LoadLibrary());
  const size_t version = functions->GetVersion();  // since CUDA 11 the major version counts ten thousands
  return absl::StrCat("cuBLASLt ", version / 10000, ".", version % 10000 / 100, ".", version % 100);
}

absl::StatusOr<std::shared_ptr<ProductLibrary>> ProductLibrary::Open(std::shared_ptr<const Context> context,
                                                                     DevicePointer workspace) {
  ASSIGN_OR_RETURN(const Functions* functions, LoadLibrary());
  auto library = std::make_shared<CublasLt>(functions, std::move(context), workspace);
  RETURN_IF_ERROR(library->Start());
  return library;
}

}  // namespace fusion::cuda

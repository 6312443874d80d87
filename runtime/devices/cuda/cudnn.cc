#include "runtime/devices/cuda/cudnn.h"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/cuda/library_object.h"

namespace fusion::cuda {
namespace {

constexpr const char* kLibraries[] = {"libcudnn.so.9", "libcudnn.so.8", "/usr/local/cuda/lib64/libcudnn.so"};

// The values of cudnnDataType_t, cudnnTensorFormat_t, cudnnConvolutionMode_t, cudnnMathType_t and
// cudnnConvolutionFwdAlgo_t that are used.
constexpr int kFloat = 0, kHalf = 2;
constexpr int kChannelsFirst = 0, kChannelsLast = 1;
constexpr int kCrossCorrelation = 1;
constexpr int kDefaultMath = 0, kTensorMath = 1, kFmaMath = 3;
// Algorithms up to this one add up the products as they are: implicit matrix products with and without precomputed
// indices, an explicit matrix product, and direct sums. Fourier and Winograd transforms (4 to 7) lose digits, and
// spread a NaN to results that do not depend on it.
constexpr int kLastOfSums = 3;
constexpr int kAlgorithms = 8;

using Handle = struct cudnnContext*;
using Description = LibraryObject;
using Dimensions = std::array<int, 4>;
struct Performance {  // cudnnConvolutionFwdAlgoPerf_t
  int algorithm;
  int status;
  float milliseconds;
  size_t workspace_bytes;
  int determinism;
  int math;
  int reserved[3];
};

// F(name, parameters)
#define FUSION_CUDNN_FUNCTIONS(F)                                                                                      \
  F(Create, (Handle * handle))                                                                                         \
  F(Destroy, (Handle handle))                                                                                          \
  F(SetStream, (Handle handle, StreamHandle stream))                                                                   \
  F(CreateTensorDescriptor, (Description * tensor))                                                                    \
  F(DestroyTensorDescriptor, (Description tensor))                                                                     \
  F(SetTensorNdDescriptor, (Description tensor, int type, int dimensions, const int* extents, const int* pitches))     \
  F(CreateFilterDescriptor, (Description * filter))                                                                    \
  F(DestroyFilterDescriptor, (Description filter))                                                                     \
  F(SetFilterNdDescriptor, (Description filter, int type, int format, int dimensions, const int* extents))             \
  F(CreateConvolutionDescriptor, (Description * convolution))                                                          \
  F(DestroyConvolutionDescriptor, (Description convolution))                                                           \
  F(SetConvolutionNdDescriptor, (Description convolution, int dimensions, const int* pads, const int* strides,         \
                                 const int* dilations, int mode, int compute_type))                                    \
  F(SetConvolutionGroupCount, (Description convolution, int groups))                                                   \
  F(SetConvolutionMathType, (Description convolution, int math))                                                       \
  F(GetConvolutionForwardAlgorithm_v7, (Handle handle, Description x, Description w, Description convolution,          \
                                        Description y, int wanted, int* count, Performance* results))                  \
  F(GetConvolutionForwardWorkspaceSize, (Handle handle, Description x, Description w, Description convolution,         \
                                         Description y, int algorithm, size_t* size_bytes))                            \
  F(ConvolutionForward,                                                                                                \
    (Handle handle, const void* alpha, Description x_description, const void* x, Description w_description,            \
     const void* w, Description convolution, int algorithm, void* workspace, size_t workspace_bytes, const void* beta, \
     Description y_description, void* y))

struct Functions {
  size_t (*GetVersion)() = nullptr;
  const char* (*GetErrorString)(int status) = nullptr;
#define FUSION_CUDNN_MEMBER(name, parameters) int(*name) parameters = nullptr;
  FUSION_CUDNN_FUNCTIONS(FUSION_CUDNN_MEMBER)
#undef FUSION_CUDNN_MEMBER
};

absl::StatusOr<const Functions*> OpenLibrary() {
  void* library = nullptr;
  for (const char* name : kLibraries) {
    if (library == nullptr) library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  }
  if (library == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("no cuDNN on this machine (looked for ",
                                                      absl::StrJoin(kLibraries, ", "), "): install cuDNN 8 or 9"));
  }
  static Functions functions;
  const char* missing = nullptr;
#define FUSION_CUDNN_RESOLVE(name, ...)                                                       \
  functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(library, "cudnn" #name)); \
  if (functions.name == nullptr) missing = "cudnn" #name;
  FUSION_CUDNN_RESOLVE(GetVersion)
  FUSION_CUDNN_RESOLVE(GetErrorString)
  FUSION_CUDNN_FUNCTIONS(FUSION_CUDNN_RESOLVE)
#undef FUSION_CUDNN_RESOLVE
  if (missing != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("cuDNN has no ", missing, ": version 8 or 9 is needed"));
  }
  return &functions;
}

absl::StatusOr<const Functions*> LoadLibrary() {
  static const absl::StatusOr<const Functions*> functions = OpenLibrary();
  return functions;
}

absl::Status Check(const Functions& functions, int code, const char* what) {
  if (code == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cuDNN, ", what, ": ", functions.GetErrorString(code)));
}

int TypeOf(DType dtype) { return dtype == DType::kF16 ? kHalf : kFloat; }

template <size_t n>
std::array<int, n> Narrow(const std::array<int64_t, n>& numbers) {  // validation has checked that they fit
  std::array<int, n> narrow;
  for (size_t i = 0; i < n; ++i) narrow[i] = static_cast<int>(numbers[i]);
  return narrow;
}

class Cudnn : public ConvolutionLibrary, public std::enable_shared_from_this<Cudnn> {
 public:
  Cudnn(const Functions* functions, std::shared_ptr<const Context> context, DevicePointer workspace)
      : functions_(*functions), context_(std::move(context)), workspace_(workspace) {}
  ~Cudnn() override {
    if (handle_ == nullptr) return;
    const Current current(*context_);
    functions_.Destroy(handle_);
  }

  absl::Status Start() {
    RETURN_IF_ERROR(Check(functions_, functions_.Create(&handle_), "starting"));
    return Check(functions_, functions_.SetStream(handle_, context_->stream()), "taking the stream");
  }

  absl::StatusOr<std::unique_ptr<BoundCall>> Plan(const LibraryConvolution& convolution,
                                                  const Operands& operands) override;

  const Functions& functions() const { return functions_; }
  Handle handle() const { return handle_; }
  void* workspace() const { return ToPointer(workspace_); }

 private:
  const Functions& functions_;
  const std::shared_ptr<const Context> context_;
  const DevicePointer workspace_;
  Handle handle_ = nullptr;
};

class CudnnConvolution : public BoundCall {
 public:
  CudnnConvolution(std::shared_ptr<const Cudnn> library, const ConvolutionLibrary::Operands& operands)
      : library_(std::move(library)),
        operands_(operands),
        x_(library_->functions().DestroyTensorDescriptor),
        w_(library_->functions().DestroyFilterDescriptor),
        y_(library_->functions().DestroyTensorDescriptor),
        convolution_(library_->functions().DestroyConvolutionDescriptor) {}

  absl::Status Plan(const LibraryConvolution& c) {
    const Functions& dnn = library_->functions();
    RETURN_IF_ERROR(SetTensor(&x_, c.x_extents(), c.x_pitch));
    RETURN_IF_ERROR(SetTensor(&y_, c.y_extents(), c.y_pitch));
    RETURN_IF_ERROR(Checked(dnn.CreateFilterDescriptor(w_.place()), "a filter"));
    RETURN_IF_ERROR(Checked(
        dnn.SetFilterNdDescriptor(w_.get(), TypeOf(operands_.dtype), c.channels_last ? kChannelsLast : kChannelsFirst,
                                  4, Narrow(c.w_extents()).data()),
        "a filter"));
    RETURN_IF_ERROR(Checked(dnn.CreateConvolutionDescriptor(convolution_.place()), "a convolution"));
    RETURN_IF_ERROR(
        Checked(dnn.SetConvolutionNdDescriptor(convolution_.get(), 2, Narrow(c.pad).data(), Narrow(c.stride).data(),
                                               Narrow(c.dilation).data(), kCrossCorrelation, kFloat),
                "a convolution"));
    RETURN_IF_ERROR(
        Checked(dnn.SetConvolutionGroupCount(convolution_.get(), static_cast<int>(c.groups)), "a convolution"));
    return ChooseAlgorithm(operands_.dtype == DType::kF16 ? kTensorMath : c.tf32 ? kDefaultMath : kFmaMath);
  }

  absl::Status Enqueue() override {
    constexpr float kOne = 1, kZero = 0;
    return Checked(library_->functions().ConvolutionForward(library_->handle(), &kOne, x_.get(), ToPointer(operands_.x),
                                                            w_.get(), ToPointer(operands_.w), convolution_.get(),
                                                            algorithm_, library_->workspace(), workspace_bytes_, &kZero,
                                                            y_.get(), ToPointer(operands_.y)),
                   "convolving");
  }

 private:
  absl::Status Checked(int code, const char* what) const { return Check(library_->functions(), code, what); }

  absl::Status SetTensor(Owned* tensor, const std::array<int64_t, 4>& extents, const std::array<int64_t, 4>& pitch) {
    const Functions& dnn = library_->functions();
    RETURN_IF_ERROR(Checked(dnn.CreateTensorDescriptor(tensor->place()), "an image"));
    return Checked(dnn.SetTensorNdDescriptor(tensor->get(), TypeOf(operands_.dtype), 4, Narrow(extents).data(),
                                             Narrow(pitch).data()),
                   "an image");
  }

  // `math`: the least exact math type that may be used.
  absl::Status ChooseAlgorithm(int math) {
    const Functions& dnn = library_->functions();
    const auto set_math = [&](int type) {
      return Checked(dnn.SetConvolutionMathType(convolution_.get(), type), "a convolution");
    };
    RETURN_IF_ERROR(set_math(math));
    std::array<Performance, kAlgorithms> proposed = {};
    int count = 0;
    RETURN_IF_ERROR(
        Checked(dnn.GetConvolutionForwardAlgorithm_v7(library_->handle(), x_.get(), w_.get(), convolution_.get(),
                                                      y_.get(), kAlgorithms, &count, proposed.data()),
                "choosing an algorithm"));
    for (int i = 0; i < count; ++i) {
      const Performance& one = proposed[i];
      // Under kFmaMath, kDefaultMath means the same. A math type that converts operands to a shorter type is never
      // taken.
      const bool plain = one.math == kDefaultMath || one.math == kFmaMath;
      const bool allowed = plain || (one.math == kTensorMath && math != kFmaMath);
      if (one.status != 0 || one.algorithm > kLastOfSums || !allowed) continue;
      if (math != kFmaMath) RETURN_IF_ERROR(set_math(one.math));
      size_t bytes = 0;
      const int known = dnn.GetConvolutionForwardWorkspaceSize(library_->handle(), x_.get(), w_.get(),
                                                               convolution_.get(), y_.get(), one.algorithm, &bytes);
      if (known != 0 || bytes > kLibraryWorkspaceBytes) continue;
      algorithm_ = one.algorithm;
      workspace_bytes_ = bytes;
      return absl::OkStatus();
    }
    return absl::InternalError(absl::StrCat("cuDNN has no algorithm for a convolution: of ", count,
                                            " that it proposes, none adds up products in a workspace of ",
                                            kLibraryWorkspaceBytes, " bytes"));
  }

  const std::shared_ptr<const Cudnn> library_;
  const ConvolutionLibrary::Operands operands_;
  Owned x_, w_, y_, convolution_;
  int algorithm_ = 0;
  size_t workspace_bytes_ = 0;
};

absl::StatusOr<std::unique_ptr<BoundCall>> Cudnn::Plan(const LibraryConvolution& convolution,
                                                       const Operands& operands) {
  auto planned = std::make_unique<CudnnConvolution>(shared_from_this(), operands);
  RETURN_IF_ERROR(planned->Plan(convolution));
  return planned;
}

}  // namespace

absl::StatusOr<std::string> ConvolutionLibraryName() {
  ASSIGN_OR_RETURN(const Functions* functions, LoadLibrary());
  const size_t version = functions->GetVersion();
  const size_t major = version >= 90000 ? 10000 : 1000;  // version 9 changed the encoding
  return absl::StrCat("cuDNN ", version / major, ".", version % major / 100, ".", version % 100);
}

absl::StatusOr<std::shared_ptr<ConvolutionLibrary>> ConvolutionLibrary::Open(std::shared_ptr<const Context> context,
                                                                             DevicePointer workspace) {
  ASSIGN_OR_RETURN(const Functions* functions, LoadLibrary());
  auto library = std::make_shared<Cudnn>(functions, std::move(context), workspace);
  RETURN_IF_ERROR(library->Start());
  return library;
}

}  // namespace fusion::cuda

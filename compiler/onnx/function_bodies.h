// The model's own functions (FunctionProto): operators that are defined as graphs of others.
#ifndef FUSION_COMPILER_ONNX_FUNCTION_BODIES_H_
#define FUSION_COMPILER_ONNX_FUNCTION_BODIES_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "onnx/onnx_pb.h"

namespace fusion::onnx_import {

struct FunctionBody {
  onnx::GraphProto graph;  // inputs and outputs by name, without types
  std::map<std::string, int64_t> opsets;
};

class FunctionBodies {
 public:
  // `model` must outlive the object.
  explicit FunctionBodies(const onnx::ModelProto& model);

  // Returns nullptr when the model has no such function.
  const onnx::FunctionProto* Find(const std::string& domain, const std::string& op) const;

  // Returns the function's graph for one call, which lives as long as this object. Attributes that the body refers to
  // are the call's, else the function's defaults; an attribute that is neither is left out, like an absent optional
  // one. INVALID_ARGUMENT naming the call: too many inputs or outputs, opsets that are not supported.
  // RESOURCE_EXHAUSTED when all bodies together are too large (limits.h).
  absl::StatusOr<FunctionBody*> BodyFor(const onnx::FunctionProto& function, const onnx::NodeProto& call);

 private:
  std::map<std::pair<std::string, std::string>, const onnx::FunctionProto*> functions_;
  std::map<const onnx::NodeProto*, FunctionBody*> body_of_call_;
  std::deque<FunctionBody> bodies_;
  int64_t bytes_left_;  // of copies
};

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_FUNCTION_BODIES_H_

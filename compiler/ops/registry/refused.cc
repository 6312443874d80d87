#include "compiler/ops/registry/refused.h"

namespace fusion::ops {
namespace {

struct Refused {
  const char* op;  // an operator's name, or a domain with its final dot
  const char* reason;
};

constexpr Refused kRefused[] = {
    {"Bernoulli", "random numbers"},
    {"Multinomial", "random numbers"},
    {"RandomNormal", "random numbers"},
    {"RandomNormalLike", "random numbers"},
    {"RandomUniform", "random numbers"},
    {"RandomUniformLike", "random numbers"},
    {"RegexFullMatch", "strings"},
    {"StringConcat", "strings"},
    {"StringNormalizer", "strings"},
    {"StringSplit", "strings"},
    {"TfIdfVectorizer", "strings"},
    {"ImageDecoder", "image files"},
    {"ai.onnx.ml.", "classical machine learning"},
    {"ai.onnx.preview.training.", "training"},
    {"ai.onnx.training.", "training"},
};

}  // namespace

std::string RefusalReason(const std::string& op) {
  for (const Refused& refused : kRefused) {
    const std::string name = refused.op;
    const bool domain = name.back() == '.';
    if (domain ? op.rfind(name, 0) == 0 : op == name) return refused.reason;
  }
  return "";
}

}  // namespace fusion::ops

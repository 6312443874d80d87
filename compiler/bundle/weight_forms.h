// The forms in which kernels read constants: as they are, or packed in some way.
#ifndef FUSION_COMPILER_BUNDLE_WEIGHT_FORMS_H_
#define FUSION_COMPILER_BUNDLE_WEIGHT_FORMS_H_

#include <cstdint>
#include <map>
#include <string>

#include "compiler/ecg/graph.h"
#include "compiler/kernels/fusion_kernel.h"

namespace fusion {

struct Form {
  const void* source = nullptr;  // memory of the constant
  std::string packing;           // PackingText; empty: as it is
  bool operator<(const Form& other) const {
    return source != other.source ? source < other.source : packing < other.packing;
  }
  bool operator==(const Form& other) const { return source == other.source && packing == other.packing; }
};

struct FormFacts {
  int64_t bytes = 0;         // in the bundle
  int64_t covered = 0;       // of the source
  int64_t source_bytes = 0;  // of the whole source
  std::string name;          // of the constant in the graph
  std::string words;         // the form for people: "packed [8, 256, 128]"
};
using Forms = std::map<Form, FormFacts>;

// Adds the forms of the constants that a kernel reads. A packing that keeps the order counts as none.
void AddForms(const ecg::Graph& graph, const FusionKernel& fusion_kernel, Forms* forms);

}  // namespace fusion

#endif  // FUSION_COMPILER_BUNDLE_WEIGHT_FORMS_H_

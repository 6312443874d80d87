// The layouts of a graph's values.
#ifndef FUSION_COMPILER_LAYOUT_VALUE_LAYOUTS_H_
#define FUSION_COMPILER_LAYOUT_VALUE_LAYOUTS_H_

#include <map>

#include "compiler/ecg/graph.h"
#include "compiler/layout/layout.h"

namespace fusion {

using ValueLayouts = std::map<ecg::ValueId, Layout>;  // absent: plain

}  // namespace fusion

#endif  // FUSION_COMPILER_LAYOUT_VALUE_LAYOUTS_H_

#include "compiler/schedule/tile/tile_form.h"

#include "compiler/movement/vector_form.h"

namespace fusion {

bool HasTileForm(const te::Scalar& body) {
  bool known = true;
  te::Visit(body, [&](const te::ScalarNode& node) { known = known && movement::HasVectorForm(node); });
  return known;
}

}  // namespace fusion

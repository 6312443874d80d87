#include "compiler/movement/renumber_buffers.h"

namespace fusion::movement {

void RenumberBuffers(const std::vector<int>& number, Step* each) {
  Step& step = *each;
  const auto map = [&](te::TensorId buffer) { return number[buffer]; };
  const auto in_index = [&](te::Index* index) { *index = te::MapTensors(*index, map); };
  const auto in_bound = [&](std::optional<Bound>* bound) {
    if (*bound) in_index(&(*bound)->index);
  };
  for (te::Scalar& s : step.body) s = te::MapTensors(s, map);
  for (te::Scalar& s : step.then) s = te::MapTensors(s, map);
  if (step.reduction) {
    for (te::Scalar& s : step.reduction->init) s = te::MapTensors(s, map);
    for (te::Comparison& c : step.reduction->pred) in_index(&c.lhs), in_index(&c.rhs);
  }
  for (Loop& loop : step.loops) {
    if (loop.limit) in_index(&*loop.limit);
  }
  for (Store& store : step.stores) {
    store.buffer = number[store.buffer];
    in_index(&store.address);
  }
  in_bound(&step.lane_limit);
  if (step.turn) {
    for (RingRows& rows : step.turn->reads) rows.buffer = number[rows.buffer];
    for (RingRows& rows : step.turn->writes) rows.buffer = number[rows.buffer];
  }
  if (step.look) step.look->buffer = number[step.look->buffer];
  if (step.runs_if) step.runs_if->buffer = number[step.runs_if->buffer];
  if (auto* library = step.As<LibraryCall>()) {
    for (int* buffer : ArgumentsOf(*library)) *buffer = number[*buffer];
  } else if (auto* routine = step.As<RoutineCall>()) {
    for (int& buffer : routine->inputs) buffer = number[buffer];
  } else if (auto* tile = step.As<RegisterTile>()) {
    for (Prefetch& prefetch : tile->prefetch) prefetch.buffer = number[prefetch.buffer];
    in_bound(&tile->store_limit);
  } else if (auto* threadgroup = step.As<ThreadgroupTile>()) {
    in_bound(&threadgroup->store_limit);
  } else if (auto* vectors = step.As<VectorMap>()) {
    for (int& buffer : vectors->read_next.buffers) buffer = number[buffer];
  }
}

}  // namespace fusion::movement

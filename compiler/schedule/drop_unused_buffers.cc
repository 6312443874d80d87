#include "compiler/schedule/drop_unused_buffers.h"

#include <utility>
#include <vector>

namespace fusion {
namespace {

std::vector<bool> UsedBuffers(const movement::Kernel& kernel) {
  std::vector<bool> used(kernel.buffers.size(), false);
  for (const movement::Phase& phase : kernel.phases) {
    movement::VisitSteps(phase, [&](const movement::Step& step) {
      movement::VisitBuffers(step, [&](int buffer) { used[buffer] = true; });
    });
  }
  return used;
}

void Renumber(const std::vector<int>& number, movement::Step* each) {
  const auto map = [&](te::TensorId buffer) { return number[buffer]; };
  movement::Step& step = *each;
  for (te::Scalar& s : step.body) s = te::MapTensors(s, map);
  for (te::Scalar& s : step.then) s = te::MapTensors(s, map);
  if (step.reduction) {
    for (te::Scalar& s : step.reduction->init) s = te::MapTensors(s, map);
    for (te::Comparison& c : step.reduction->pred) {
      c.lhs = te::MapTensors(c.lhs, map);
      c.rhs = te::MapTensors(c.rhs, map);
    }
  }
  for (movement::Store& store : step.stores) store.buffer = number[store.buffer];
  if (step.turn) {
    for (movement::RingRows& rows : step.turn->reads) rows.buffer = number[rows.buffer];
    for (movement::RingRows& rows : step.turn->writes) rows.buffer = number[rows.buffer];
  }
  if (step.look) step.look->buffer = number[step.look->buffer];
  if (step.runs_if) step.runs_if->buffer = number[step.runs_if->buffer];
  if (auto* library = step.As<LibraryCall>()) {
    for (int* buffer : ArgumentsOf(*library)) *buffer = number[*buffer];
  } else if (auto* routine = step.As<movement::RoutineCall>()) {
    for (int& buffer : routine->inputs) buffer = number[buffer];
  } else if (auto* tile = step.As<movement::RegisterTile>()) {
    for (movement::Prefetch& prefetch : tile->prefetch) prefetch.buffer = number[prefetch.buffer];
  } else if (auto* vectors = step.As<movement::VectorMap>()) {
    for (int& buffer : vectors->read_next.buffers) buffer = number[buffer];
  }
}

}  // namespace

void DropUnusedBuffers(movement::Kernel* kernel) {
  const std::vector<bool> used = UsedBuffers(*kernel);
  std::vector<int> number(kernel->buffers.size(), -1);
  std::vector<movement::Buffer> kept;
  for (const bool argument : {true, false}) {
    for (size_t b = 0; b < kernel->buffers.size(); ++b) {
      if (!used[b] || movement::IsArgument(kernel->buffers[b]) != argument) continue;
      number[b] = static_cast<int>(kept.size());
      kept.push_back(kernel->buffers[b]);
    }
  }
  for (movement::Phase& phase : kernel->phases) {
    movement::VisitSteps(&phase, [&](movement::Step* step) { Renumber(number, step); });
  }
  kernel->buffers = std::move(kept);
}

}  // namespace fusion

// The text of a library call in the printed movement graph; it is part of a kernel's key.
#ifndef FUSION_COMPILER_MOVEMENT_LIBRARY_CALL_TEXT_H_
#define FUSION_COMPILER_MOVEMENT_LIBRARY_CALL_TEXT_H_

#include <string>

#include "runtime/bundle/library_call.h"

namespace fusion::movement {

std::string LibraryCallText(const LibraryCall& call);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_LIBRARY_CALL_TEXT_H_

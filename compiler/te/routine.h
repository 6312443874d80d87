// Routines: what no tensor expression says (sorting, compaction), as named algorithms over whole row-major tensors.
// Each is a template in routines/<name>.inc, freestanding C++, compiled in here for the interpreter and printed by
// backends into kernels, so that both run the same text.
//
//   template <class T> void name(void* const* args, void* scratch, i64 begin, i64 end, const i64* params)
//
// runs tasks [begin, end): args are the inputs, then the outputs; T is the first input's element type.
#ifndef FUSION_COMPILER_TE_ROUTINE_H_
#define FUSION_COMPILER_TE_ROUTINE_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "compiler/te/program.h"

namespace fusion::te {

using RoutineFunction = void (*)(void* const* args, void* scratch, int64_t begin, int64_t end, const int64_t* params);

// The te's routine exists and takes and makes tensors of these types. INVALID_ARGUMENT naming the routine. Shapes and
// parameters are the lowering's to get right.
absl::Status CheckRoutine(const Program& program, const Te& te);

// Scratch of n keys of such elements, and of n elements that are sorted with them.
int64_t KeysBytes(DType dtype, int64_t n);
int64_t KeyedBytes(DType dtype, int64_t n);

// Of a verified te.
RoutineFunction RoutineFunctionOf(const Program& program, const Te& te);

// C++ text that defines the named routines in a namespace `routines`; "" for none. It needs i64, i32,
// u64, u32, u16, u8, and h2f, bf2f, f2h and f2bf.
std::string RoutineSource(const std::set<std::string>& names);

// `routines::top_k<float>`.
std::string RoutineInstance(const std::string& name, DType first_input);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_ROUTINE_H_

// Routines: named algorithms over whole row-major tensors, for computations that no tensor expression can describe
// (sorting, compaction). Each is a template in routines/<name>.inc, freestanding C++. It is compiled in here for the
// interpreter, and backends print it into kernels, so that both run the same text.
//
//   template <class T> void name(void* const* args, void* scratch, i64 begin, i64 end, const i64* params)
//
// It runs tasks [begin, end). args are the inputs, then the outputs; T is the first input's element type.
#ifndef FUSION_COMPILER_TE_ROUTINES_ROUTINE_H_
#define FUSION_COMPILER_TE_ROUTINES_ROUTINE_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "compiler/te/program/program.h"

namespace fusion::te {

using RoutineFunction = void (*)(void* const* args, void* scratch, int64_t begin, int64_t end, const int64_t* params);

// Checks that the te's routine exists and that its tensors have the types of the routine. INVALID_ARGUMENT naming the
// routine. The lowering is responsible for shapes and parameters.
absl::Status CheckRoutine(const Program& program, const Te& te);

// KeysBytes returns the scratch for n keys of such elements, KeyedBytes that for n elements that are sorted with their
// keys.
int64_t KeysBytes(DType dtype, int64_t n);
int64_t KeyedBytes(DType dtype, int64_t n);

// The te must be verified.
RoutineFunction RoutineFunctionOf(const Program& program, const Te& te);

// Returns C++ text that defines the named routines in a namespace `routines`; "" for none. The text needs i64, i32,
// u64, u32, u16, u8, and h2f, bf2f, f2h and f2bf.
std::string RoutineSource(const std::set<std::string>& names);

// Returns the name of the template instance, `routines::top_k<float>`.
std::string RoutineInstance(const std::string& name, DType first_input);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_ROUTINES_ROUTINE_H_

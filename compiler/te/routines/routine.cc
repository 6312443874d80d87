#include "compiler/te/routines/routine.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/te/routines/routine_texts.h"

namespace fusion::te {
namespace routines {

using i64 = int64_t;
using i32 = int32_t;
using u64 = uint64_t;
using u32 = uint32_t;
using u16 = uint16_t;
using u8 = uint8_t;
float h2f(u16 bits) { return HalfToFloat(bits); }
float bf2f(u16 bits) { return BFloat16ToFloat(bits); }
u16 f2h(float x) { return FloatToHalf(x); }
u16 f2bf(float x) { return FloatToBFloat16(x); }

#include "compiler/te/routines/order.inc"
// combine.inc and keys.inc use order.inc.
#include "compiler/te/routines/combine.inc"
#include "compiler/te/routines/keys.inc"
// The routines use all three.
#include "compiler/te/routines/bit_cast.inc"
#include "compiler/te/routines/compress.inc"
#include "compiler/te/routines/non_max_suppression.inc"
#include "compiler/te/routines/non_zero.inc"
#include "compiler/te/routines/scatter_elements.inc"
#include "compiler/te/routines/scatter_nd.inc"
#include "compiler/te/routines/top_k.inc"
#include "compiler/te/routines/unique.inc"

}  // namespace routines

namespace {

// `types`: the inputs' types, then behind `>` the outputs'. T is the routine's element type, any of DType; `?` is any
// type of the same width.
struct Entry {
  const char* name;
  const char* types;
  RoutineFunction functions[kNumDTypes];  // in the order of DType; null for a type that the routine does not support
  const char* shared = nullptr;           // the text that it uses besides order.inc
};

#define ALL_TYPES(f)                                                                                         \
  {                                                                                                          \
    f<float>, f<double>, f<routines::f16>, f<routines::bf16>, f<int8_t>, f<int16_t>, f<int32_t>, f<int64_t>, \
        f<uint8_t>, f<uint16_t>, f<uint32_t>, f<uint64_t>, f<uint8_t>                                        \
  }

constexpr const char* kElementTypes[kNumDTypes] = {
    "float", "double", "routines::f16", "routines::bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "u8"};

const Entry kEntries[] = {
    {"bit_cast", "T>?", ALL_TYPES(routines::bit_cast)},
    {"compress", "T,bool>T,i64", ALL_TYPES(routines::compress)},
    {"non_max_suppression", "f32,f32,i64,f32,f32,i64>i64,i64", {routines::non_max_suppression<float>}, "keys"},
    {"non_zero", "T>i64,i64", ALL_TYPES(routines::non_zero)},
    {"scatter_elements", "T,i64,T>T", ALL_TYPES(routines::scatter_elements), "combine"},
    {"scatter_nd", "T,i64,T>T", ALL_TYPES(routines::scatter_nd), "combine"},
    {"top_k", "T>T,i64", ALL_TYPES(routines::top_k), "keys"},
    {"unique", "T,i64>T,i64,i64,i64,i64", ALL_TYPES(routines::unique), "keys"},
};
#undef ALL_TYPES

const Entry* Find(const std::string& name) {
  const auto* entry =
      std::find_if(std::begin(kEntries), std::end(kEntries), [&](const Entry& e) { return name == e.name; });
  return entry == std::end(kEntries) ? nullptr : entry;
}

}  // namespace

absl::Status CheckRoutine(const Program& program, const Te& te) {
  const Routine& routine = *te.routine;
  const Entry* entry = Find(routine.name);
  if (entry == nullptr) return absl::InvalidArgumentError(absl::StrCat("there is no routine '", routine.name, "'"));
  std::string types, given;
  const DType element = routine.inputs.empty() ? DType::kF32 : program.tensors[routine.inputs[0]].dtype;
  for (TensorId input : routine.inputs) {
    absl::StrAppend(&given, given.empty() ? "" : ",", DTypeName(program.tensors[input].dtype));
  }
  for (size_t o = 0; o < te.outputs.size(); ++o) {
    absl::StrAppend(&given, o == 0 ? ">" : ",", DTypeName(program.tensors[te.outputs[o]].dtype));
  }
  for (const char* c = entry->types; *c != 0; ++c) {
    const bool same_width =
        *c == '?' && !te.outputs.empty() && DTypeBytes(program.tensors[te.outputs[0]].dtype) == DTypeBytes(element);
    types += *c == 'T'    ? DTypeName(element)
             : same_width ? DTypeName(program.tensors[te.outputs[0]].dtype)
                          : std::string(1, *c);
  }
  if (entry->functions[static_cast<int>(element)] == nullptr) {
    return absl::UnimplementedError(absl::StrCat("routine ", routine.name, " has no form for ", DTypeName(element)));
  }
  if (given != types) {
    return absl::InvalidArgumentError(absl::StrCat("routine ", routine.name, " is ", types, ", not ", given));
  }
  if (routine.tasks < 0 || routine.scratch_bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat("routine ", routine.name, " has negative tasks or scratch"));
  }
  return absl::OkStatus();
}

int64_t KeysBytes(DType dtype, int64_t n) { return std::max<int64_t>(4, DTypeBytes(dtype)) * n; }
int64_t KeyedBytes(DType dtype, int64_t n) { return 2 * KeysBytes(dtype, n) + 2 * 4 * n; }

RoutineFunction RoutineFunctionOf(const Program& program, const Te& te) {
  return Find(te.routine->name)->functions[static_cast<int>(program.tensors[te.routine->inputs[0]].dtype)];
}

std::string RoutineSource(const std::set<std::string>& names) {
  if (names.empty()) return "";
  const std::map<std::string, std::string> texts = RoutineTexts();
  std::string source = absl::StrCat("namespace routines {\n", texts.at("order"));
  std::set<std::string> shared;
  for (const std::string& name : names) {
    if (const char* text = Find(name)->shared; text != nullptr) shared.insert(text);
  }
  for (const std::string& name : shared) absl::StrAppend(&source, texts.at(name));
  for (const std::string& name : names) absl::StrAppend(&source, texts.at(name));
  return source + "}\n";
}

std::string RoutineInstance(const std::string& name, DType first_input) {
  return absl::StrCat("routines::", name, "<", kElementTypes[static_cast<int>(first_input)], ">");
}

}  // namespace fusion::te

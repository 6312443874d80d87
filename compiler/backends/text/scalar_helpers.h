// Helpers of kernel text that are the same C in every language: arithmetic on single values, whose corner cases ONNX
// defines. A prelude (README.md) puts them behind its types.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_SCALAR_HELPERS_H_
#define FUSION_COMPILER_BACKENDS_TEXT_SCALAR_HELPERS_H_

#include <string>

namespace fusion::text {

// Returns functions named `helper_type`. They need the types i8 … u64, the macro SI in front of a function, and the
// language library's `fabs_` and `fmod_` for each float type. `f64`: include those for double.
std::string ScalarHelpers(bool f64);

// Returns `#define exp_f32 …` for every function that the texts take from the language's library. `name` gives its name
// there.
std::string LibraryNames(bool f64, std::string (*name)(const std::string& function, bool f64));

// The numbers of alternating lanes of two vectors, [first, first + lanes / 2) of each: "0,16,1,17,…".
std::string ZippedLanes(int lanes, int first);
// Every second lane of two vectors that follow each other: "0,2,4,…".
std::string EvenLanes(int lanes);
// Every third element of three vectors, the last of which ends with the last element wanted. `last` false: the
// selection from the first two vectors; true: from that selection and the third vector.
std::string ThirdLanes(int lanes, bool last);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_SCALAR_HELPERS_H_

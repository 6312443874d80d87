// Helpers of kernel text that are the same C in every language: arithmetic on single values whose corner cases ONNX
// defines. A prelude (README.md) puts them behind its types.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_SCALAR_HELPERS_H_
#define FUSION_COMPILER_BACKENDS_TEXT_SCALAR_HELPERS_H_

#include <string>

namespace fusion::text {

// Functions named `helper_type`. They need the types i8 … u64, SI in front of a function, and of a language's own
// library `fabs_` and `fmod_` for each float type. `f64`: with those for double.
std::string ScalarHelpers(bool f64);

// `#define exp_f32 …` for every function that the texts take from the language's library. `name` gives what it is
// called there.
std::string LibraryNames(bool f64, std::string (*name)(const std::string& function, bool f64));

// The numbers of lanes [first, first + lanes / 2) of two vectors in turns: "0,16,1,17,…".
std::string ZippedLanes(int lanes, int first);
// Every second lane of two vectors, one after the other: "0,2,4,…".
std::string EvenLanes(int lanes);
// Every third element of three vectors, of which the last ends with the last that is wanted: out of the first two, and
// out of these and the third.
std::string ThirdLanes(int lanes, bool last);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_SCALAR_HELPERS_H_

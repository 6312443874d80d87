// Part of every cache key. It has a header of its own, so that raising it rebuilds only the files that read it.
#ifndef FUSION_COMPILER_API_GENERATOR_VERSION_H_
#define FUSION_COMPILER_API_GENERATOR_VERSION_H_

namespace fusion {

// Raise it whenever generated code or numbers may change.
inline constexpr int kGeneratorVersion = 74;

}  // namespace fusion

#endif  // FUSION_COMPILER_API_GENERATOR_VERSION_H_

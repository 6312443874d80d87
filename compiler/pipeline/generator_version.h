// Part of every cache key. A header of its own: raising it should rebuild no more than what reads it.
#ifndef FUSION_COMPILER_PIPELINE_GENERATOR_VERSION_H_
#define FUSION_COMPILER_PIPELINE_GENERATOR_VERSION_H_

namespace fusion {

// Raised whenever generated code or numbers may change.
inline constexpr int kGeneratorVersion = 50;

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_GENERATOR_VERSION_H_

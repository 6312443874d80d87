// Ends the architecture of a test device whose subgroups are emulated.
#ifndef FUSION_COMPILER_PIPELINE_TESTING_SUBGROUP_SUFFIX_H_
#define FUSION_COMPILER_PIPELINE_TESTING_SUBGROUP_SUFFIX_H_

namespace fusion::testing {

constexpr char kSubgroupSuffix[] = "+subgroups";

}  // namespace fusion::testing

#endif  // FUSION_COMPILER_PIPELINE_TESTING_SUBGROUP_SUFFIX_H_

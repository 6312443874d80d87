// The weights that a bundle holds in several forms, as a table for people.
#ifndef FUSION_CLIENT_VERBS_REPEATED_WEIGHTS_H_
#define FUSION_CLIENT_VERBS_REPEATED_WEIGHTS_H_

#include <string>
#include <vector>

#include "runtime/bundle/weights_account.h"

namespace fusion {

// One row for each reader of each form, with what refuses it the other forms.
std::string RepeatedWeightsTable(const std::vector<RepeatedWeight>& repeated);

}  // namespace fusion

#endif  // FUSION_CLIENT_VERBS_REPEATED_WEIGHTS_H_

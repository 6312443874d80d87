// Prints the plans that a compilation chose from.
#ifndef FUSION_CLIENT_VERBS_ALTERNATIVES_H_
#define FUSION_CLIENT_VERBS_ALTERNATIVES_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "proto/compile.pb.h"

namespace fusion {

// One line for each program that had several plans: the chosen one, and how much longer the others take; of many, the
// nearest one and the range of the rest.
std::vector<std::string> AlternativesInWords(const v1::Account& account);

// A table of all plans, for `plan --explain`; "" where there was one.
std::string AlternativesTable(const v1::Account& account);

// For scripts.
nlohmann::ordered_json AlternativesToJson(const v1::Account& account);

}  // namespace fusion

#endif  // FUSION_CLIENT_VERBS_ALTERNATIVES_H_

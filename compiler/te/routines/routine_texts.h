// The files of routines/ by name, without their suffix.
#ifndef FUSION_COMPILER_TE_ROUTINES_ROUTINE_TEXTS_H_
#define FUSION_COMPILER_TE_ROUTINES_ROUTINE_TEXTS_H_

#include <map>
#include <string>

namespace fusion::te {

std::map<std::string, std::string> RoutineTexts();

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_ROUTINES_ROUTINE_TEXTS_H_

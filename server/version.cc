#include "server/services.h"

namespace fusion {

const char kServerVersion[] = FUSION_VERSION;

}  // namespace fusion

#include "compiler/backends/dsa/toolchain/dsa_toolchain.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/dsa_sim/check.h"
#include "runtime/devices/dsa_sim/program.h"
#include "runtime/devices/dsa_sim/stored_machines.h"
#include "runtime/devices/dsa_sim/unit_evaluator.h"

namespace fusion {
namespace {

absl::Status Check(const BuildUnit& unit) {
  ASSIGN_OR_RETURN(dsa::Machine machine, dsa::StoredMachine(unit.march));
  machine.clusters = 1;  // of which a program is
  ASSIGN_OR_RETURN(const dsa::Program program, dsa::Parse(unit.source));
  RETURN_IF_ERROR(dsa::CheckOperands(machine, program));
  RETURN_IF_ERROR(dsa::CheckAccesses(machine, program));
  return dsa::UnitEvaluator::Create(program).status();
}

class DsaToolchain : public LocalToolchain {
 public:
  const char* kind() const override { return "dsa"; }
  const std::string& version() const override { return version_; }
  bool reproduces() const override { return true; }

  absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units,
                                                 const std::function<bool()>& cancelled) const override {
    std::vector<std::string> binaries;
    for (const BuildUnit& unit : units) {
      if (cancelled && cancelled()) return absl::CancelledError("the check of a program was cancelled");
      if (unit.kind != kind()) {
        return absl::InvalidArgumentError(
            absl::StrCat("the checker of dsa programs was given one of '", unit.kind, "'"));
      }
      const absl::Status checked = Check(unit);
      if (!checked.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat(unit.march, " cannot run the program: ", std::string(checked.message())));
      }
      binaries.push_back(unit.source);
    }
    return binaries;
  }

 private:
  const std::string version_ = kDsaToolchain;
};

}  // namespace

std::unique_ptr<LocalToolchain> MakeDsaToolchain() { return std::make_unique<DsaToolchain>(); }

}  // namespace fusion

// One maker for each verb, defined in the file that is named after the verb's first word (bundle_signing.cc: bundle
// sign and verify).
#ifndef FUSION_CLIENT_VERBS_VERBS_H_
#define FUSION_CLIENT_VERBS_VERBS_H_

#include <memory>

#include "client/cli/verb.h"

namespace fusion {

std::unique_ptr<Verb> MakeSubmitVerb();
std::unique_ptr<Verb> MakePlanVerb();
std::unique_ptr<Verb> MakeRunVerb();
std::unique_ptr<Verb> MakeBenchVerb();
std::unique_ptr<Verb> MakeVerifyVerb();
std::unique_ptr<Verb> MakeBundleInspectVerb();
std::unique_ptr<Verb> MakeBundleGetVerb();
std::unique_ptr<Verb> MakeBundleSignVerb();
std::unique_ptr<Verb> MakeBundleVerifyVerb();
std::unique_ptr<Verb> MakeJobListVerb();
std::unique_ptr<Verb> MakeJobGetVerb();
std::unique_ptr<Verb> MakeJobWatchVerb();
std::unique_ptr<Verb> MakeJobLogsVerb();
std::unique_ptr<Verb> MakeJobCancelVerb();
std::unique_ptr<Verb> MakeJobPinVerb();
std::unique_ptr<Verb> MakeJobUnpinVerb();
std::unique_ptr<Verb> MakeTopVerb();
std::unique_ptr<Verb> MakeWorkerListVerb();
std::unique_ptr<Verb> MakeWorkerDescribeVerb();
std::unique_ptr<Verb> MakeWorkerDrainVerb();
std::unique_ptr<Verb> MakeWorkerQuarantineVerb();
std::unique_ptr<Verb> MakeWorkerReleaseVerb();
std::unique_ptr<Verb> MakeProfileStatsVerb();
std::unique_ptr<Verb> MakeProfileQueryVerb();
std::unique_ptr<Verb> MakeProfileExportVerb();
std::unique_ptr<Verb> MakeProfileImportVerb();
std::unique_ptr<Verb> MakeProfileMergeVerb();
std::unique_ptr<Verb> MakeProfilePruneVerb();
std::unique_ptr<Verb> MakeAdminGcVerb();
std::unique_ptr<Verb> MakeAdminCheckVerb();
std::unique_ptr<Verb> MakeAdminBackupVerb();
std::unique_ptr<Verb> MakeTokenCreateVerb();
std::unique_ptr<Verb> MakeTokenListVerb();
std::unique_ptr<Verb> MakeTokenRevokeVerb();
std::unique_ptr<Verb> MakeDoctorVerb();
std::unique_ptr<Verb> MakeVersionVerb();

}  // namespace fusion

#endif  // FUSION_CLIENT_VERBS_VERBS_H_

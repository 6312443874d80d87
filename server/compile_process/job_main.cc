// fusion-compile-job: compiles one model for fusiond and ends. It is started once per job, so it links neither gRPC nor
// SQLite.
#include "compiler/pipeline/compile.h"
#include "server/compile_process/job_process.h"

int main(int argc, char** argv) { return fusion::RunJobProcess(argc, argv, {fusion::Compile, fusion::PlanOnly}); }

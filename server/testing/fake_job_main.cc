// fusion-compile-job with the compiler of fake_compile.h.
#include "server/compile_process/job_process.h"
#include "server/testing/fake_compile.h"

int main(int argc, char** argv) { return fusion::RunJobProcess(argc, argv, {fusion::FakeCompile, fusion::FakePlan}); }

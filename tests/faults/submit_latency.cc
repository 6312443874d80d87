// Submits one model again and again over one connection, and prints how long each answer took, as JSON:
//   submit_latency unix:/path model.onnx --target sim --count 60000 [--distinct] [--require name=W]
// All submissions ask for the same, unless --distinct gives each a tuning budget of its own, so that none is joined or
// answered from the store. With --require they wait for a worker that fits.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "client/api/connection.h"
#include "client/cli/progress.h"
#include "client/verbs/submission.h"

namespace fusion {
namespace {

int Measure(const std::string& address, const std::string& model, const CompilationFlags& flags, int count,
            bool distinct) {
  Endpoint endpoint;
  endpoint.address = address;
  const auto connection = Connection::Open(endpoint);
  Progress progress("none");
  auto request = PrepareSubmission(*connection, model, flags, progress);
  if (!request.ok()) return std::fprintf(stderr, "%s\n", request.status().ToString().c_str()), 1;
  std::vector<double> ms;
  int from_store = 0;
  for (int i = 0; i < count; ++i) {
    if (distinct) request->mutable_options()->set_tune(std::to_string(i + 1));
    const auto begin = std::chrono::steady_clock::now();
    const auto response = connection->Submit(*request);
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    if (!response.ok()) return std::fprintf(stderr, "%s\n", response.status().ToString().c_str()), 1;
    from_store += response->state() == v1::SUCCEEDED;
  }
  std::sort(ms.begin(), ms.end());
  const auto at = [&](double share) { return ms[std::min(ms.size() - 1, static_cast<size_t>(share * ms.size()))]; };
  std::printf("{\"submissions\": %d, \"from_store\": %d, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f}\n",
              count, from_store, at(0.5), at(0.99), ms.back());
  return 0;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  CLI::App app("submits one model again and again, and prints how long the answers take");
  std::string address, model;
  fusion::CompilationFlags flags;
  flags.queue_timeout_s = 3600;
  int count = 1000;
  bool distinct = false;
  app.add_option("address", address)->required();
  app.add_option("model", model)->required();
  app.add_option("--target", flags.target);
  app.add_option("--require", flags.require);
  app.add_option("--count", count)->check(CLI::PositiveNumber);
  app.add_flag("--distinct", distinct);
  CLI11_PARSE(app, argc, argv);
  return fusion::Measure(address, model, flags, count, distinct);
}

// Damaged models of every operator: import and simplification return an answer or an error for each. Deterministic.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "compiler/onnx/model_text.h"
#include "compiler/simplify/passes.h"

namespace fusion::onnx_import {
namespace {

constexpr char kData[] = "/usr/share/libonnx-testdata/data/node";
constexpr int kMutationsPerModel = 12;

std::string Mutate(std::string bytes, std::mt19937* random) {
  auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(*random); };
  const size_t edits = 1 + below(3);
  for (size_t i = 0; i < edits && !bytes.empty(); ++i) {
    const size_t at = below(bytes.size());
    switch (below(12)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 2:
        bytes[at] = static_cast<char>(bytes[at] + 1);
        break;
      case 3:
        bytes[at] = static_cast<char>(bytes[at] - 1);
        break;
      case 4:
        bytes[at] = 0;
        break;
      case 5:
        bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(8)));
        break;
      default:  // overwrites in place, so that lengths mostly survive
        bytes[at] = bytes[below(bytes.size())];
        break;
    }
  }
  return bytes;
}

TEST(Mutation, EveryDamagedModelIsAnswered) {
  std::error_code error;
  std::vector<std::string> models;
  for (const auto& entry : std::filesystem::directory_iterator(kData, error)) {
    models.push_back(entry.path().string() + "/model.onnx");
  }
  if (models.empty()) GTEST_SKIP() << "Debian package libonnx-testdata is not installed";
  std::sort(models.begin(), models.end());
  std::mt19937 random(1);
  int imported = 0, refused = 0;
  for (const std::string& path : models) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    for (int i = 0; i < kMutationsPerModel; ++i) {
      const auto model = ImportBytes(Mutate(bytes.str(), &random));
      if (!model.ok()) {
        EXPECT_NE(model.status().code(), absl::StatusCode::kInternal) << path << " " << i << ": " << model.status();
        ++refused;
        continue;
      }
      ++imported;
      EXPECT_TRUE(ecg::Verify(model->graph).ok()) << path << " " << i << ": " << ecg::Verify(model->graph);
      const ecg::Graph simple = simplify::Simplify(model->graph);
      EXPECT_TRUE(ecg::Verify(simple).ok()) << path << " " << i << ": " << ecg::Verify(simple);
    }
  }
  EXPECT_GT(imported, 500);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace fusion::onnx_import

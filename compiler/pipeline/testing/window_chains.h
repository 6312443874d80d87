// Chains of windows for tests that run them as one kernel: convolutions, depthwise ones, pooling.
#ifndef FUSION_COMPILER_PIPELINE_TESTING_WINDOW_CHAINS_H_
#define FUSION_COMPILER_PIPELINE_TESTING_WINDOW_CHAINS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion::testing {

inline const std::vector<int64_t> kPad1 = {1, 1, 1, 1};

// A convolution with random weights of shape `w` ([M, C / group, kernel...]) and a bias.
ecg::ValueId Conv(GraphMaker* g, ecg::ValueId x, const Shape& w, std::vector<int64_t> pads = kPad1,
                  std::vector<int64_t> strides = {1, 1}, std::vector<int64_t> dilations = {1, 1}, int64_t group = 1);
// A depthwise one of taps × taps that keeps the image's extents, but for the stride.
ecg::ValueId Depthwise(GraphMaker* g, ecg::ValueId x, int64_t channels, int64_t taps, int64_t stride = 1);
ecg::ValueId Relu(GraphMaker* g, ecg::ValueId x);

// The graph as a case that returns `result`.
FusionCase Case(const std::string& name, GraphMaker* g, ecg::ValueId result);

// 3 × 3 convolutions of x ([N, C, H, W]) to `middle` and then to `last` channels, the second with the strides.
FusionCase TwoConvolutions(const Shape& x, int64_t middle, int64_t last, std::vector<int64_t> strides = {1, 1});

// A depthwise convolution of taps × taps with a stride, and a pointwise one.
FusionCase DepthwiseAndPointwise(int64_t taps, int64_t stride);
// A pointwise, a depthwise and a pointwise convolution; with stride 1 what they read is added.
FusionCase InvertedResidual(int64_t stride);
// A pooling ("MaxPool", "AveragePool") with a stride behind a convolution.
FusionCase PoolingBehindConvolution(const std::string& pool, int64_t stride);
FusionCase ConvolutionBehindPooling();

// Two chains whose last stage reads what one in front of it has read already: a residual block, and a sum of the first
// of three convolutions and the third.
std::vector<FusionCase> ReadAgain();

// A chain of windows over a small image, whatever they are: kernels, strides, dilations and padding on each side are
// drawn, and padding may exceed the image.
FusionCase DrawChain(uint64_t seed);

}  // namespace fusion::testing

#endif  // FUSION_COMPILER_PIPELINE_TESTING_WINDOW_CHAINS_H_

// The list of operator families. A new operator is an OpDef in its family's file; a new family is one line here and one
// in op_list.cc.
#ifndef FUSION_COMPILER_OPS_REGISTRY_OP_LIST_H_
#define FUSION_COMPILER_OPS_REGISTRY_OP_LIST_H_

#include <vector>

#include "compiler/ops/registry/op_def.h"

namespace fusion::ops {

std::vector<OpDef> UnaryOps();    // unary.cc: Abs … Tanh, activations
std::vector<OpDef> BinaryOps();   // binary.cc: arithmetic, comparison, logical, bitwise, Max/Min/Sum/Mean, Where, Clip
std::vector<OpDef> CastOps();     // cast.cc: Cast, CastLike
std::vector<OpDef> BitCastOps();  // bit_cast.cc: BitCast
std::vector<OpDef> ReductionOps();        // reduction.cc: Reduce*, ArgMax, ArgMin, CumSum, CumProd
std::vector<OpDef> SoftmaxOps();          // softmax.cc: Softmax, LogSoftmax, Hardmax
std::vector<OpDef> NormalizationOps();    // normalization.cc: Batch, Layer, Instance, Group, LRN, LpNormalization, MVN
std::vector<OpDef> LossOps();             // loss.cc: NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss
std::vector<OpDef> MatMulOps();           // matmul.cc: MatMul, Gemm, Einsum
std::vector<OpDef> ConvolutionOps();      // convolution.cc: Conv, ConvTranspose
std::vector<OpDef> PoolingOps();          // pooling.cc: MaxPool, AveragePool, LpPool, Global*
std::vector<OpDef> ReshapeOps();          // reshape.cc: Reshape, Flatten, Squeeze, Unsqueeze, Identity, Dropout
std::vector<OpDef> TransposeOps();        // transpose.cc: Transpose, DepthToSpace, SpaceToDepth
std::vector<OpDef> SliceOps();            // slice.cc: Slice, Split, Concat
std::vector<OpDef> PadOps();              // pad.cc: Pad, CenterCropPad
std::vector<OpDef> ExpandOps();           // expand.cc: Expand, Tile, Trilu, ReverseSequence
std::vector<OpDef> GatherOps();           // gather.cc: Gather, GatherElements, GatherND, OneHot
std::vector<OpDef> ScatterOps();          // scatter.cc: ScatterElements, ScatterND, MaxUnpool
std::vector<OpDef> ResizeOps();           // resize.cc: Resize, Upsample
std::vector<OpDef> SamplingOps();         // sampling.cc: GridSample, AffineGrid
std::vector<OpDef> RoiOps();              // roi.cc: RoiAlign, MaxRoiPool
std::vector<OpDef> DeformConvOps();       // deform_conv.cc
std::vector<OpDef> Col2ImOps();           // col2im.cc
std::vector<OpDef> DeterminantOps();      // determinant.cc: Det
std::vector<OpDef> SignalOps();           // signal.cc: DFT, STFT, windows, MelWeightMatrix
std::vector<OpDef> ShapeOps();            // shape.cc: Shape, Size, ConstantOfShape, Range, EyeLike
std::vector<OpDef> OrderingOps();         // ordering.cc: TopK, Unique
std::vector<OpDef> SelectionOps();        // selection.cc: NonZero, Compress, NonMaxSuppression
std::vector<OpDef> RecurrentOps();        // recurrent.cc: LSTM, GRU, RNN
std::vector<OpDef> AttentionOps();        // attention.cc: Attention
std::vector<OpDef> LinearAttentionOps();  // linear_attention.cc: LinearAttention, CausalConvWithState
std::vector<OpDef> CacheOps();            // cache.cc: TensorScatter
std::vector<OpDef> QuantizeOps();         // quantize.cc: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear
std::vector<OpDef> IntProductOps();       // integer_products.cc: MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv
std::vector<OpDef> ExpressionOps();        // expression.cc: one expression of another operator's lowering

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_REGISTRY_OP_LIST_H_

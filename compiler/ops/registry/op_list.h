// The list of operator families. A new operator is an OpDef in its family's file; a new family is one line here.
#ifndef FUSION_COMPILER_OPS_REGISTRY_OP_LIST_H_
#define FUSION_COMPILER_OPS_REGISTRY_OP_LIST_H_

#include <vector>

#include "compiler/ops/registry/op_def.h"

// Each family is a function that returns its operators. An operator of two families is that of the first.
// clang-format off
#define FUSION_OP_FAMILIES(FAMILY) \
  FAMILY(UnaryOps)              /* math/unary.cc: Abs … Tanh, activations */                                           \
  FAMILY(BinaryOps)             /* math/binary.cc: arithmetic, comparison, logic, bits, Max, Min, Sum, Where, Clip */  \
  FAMILY(CastOps)               /* math/cast.cc: Cast, CastLike */                                                     \
  FAMILY(BitCastOps)            /* math/bit_cast.cc: BitCast */                                                        \
  FAMILY(ReductionOps)          /* math/reduction.cc: Reduce*, ArgMax, ArgMin, CumSum, CumProd */                      \
  FAMILY(SoftmaxOps)            /* nn/softmax.cc: Softmax, LogSoftmax, Hardmax */                                      \
  FAMILY(NormalizationOps)      /* nn/normalization.cc: Batch, Layer, Instance, Group, LRN, LpNormalization, MVN */    \
  FAMILY(LossOps)               /* nn/loss.cc: NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss */                   \
  FAMILY(MatMulOps)             /* math/matmul.cc: MatMul, Gemm, Einsum */                                             \
  FAMILY(ConvolutionOps)        /* nn/convolution.cc: Conv, ConvTranspose */                                           \
  FAMILY(PoolingOps)            /* nn/pooling.cc: MaxPool, AveragePool, LpPool, Global* */                             \
  FAMILY(ReshapeOps)            /* tensor/reshape.cc: Reshape, Flatten, Squeeze, Unsqueeze, Identity, Dropout */       \
  FAMILY(TransposeOps)          /* tensor/transpose.cc: Transpose, DepthToSpace, SpaceToDepth */                       \
  FAMILY(SliceOps)              /* tensor/slice.cc: Slice, Split, Concat */                                            \
  FAMILY(PadOps)                /* tensor/pad.cc: Pad, CenterCropPad */                                                \
  FAMILY(ExpandOps)             /* tensor/expand.cc: Expand, Tile, Trilu, ReverseSequence */                           \
  FAMILY(GatherOps)             /* tensor/gather.cc: Gather, GatherElements, GatherND, OneHot */                       \
  FAMILY(ScatterOps)            /* tensor/scatter.cc: ScatterElements, ScatterND, MaxUnpool */                         \
  FAMILY(ResizeOps)             /* tensor/resize.cc: Resize, Upsample */                                               \
  FAMILY(SamplingOps)           /* nn/sampling.cc: GridSample, AffineGrid */                                           \
  FAMILY(ShapeOps)              /* tensor/shape.cc: Shape, Size, ConstantOfShape, Range, EyeLike */                    \
  FAMILY(OrderingOps)           /* dynamic/ordering.cc: TopK, Unique */                                                \
  FAMILY(SelectionOps)          /* dynamic/selection.cc: NonZero, Compress, NonMaxSuppression */                       \
  FAMILY(QuantizeOps)           /* quant/quantize.cc: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear */       \
  FAMILY(RecurrentOps)          /* nn/recurrent.cc: LSTM, GRU, RNN */                                                  \
  FAMILY(AttentionOps)          /* nn/attention.cc: Attention */                                                       \
  FAMILY(LinearAttentionOps)    /* nn/linear_attention.cc: LinearAttention, CausalConvWithState */                     \
  FAMILY(CacheOps)              /* nn/cache.cc: TensorScatter */                                                       \
  FAMILY(RoiOps)                /* nn/roi.cc: RoiAlign, MaxRoiPool */                                                  \
  FAMILY(DeformConvOps)         /* nn/deform_conv.cc */                                                                \
  FAMILY(Col2ImOps)             /* nn/col2im.cc */                                                                     \
  FAMILY(DeterminantOps)        /* math/determinant.cc: Det */                                                         \
  FAMILY(SignalOps)             /* math/signal.cc: DFT, STFT, windows, MelWeightMatrix */                              \
  FAMILY(ContribActivationOps)  /* contrib/activations.cc: Gelu, FastGelu, BiasGelu, QuickGelu, BiasAdd, … */          \
  FAMILY(ContribProductOps)     /* contrib/products.cc: FusedMatMul, FusedGemm, FusedConv */                           \
  FAMILY(ContribLayerNormOps)   /* contrib/layer_norms.cc: SkipLayerNormalization, EmbedLayerNormalization, … */       \
  FAMILY(ContribAttentionOps)   /* contrib/attention.cc: Attention, MultiHeadAttention, GroupQueryAttention */         \
  FAMILY(ContribRotaryOps)      /* contrib/rotary.cc: RotaryEmbedding */                                               \
  FAMILY(IntProductOps)         /* quant/integer_products.cc: MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv */ \
  FAMILY(LoopBoundaryOps)       /* control/loop.cc: LoopBegin, LoopEnd, LoopCopy */                                    \
  FAMILY(ExpressionOps)         /* registry/expression.cc: one expression of another operator's lowering */
// clang-format on

namespace fusion::ops {

#define FUSION_DECLARE_FAMILY(family) std::vector<OpDef> family();
FUSION_OP_FAMILIES(FUSION_DECLARE_FAMILY)
#undef FUSION_DECLARE_FAMILY

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_REGISTRY_OP_LIST_H_

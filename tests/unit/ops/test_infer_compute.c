// SPDX-License-Identifier: Apache-2.0
// Inference of what computes: pointwise operators, convolutions, poolings, products, normalizations,
// recurrent layers, reductions. Each line is one node; see infer_case.h.

#include "infer_case.h"
#include "unit.h"

UNIT_TEST(pointwise_operators_keep_or_broadcast_shapes) {
  static const infer_case_t cases[] = {
      {"Relu", "f32[2,N,?]", "", "f32[2,N,?]", NULL},
      {"Relu", "f32[...]", "", "f32[...]", NULL},
      {"Relu", "f32[]", "", "f32[]", NULL},
      {"IsNaN", "f32[2,3]", "", "bool[2,3]", NULL},
      {"Not", "bool[4]", "", "bool[4]", NULL},
      {"Cast", "f32[2,N]", "to=7", "i64[2,N]", NULL},
      {"Cast", "f32[2]", "to=99", "!attribute 'to': 99 is not a dtype", NULL},
      {"CastLike", "f32[2] i32[7]", "", "i32[2]", NULL},
      {"Clip", "?[2,3] f32[] -", "", "f32[2,3]", "f32[2,3] f32[] -"},
      {"Clip", "f32[2,3] f64[]", "", "!input 'min': expected dtype float32, found float64", NULL},
      {"PRelu", "f32[2,3,4] f32[3,1]", "", "f32[2,3,4]", NULL},
      {"PRelu", "f32[2,3,4] f32[5,1]", "", "!do not broadcast", NULL},
      {"PRelu", "f32[3] f32[2,3]", "", "!expected shape [2, 3], found [3]", NULL},
      {"Dropout", "f32[2,N]", "", "f32[2,N] bool[2,N]", NULL},
      {"Add", "f32[2,1,4] f32[3,1]", "", "f32[2,3,4]", NULL},
      {"Add", "f32[N,1] f32[1,T]", "", "f32[N,T]", NULL},
      {"Add", "f32[N,T] f32[N,T]", "", "f32[N,T]", NULL},
      {"Add", "f32[N] f32[5]", "", "f32[5]", NULL},
      {"Add", "f32[N] f32[T]", "", "f32[?]", NULL},
      {"Add", "f32[2,3] ?[]", "", "f32[2,3]", "f32[2,3] f32[]"},
      {"Add", "f32[2,3] f32[2]", "", "!shapes [2, 3] and [2] do not broadcast", NULL},
      {"Add", "f32[2] i64[2]", "", "!input 'B': expected dtype float32, found int64", NULL},
      {"Add", "f32[...] f32[2]", "", "f32[...]", NULL},
      {"Pow", "f32[2] i64[]", "", "f32[2]", NULL},
      {"And", "?[2] ?[1]", "", "bool[2]", "bool[2] bool[1]"},
      {"And", "f32[2] bool[2]", "", "!expected dtype bool, found float32", NULL},
      {"Less", "i64[N] i64[]", "", "bool[N]", NULL},
      {"Where", "bool[3,1] f32[1,4] ?[]", "", "f32[3,4]", "bool[3,1] f32[1,4] f32[]"},
      {"Max", "f32[2,1] ?[3] ?[1,1]", "", "f32[2,3]", "f32[2,1] f32[3] f32[1,1]"},
      {"Sum", "f32[5]", "", "f32[5]", NULL},
      {"BitShift", "u8[3] u8[3]", "direction=LEFT", "u8[3]", NULL},
  };
  INFER_CASES(cases);
}

UNIT_TEST(convolutions_follow_their_windows) {
  static const infer_case_t cases[] = {
      {"Conv", "f32[1,3,224,224] f32[64,3,7,7] f32[64]", "strides=2,2 pads=3,3,3,3", "f32[1,64,112,112]",
       NULL},
      {"Conv", "f32[N,3,H,224] f32[64,3,7,7]", "strides=2,2 pads=3,3,3,3", "f32[N,64,floor((H-1)/(2))+1,112]",
       NULL},
      {"Conv", "f32[N,3,H,W] f32[8,3,3,3]", "pads=1,1,1,1", "f32[N,8,H,W]", NULL},
      {"Conv", "f32[1,8,10] f32[16,4,3]", "group=2 dilations=2", "f32[1,16,6]", NULL},
      {"Conv", "f32[1,3,5,6,7] f32[2,3,1,2,3]", "", "f32[1,2,5,5,5]", NULL},
      {"Conv", "f32[1,3,10,10] f32[8,3,3,3]", "auto_pad=SAME_UPPER strides=3,3", "f32[1,8,4,4]", NULL},
      {"Conv", "f32[1,3,10,10] f32[8,3,3,3]", "auto_pad=VALID", "f32[1,8,8,8]", NULL},
      {"Conv", "f32[2,3,10,10] f32[8,?,?,?] ?[...]", "kernel_shape=2,2", "f32[2,8,9,9]",
       "f32[2,3,10,10] f32[8,3,2,2] f32[8]"},
      {"Conv", "f32[2,?,10,10] f32[8,3,2,2]", "group=2", "f32[2,8,9,9]", "f32[2,6,10,10] f32[8,3,2,2]"},
      {"Conv", "?[2,3,10,10] ?[...] f32[8]", "kernel_shape=2,2", "f32[2,8,9,9]",
       "f32[2,3,10,10] f32[8,3,2,2] f32[8]"},
      {"Conv", "f32[1,4,10,10] f32[8,3,3,3]", "",
       "!input 'W': expected shape [8, 4, 3, 3], found [8, 3, 3, 3]", NULL},
      {"Conv", "f32[1,3,2,2] f32[8,3,3,3]", "",
       "!a window of 3 does not fit into spatial axis 0 of size 2 with pads 0", NULL},
      {"Conv", "f32[1,3,9,9] f32[8,3,3,3]", "strides=0,1",
       "!attribute 'strides': expected numbers of 1 or more, found 0", NULL},
      {"Conv", "f32[1,3,9,9] f32[8,3,3,3]", "strides=1", "!attribute 'strides': expected 2 numbers, found 1",
       NULL},
      {"Conv", "f32[1,3,9,9] f32[8,3,3,3]", "pads=-1,0,0,0", "!attribute 'pads'", NULL},
      {"Conv", "f32[1,3,9,9] f32[8,3,3,3]", "pads=9223372036854775807,0,0,9223372036854775807",
       "!attribute 'pads'", NULL},
      {"Conv", "f32[1,3,9,9] f32[8,3,3,3]", "dilations=9223372036854775807,1", "!attribute 'dilations'",
       NULL},
      {"Conv", "f32[1,3,9,9] f32[8,3,3,3]", "kernel_shape=-3,3", "!attribute 'kernel_shape'", NULL},
      {"Conv", "f32[1,3,9,9] f32[8,3,3,3]", "group=0", "!group is 0", NULL},
      {"Conv", "f32[1,3,9,9] f32[8,1,3,3]", "group=2", "!cannot be split into 2 groups", NULL},
      {"Conv", "f32[1,3,9,9] f32[8,3,3,3]", "auto_pad=MAYBE", "!auto_pad is 'MAYBE'", NULL},
      {"Conv", "f32[1,3] f32[8,3]", "", "!expected rank 3 or more, found 2", NULL},
      {"Conv", "f32[1,3,9,9] f32[8,3,3]", "", "!input 'W': expected rank 4, found 3: [8, 3, 3]", NULL},
      {"Conv", "f32[1,3,9223372036854775807,9] f32[8,3,3,3]", "pads=1,1,1,1", "!, found 9223372036854775807",
       NULL},
      {"ConvInteger", "u8[1,3,9,9] i8[8,3,3,3] ?[]", "", "i32[1,8,7,7]", "u8[1,3,9,9] i8[8,3,3,3] u8[]"},
      {"QLinearConv", "u8[1,3,9,9] f32[] u8[] u8[8,3,3,3] f32[8] u8[8] f32[] i8[]", "", "i8[1,8,7,7]", NULL},
      {"ConvTranspose", "f32[1,8,5,5] f32[8,4,3,3]", "strides=2,2 output_padding=1,1 pads=1,1,1,1",
       "f32[1,4,10,10]", NULL},
      {"ConvTranspose", "f32[N,8,H,5] f32[8,4,2,2]", "strides=2,2", "f32[N,4,2*H,10]", NULL},
      {"ConvTranspose", "f32[1,8,5,5] f32[8,4,3,3]", "strides=2,2 output_shape=10,11", "f32[1,4,10,11]",
       NULL},
      {"ConvTranspose", "f32[1,8,5,5] f32[8,4,3,3]", "strides=2,2 auto_pad=SAME_UPPER", "f32[1,4,10,10]",
       NULL},
      {"ConvTranspose", "f32[1,8,5,5] f32[8,4,3,3]", "group=2", "f32[1,8,7,7]", NULL},
      {"ConvTranspose", "f32[1,8,1,1] f32[8,4,1,1]", "pads=1,1,1,1", "!leaves no output", NULL},
      {"ConvTranspose", "f32[1,7,5,5] f32[8,4,3,3]", "", "!expected shape [7, 4, 3, 3]", NULL},
      {"DeformConv", "f32[1,3,9,9] f32[8,3,3,3] f32[1,18,?,?]", "", "f32[1,8,7,7]",
       "f32[1,3,9,9] f32[8,3,3,3] f32[1,18,7,7]"},
      {"Col2Im", "f32[1,5,5] i64(5,5) i64(1,5)", "", "f32[1,1,5,5]", NULL},
      {"Col2Im", "f32[1,6,5] i64(5,5) i64(1,5)", "", "!6 rows: not a multiple of a block of 5", NULL},
  };
  INFER_CASES(cases);
}

UNIT_TEST(poolings_follow_their_windows) {
  static const infer_case_t cases[] = {
      {"MaxPool", "f32[1,64,112,112]", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1",
       "f32[1,64,56,56] i64[1,64,56,56]", NULL},
      {"MaxPool", "f32[1,1,4,4]", "kernel_shape=3,3 strides=2,2 ceil_mode=1", "f32[1,1,2,2]", NULL},
      {"MaxPool", "f32[1,1,2,2]", "kernel_shape=1,1 strides=2,2 ceil_mode=1", "f32[1,1,1,1]", NULL},
      {"AveragePool", "f32[N,8,H,32]", "kernel_shape=2,2 strides=2,2", "f32[N,8,floor((H)/(2)),16]", NULL},
      {"LpPool", "f32[1,8,32]", "kernel_shape=2 dilations=3", "f32[1,8,29]", NULL},
      {"MaxPool", "f32[1,8]", "kernel_shape=2,2", "!expected rank 4, found 2", NULL},
      {"MaxPool", "f32[1,8,5,5]", "kernel_shape=6,6", "!a window of 6 does not fit", NULL},
      {"GlobalAveragePool", "f32[N,8,H,W]", "", "f32[N,8,1,1]", NULL},
      {"MaxUnpool", "f32[1,1,2,2] i64[1,1,2,2]", "kernel_shape=2,2 strides=2,2", "f32[1,1,4,4]", NULL},
      {"MaxUnpool", "f32[1,1,2,2] i64[1,1,2,2] i64(1,1,5,5)", "kernel_shape=2,2 strides=2,2", "f32[1,1,5,5]",
       NULL},
      {"RoiAlign", "f32[1,8,20,20] f32[R,4] i64[?]", "output_height=5 output_width=7", "f32[R,8,5,7]",
       "f32[1,8,20,20] f32[R,4] i64[R]"},
      {"MaxRoiPool", "f32[1,8,20,20] f32[6,5]", "pooled_shape=2,3", "f32[6,8,2,3]", NULL},
      {"MaxPoolGrad", "f32[2,3,4,4] f32[2,3,N,9]", "kernel_shape=2,2 strides=2,2", "f32[2,3,N,9]", NULL},
      {"MaxPoolGrad", "f32[2,3,4,4] f32[2,4,8,8]", "kernel_shape=2,2", "!expected", NULL},
      {"After", "f16[2,N] f32[3]", "", "f16[2,N]", NULL},
      {"ReluGrad", "f32[2,?] f32[?,5]", "", "f32[2,5]", NULL},
      {"ReluGrad", "f32[2,5] f32[2,6]", "", "!expected", NULL},
  };
  INFER_CASES(cases);
}

UNIT_TEST(products_relate_their_inner_dims) {
  static const infer_case_t cases[] = {
      {"MatMul", "f32[2,3] f32[3,4]", "", "f32[2,4]", NULL},
      {"MatMul", "f32[N,12,T,64] f32[N,12,64,T]", "", "f32[N,12,T,T]", NULL},
      {"MatMul", "f32[N,T,768] f32[768,3072]", "", "f32[N,T,3072]", NULL},
      {"MatMul", "f32[5,1,2,3] f32[7,3,4]", "", "f32[5,7,2,4]", NULL},
      {"MatMul", "f32[3] f32[3]", "", "f32[]", NULL},
      {"MatMul", "f32[3] f32[2,3,4]", "", "f32[2,4]", NULL},
      {"MatMul", "f32[2,4,3] f32[3]", "", "f32[2,4]", NULL},
      {"MatMul", "f32[2,?] ?[3,4]", "", "f32[2,4]", "f32[2,3] f32[3,4]"},
      {"MatMul", "f32[2,3] f32[4,5]", "", "!input 'B': expected shape [3, 5], found [4, 5]", NULL},
      {"MatMul", "f32[2,2,3] f32[3,3,5]", "", "!do not broadcast", NULL},
      {"MatMul", "f32[] f32[3]", "", "!input 'A': expected rank 1 or more, found 0", NULL},
      {"MatMulInteger", "u8[2,3] i8[3,4] ?[] ?[]", "", "i32[2,4]", "u8[2,3] i8[3,4] u8[] i8[]"},
      {"QLinearMatMul", "u8[2,3] f32[] u8[] u8[3,4] f32[] u8[] f32[] i8[]", "", "i8[2,4]", NULL},
      {"Gemm", "f32[2,3] f32[4,?] f32[4]", "transB=1", "f32[2,4]", "f32[2,3] f32[4,3] f32[4]"},
      {"Gemm", "f32[3,N] ?[...] -", "transA=1", "f32[N,?]", "f32[3,N] f32[3,?] -"},
      {"Gemm", "f32[2,3] f32[3,4] f32[5]", "", "!input 'C': size 5 does not broadcast to 4", NULL},
      {"Gemm", "f32[2,3,4] f32[3,4]", "", "!input 'A': expected rank 2, found 3", NULL},
      {"Einsum", "f32[2,3,4] f32[2,4,5]", "equation=bij,bjk->bik", "f32[2,3,5]", NULL},
      {"Einsum", "f32[2,3,4] f32[4,5]", "equation=...ij,jk->...ik", "f32[2,3,5]", NULL},
      {"Einsum", "f32[3,4]", "equation=ij->ji", "f32[4,3]", NULL},
      {"Einsum", "f32[3,4] f32[4,5]", "equation=ij,jk", "f32[3,5]", NULL},
      {"Einsum", "f32[3,3]", "equation=ii->", "f32[]", NULL},
      {"Einsum", "f32[3,4] f32[5,6]", "equation=ij,jk->ik", "!axis 'j' has the sizes 4 and 5", NULL},
      {"Einsum", "f32[3,4]", "equation=ij,jk->ik", "!equation 'ij,jk->ik' cannot be read", NULL},
      {"Einsum", "f32[3,4]", "equation=i->>j", "!cannot be read", NULL},
      {"Einsum", "f32[3,4]", "equation=ijk->i", "!expected rank 3, found 2", NULL},
      {"Einsum", "f32[3,4]", "equation=i..j->i", "!cannot be read", NULL},
      {"Einsum", "f32[3,4]", "equation=abcdefghij->i", "!cannot be read", NULL},
      {"Det", "f32[2,3,?]", "", "f32[2]", "f32[2,3,3]"},
      {"Det", "f32[2,3,4]", "", "!expected shape", NULL},
  };
  INFER_CASES(cases);
}

UNIT_TEST(attention_finds_heads_lengths_and_sizes) {
  static const infer_case_t cases[] = {
      {"Attention", "f32[N,12,T,64] ?[...] f32[N,12,S,32]", "", "f32[N,12,T,32]",
       "f32[N,12,T,64] f32[N,12,S,64] f32[N,12,S,32]"},
      {"Attention", "f32[N,8,T,64] f32[N,2,S,64] f32[N,2,S,64] bool[T,S]", "",
       "f32[N,8,T,64] f32[N,2,S,64] f32[N,2,S,64] f32[N,8,T,S]", NULL},
      {"Attention", "f32[N,T,768] f32[N,S,768] f32[N,S,384]", "q_num_heads=12 kv_num_heads=12",
       "f32[N,T,384] f32[N,12,S,64] f32[N,12,S,32]", NULL},
      {"Attention", "f32[2,5,8] f32[2,3,4] f32[2,3,6]", "q_num_heads=4 kv_num_heads=2",
       "f32[2,5,12] f32[2,2,3,2] f32[2,2,3,3] f32[2,4,5,3]", NULL},
      {"Attention", "f32[1,4,1,8] f32[1,4,1,8] f32[1,4,1,8] - f32[1,4,9,?] ?[...]", "",
       "f32[1,4,1,8] f32[1,4,10,8] f32[1,4,10,8] f32[1,4,1,10]",
       "f32[1,4,1,8] f32[1,4,1,8] f32[1,4,1,8] - f32[1,4,9,8] f32[1,4,9,8]"},
      {"Attention", "f32[1,4,1,8] f32[1,4,P,8] f32[1,4,P,8] - f32[1,4,Q,8] f32[1,4,Q,8]", "",
       "f32[1,4,1,8] f32[1,4,P+Q,8] f32[1,4,P+Q,8] f32[1,4,1,P+Q]", NULL},
      {"Attention", "f32[1,?,2,3] f32[1,?,2,3] ?[...]", "q_num_heads=4 kv_num_heads=2", "f32[1,4,2,?]",
       "f32[1,4,2,3] f32[1,2,2,3] ?[1,2,2,?]"},
      {"Attention", "f32[1,2,3] f32[1,2,3] f32[1,2,3]", "", "!need q_num_heads", NULL},
      {"Attention", "f32[1,2,3] f32[1,2,3] f32[1,2,3]", "q_num_heads=3", "!need kv_num_heads", NULL},
      {"Attention", "f32[1,2,3] f32[1,2,3] f32[1,2,3]", "q_num_heads=2 kv_num_heads=3",
       "!3 columns of input 0 cannot be split into 2 heads", NULL},
      {"Attention", "f32[1,2,4] f32[1,2,4] f32[1,2,4]", "q_num_heads=2 kv_num_heads=4",
       "!heads of 2 columns in Q, but of 1 in K", NULL},
      {"Attention", "f32[1,3,2,4] f32[1,2,2,4] f32[1,2,2,4]", "",
       "!2 heads of keys cannot serve 3 heads of queries", NULL},
      {"Attention", "f32[1,3,2,4] f32[1,0,2,4] f32[1,0,2,4]", "", "!0 heads of keys cannot serve", NULL},
      {"Attention", "f32[1,2] f32[1,2] f32[1,2]", "", "!expected rank", NULL},
      {"Attention", "f32[1,2,2,4] f32[1,2,2] f32[1,2,2,4]", "", "!expected rank", NULL},
      {"Attention", "f32[1,2,2,4] f32[1,2,5,4] f32[1,2,5,4] f32[3]", "",
       "!dimension 0 of the mask is 3, which does not broadcast to 5", NULL},
      {"Attention", "f32[N,2,1,4] f32[N,2,C,4] f32[N,2,C,4] - - - ?[?]", "", "f32[N,2,1,4]",
       "f32[N,2,1,4] f32[N,2,C,4] f32[N,2,C,4] - - - i64[N]"},
      {"Attention", "f32[1,2,2,4] f32[1,2,5,4] f32[1,2,5,4] - f32[1,2,5,4] f32[1,2,5,4] i64[1]", "",
       "!expected nonpad_kv_seqlen or past_key, found both", NULL},
      {"Attention", "f32[1,2,2,4] f32[1,2,5,4] f32[1,2,5,4] - f32[1,2,5,4]", "",
       "!expected past_key and past_value, found only one", NULL},
      {"Attention", "f32[1,9223372036854775807,1,1] f32[1,1,1,1] f32[1,1,1,9223372036854775807]", "",
       "f32[1,9223372036854775807,1,9223372036854775807]", NULL},
  };
  INFER_CASES(cases);
}

UNIT_TEST(normalizations_know_their_parameters) {
  static const infer_case_t cases[] = {
      {"BatchNormalization", "f32[N,8,4,4] ?[?] ?[...] ?[...] f32[...]", "", "f32[N,8,4,4]",
       "f32[N,8,4,4] ?[8] ?[8] f32[8] f32[8]"},
      {"BatchNormalization", "f32[2,?,4] f32[8] f32[8] f32[8] f32[8]", "training_mode=1",
       "f32[2,8,4] f32[8] f32[8]", NULL},
      {"BatchNormalization", "f32[2,8,4] f32[8] f32[8] f32[8] f32[8]", "", "f32[2,8,4]", NULL},
      {"BatchNormalization", "f32[2,8,4] f32[7] f32[8] f32[8] f32[8]", "",
       "!input 'scale': expected shape [8], found [7]", NULL},
      {"BatchNormalizationTraining", "f32[N,6,4] ?[...] ?[...] f64[...] ?[...]", "",
       "f32[N,6,4] f64[6] f64[6] f64[6] f64[6]", NULL},
      {"BatchNormalizationGrad", "f32[N,6,4] ?[...] f32[...] f64[...] f64[...]", "",
       "f32[N,6,4] f32[6] f32[6]", "f32[N,6,4] f32[N,6,4] f32[6] f64[6] f64[6]"},
      {"LayerNormalization", "f32[N,T,64] f32[64] f32[64]", "", "f32[N,T,64] f32[N,T,1] f32[N,T,1]", NULL},
      {"LayerNormalization", "f32[N,T,?] ?[64]", "", "f32[N,T,64]", "f32[N,T,64] f32[64]"},
      {"LayerNormalization", "f32[2,3,4] f32[5]", "", "!expected shape [2, 3, 5], found [2, 3, 4]", NULL},
      {"LayerNormalization", "f32[2,3,4] f32[3,4]", "axis=1", "f32[2,3,4] f32[2,1,1]", NULL},
      {"LayerNormalization", "f32[2,3,4] f32[4]", "axis=3", "!expected an axis from -3 to 2, found 3", NULL},
      {"RMSNormalization", "f32[N,64] f32[64]", "", "f32[N,64]", NULL},
      {"InstanceNormalization", "f32[2,8,4,4] f32[?] f32[?]", "", "f32[2,8,4,4]",
       "f32[2,8,4,4] f32[8] f32[8]"},
      {"GroupNormalization", "f32[2,8,4,4] f32[8] f32[8]", "num_groups=2", "f32[2,8,4,4]", NULL},
      {"GroupNormalization", "f32[2,8,4,4] f32[8] f32[8]", "num_groups=3",
       "!8 channels cannot be split into 3 groups", NULL},
      {"Softmax", "f32[N,T]", "axis=1", "f32[N,T]", NULL},
      {"Softmax", "f32[N,T]", "axis=2", "!expected an axis from -2 to 1, found 2", NULL},
      {"LRN", "f32[1,5,5,5]", "size=3", "f32[1,5,5,5]", NULL},
  };
  INFER_CASES(cases);
}

UNIT_TEST(reductions_drop_or_keep_axes) {
  static const infer_case_t cases[] = {
      {"ReduceMean", "f32[N,T,8] i64(-1)", "", "f32[N,T,1]", NULL},
      {"ReduceMean", "f32[N,T,8] i64(0,2)", "keepdims=0", "f32[T]", NULL},
      {"ReduceSum", "f32[2,3]", "", "f32[1,1]", NULL},
      {"ReduceSum", "f32[2,3]", "keepdims=0", "f32[]", NULL},
      {"ReduceSum", "f32[2,3]", "noop_with_empty_axes=1", "f32[2,3]", NULL},
      {"ReduceMax", "f32[2,3] i64(2)", "", "!expected an axis from -2 to 1, found 2", NULL},
      {"ReduceMax", "f32[2,3] i64[?]", "", "f32[?,?]", NULL},
      {"ReduceMax", "f32[2,3] i64[?]", "keepdims=0", "f32[...]", NULL},
      {"ArgMax", "f32[2,3,4]", "axis=1", "i64[2,1,4]", NULL},
      {"ArgMin", "f32[2,3,4]", "axis=-1 keepdims=0", "i64[2,3]", NULL},
      {"ArgMin", "f32[2,3,4]", "axis=-9223372036854775808", "!expected an axis", NULL},
      {"CumSum", "f32[2,N] i64:1", "", "f32[2,N]", NULL},
      {"CumSum", "f32[2,N] i64:2", "", "!expected an axis", NULL},
  };
  INFER_CASES(cases);
}

UNIT_TEST(recurrent_layers_fill_in_their_weights) {
  static const infer_case_t cases[] = {
      {"LSTM", "f32[T,N,8] f32[1,64,8] f32[1,64,16]", "hidden_size=16",
       "f32[T,1,N,16] f32[1,N,16] f32[1,N,16]", NULL},
      {"LSTM", "f32[T,N,8] f32[2,64,8] ?[...] ?[...] ?[...]", "direction=bidirectional",
       "f32[T,2,N,16] f32[2,N,16] f32[2,N,16]", "f32[T,N,8] f32[2,64,8] f32[2,64,16] f32[2,128] i32[N]"},
      {"GRU", "f32[N,T,8] f32[1,48,8] f32[1,48,16]", "layout=1", "f32[N,T,1,16] f32[N,1,16]", NULL},
      {"RNN", "f32[5,2,?] f32[1,16,8] f32[1,16,16]", "", "f32[5,1,2,16] f32[1,2,16]",
       "f32[5,2,8] f32[1,16,8] f32[1,16,16]"},
      {"GRU", "f32[5,2,8] f32[1,50,8] f32[1,48,16]", "",
       "!input 'W': expected shape [1, 48, 8], found [1, 50, 8]", NULL},
      {"LSTM", "f32[5,2,8] f32[1,64,8] f32[1,64,16]", "hidden_size=15", "!expected shape", NULL},
      {"LSTM", "f32[5,2,8] f32[1,64,8] f32[1,64,16]", "direction=sideways", "!direction is 'sideways'", NULL},
      {"LSTM", "f32[5,2,8] f32[1,64,8] f32[1,64,16]", "hidden_size=-4", "!hidden_size is -4", NULL},
  };
  INFER_CASES(cases);
}

UNIT_TEST(quantization_losses_and_random_tensors_have_their_dtypes) {
  static const infer_case_t cases[] = {
      {"QuantizeLinear", "f32[N,8] f32[] i8[]", "", "i8[N,8]", NULL},
      {"QuantizeLinear", "f32[N,8] f32[]", "", "u8[N,8]", NULL},
      {"QuantizeLinear", "f32[N,8] f32[7]", "axis=1", "!expected shape", NULL},
      {"DequantizeLinear", "u8[N,8] f32[8] u8[8]", "axis=1", "f32[N,8]", NULL},
      {"DynamicQuantizeLinear", "f32[N,8]", "", "u8[N,8] f32[] u8[]", NULL},
      {"NegativeLogLikelihoodLoss", "f32[N,5,3] i64[?,?]", "", "f32[]", "f32[N,5,3] i64[N,3]"},
      {"NegativeLogLikelihoodLoss", "f32[N,5,3] i64[N,3]", "reduction=none", "f32[N,3]", NULL},
      {"SoftmaxCrossEntropyLoss", "f32[4,5] i64[4] f32[5]", "", "f32[] f32[4,5]", NULL},
      {"SoftmaxCrossEntropyLoss", "f32[4,5] i64[3]", "", "!expected shape [4], found [3]", NULL},
      {"RandomNormal", "", "shape=2,3 dtype=11", "f64[2,3]", NULL},
      {"RandomNormal", "", "shape=2,-3", "!expected sizes of 0 or more, found -3", NULL},
      {"RandomUniformLike", "f32[2,N]", "", "f32[2,N]", NULL},
      {"Bernoulli", "f32[2,N]", "dtype=9", "bool[2,N]", NULL},
      {"Multinomial", "f32[N,10]", "sample_size=4", "i32[N,4]", NULL},
      {"HannWindow", "i64:10", "", "f32[10]", NULL},
      {"DFT", "f32[1,10,1]", "", "f32[1,10,2]", NULL},
      {"DFT", "f32[1,10,1] i64:16 i64:1", "onesided=1", "f32[1,9,2]", NULL},
      {"DFT", "f32[2,6,2]", "inverse=1 onesided=1", "f32[2,10,1]", NULL},
      {"DFT", "f32[2,N,2]", "inverse=1 onesided=1", "f32[2,2*N-2,1]", NULL},
      {"DFT", "f32[2,6,2] i64:11", "inverse=1 onesided=1", "f32[2,11,1]", NULL},
      {"DFT", "f32[2,1,2] i64:1", "inverse=1 onesided=1", "f32[2,1,1]", NULL},
      {"DFT", "f32[2,1,2]", "inverse=1 onesided=1", "!half a spectrum of 1 needs dft_length", NULL},
      {"DFT", "f32[1,10,1] i64:16 i64:2", "", "!holds real and imaginary parts", NULL},
      {"STFT", "f32[1,128,1] i64:8 f32[16] -", "", "f32[1,15,9,2]", NULL},
      {"MelWeightMatrix", "i64:8 i64:16 i64:8192 f32:0 f32:4096", "", "f32[9,8]", NULL},
  };
  INFER_CASES(cases);
}

UNIT_SUITE("infer_compute")

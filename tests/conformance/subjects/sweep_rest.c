// SPDX-License-Identifier: Apache-2.0
// Operators that no other subject has, with their attributes: products, numbers that are quantized,
// transforms of signals, losses.
#include <stdio.h>

#include "sweep_case.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static void texts(sweep_t *sweep, const char *const *list, size_t count) {
  for (size_t k = 0; k < count; k++) {
    sweep_nodes(sweep, "%s", list[k]);
  }
}

/* Operators that rules spell out. */
static void both(sweep_t *sweep, const char *const *list, size_t count) {
  for (size_t k = 0; k < count; k++) {
    sweep_nodes(sweep, "%s", list[k]);
    sweep_rules(sweep, "%s", list[k]);
  }
}

static void products(sweep_t *sweep) {
  static const char *const equations[][2] = {
      {"ij,jk->ik", "a[2,3], b[3,4]"},
      {"ij,jk", "a[2,3], b[3,4]"},
      {"...i,ij->...j", "c[2,2,3], b[3,4]"},
      {"ij->i", "a[2,3]"},
      {"ij,ij->", "a[2,3], b[2,3]"},
      {"abc->cab", "c[2,2,3]"},
      {"ii->i", "s[3,3]"},
      {"ii->", "s[3,3]"},
      {"bii,bij->bj", "c[2,3,3], d[2,3,4]"},
      {"i,j,k->ijk", "u[2], v[3], w[2]"},
      {"bhqd,bhkd->bhqk", "q[1,2,3,4], k[1,2,5,4]"},
  };
  static const char *const list[] = {
      "Det(x[4,4])", "Det(x[2,3,3,3])", "Det(x[3,2,2])", "Det(x[3,1,1])", "CastLike(x[2,3], y[1])",
  };
  for (size_t k = 0; k < COUNT(equations); k++) {
    sweep_nodes(sweep, "Einsum{equation=\"%s\"}(%s)", equations[k][0], equations[k][1]);
  }
  texts(sweep, list, COUNT(list));
}

static void definitions(sweep_t *sweep) {
  static const char *const list[] = {
      "LpNormalization(x[2,3,4])",
      "LpNormalization{axis=1, p=1}(x[2,3,4])",
      "LpNormalization{axis=0}(Relu(Sub(x:f64[2,3,4], #1:f64)))",
      "LpNormalization(Mul(Relu(x[5,1]), #2))",
      "MeanVarianceNormalization(x[2,3,2,2])",
      "MeanVarianceNormalization{axes=[0,2]}(x[2,3,4])",
      "MeanVarianceNormalization{axes=[1,-1]}(x:f64[2,3,4])",
      "Relu(MeanVarianceNormalization(Conv(x[2,3,6,6], $w[17,3,3,3])))",
      "GlobalLpPool(x[2,3,4])",
      "GlobalLpPool{p=1}(x[2,3,4,2])",
      "GlobalLpPool{p=3}(x[2,3,4,2])",
      "Relu(GlobalLpPool(Conv(x[2,3,6,6], $w[17,3,3,3])))",
      "DequantizeLinear(x:i8[2,3], s+[])",
      "DequantizeLinear{axis=1}(x:i8[2,3], s+[3], z:i8[3])",
      "DequantizeLinear{axis=0}(x:u8[2,3], s+[2])",
      "DequantizeLinear(x:u8[2,3], Reshape(#0.5, #[1]), z:u8[1])",
      "DequantizeLinear{axis=-2}(x:i16[2,3,4], s+[3], z:i16[3])",
      "DequantizeLinear(x:i32[2,3], s+[])",
      "DequantizeLinear(x:u8[], s+[], z:u8[])",
      "DequantizeLinear{axis=0}(UnpackBits{bits=4, count=13, signed=1, transposed=1}(x:u8[5,2,4]), s+[13])",
      "DequantizeLinear(UnpackBits{axis=-1, bits=2, count=15}(x:u8[2,3,4]), s+[], z:u8[])",
      "DequantizeLinear{axis=0}(UnpackBits{axis=0, bits=8, count=5, signed=1}(x:u8[2,3]), s+[5])",
      "LpNormalization(x:f16[2,3,40])",
      "LpNormalization{p=1}(x:bf16[2,3,40])",
      "MeanVarianceNormalization(x:f16[2,3,7,8])",
      "GlobalLpPool(x:f16[2,3,7,8])",
      "GlobalLpPool{p=3}(x:f16[2,3,7,8])",
      "DequantizeLinear(x:i8[2,3], #0.5:f16)",
      "QuantizeLinear(x:f16[2,30], #0.05:f16, z:i8[])",
      "QuantizeLinear(x[2,30], #0.05)",
      "QuantizeLinear(x[2,30], #0.01, z:u8[])",
      "QuantizeLinear(x[2,30], #0.01, z:i8[])",
      "QuantizeLinear{axis=0}(x[3,7,2], s+[3], z:i16[3])",
      "QuantizeLinear{axis=-1}(x%[3,7,4], s+[4], z:u16[4])",
      "QuantizeLinear{axis=1, block_size=2}(x[2,4], s+[2,2], z:i8[2,2])",
      "Relu(DequantizeLinear(QuantizeLinear(Add(x[3,17], y[17]), #0.03, #120:u8), #0.03, #120:u8))",
  };
  both(sweep, list, COUNT(list));
}

/* Scales of whole tensors, along axes and of blocks, between every two dtypes. */
static void quantizations(sweep_t *sweep) {
  static const char *const numbers[] = {"f32", "f16", "bf16"};
  static const char *const integers[] = {"i8", "u8", "i16", "u16"};
  for (size_t n = 0; n < COUNT(numbers); n++) {
    for (size_t i = 0; i < COUNT(integers); i++) {
      const char *x = numbers[n];
      const char *y = integers[i];
      sweep_nodes(sweep, "QuantizeLinear(x:%s[2,30], #0.0625:%s, z:%s[])", x, x, y);
      sweep_nodes(sweep, "QuantizeLinear{axis=%d}(x%%:%s[3,3,3], s+:%s[3], z:%s[3])", (int)(n + i) % 3, x, x,
                  y);
      sweep_nodes(sweep, "QuantizeLinear{axis=1, block_size=3}(x%%:%s[2,7,3], s+:%s[2,3,3], z:%s[2,3,3])", x,
                  x, y);
      sweep_nodes(sweep, "DequantizeLinear(x:%s[2,30], #0.0625:%s, z:%s[])", y, x, y);
      sweep_nodes(sweep, "DequantizeLinear{axis=%d}(x:%s[3,3,3], s+:%s[3], z:%s[3])", (int)(n + i) % 3, y, x,
                  y);
      if (!sweep->gradients) { /* scales of blocks have none */
        sweep_nodes(sweep, "DequantizeLinear{axis=0, block_size=2}(x:%s[5,4], s+:%s[3,4], z:%s[3,4])", y, x,
                    y);
      }
    }
    sweep_nodes(sweep, "DequantizeLinear{axis=0}(x:i32[3,4], s+:%s[3])", numbers[n]);
    sweep_nodes(sweep, "QuantizeLinear(x!:%s[2,30], #0.0625:%s, z:i8[])", numbers[n], numbers[n]);
    sweep_nodes(sweep, "QuantizeLinear{axis=0}(x~:%s[3,30], s+:%s[3], z:u8[3])", numbers[n], numbers[n]);
  }
  if (!sweep->gradients) {
    sweep_nodes(sweep, "DequantizeLinear{axis=-1, block_size=4}(x:u8[3,0], s+[3,0], z:u8[3,0])");
    sweep_nodes(sweep,
                "MatMul(x[5,64], DequantizeLinear{axis=0, block_size=16}(w:u8[64,9], s+[4,9], z:u8[4,9]))");
  }
  sweep_nodes(sweep,
              "DequantizeLinear{axis=1}(QuantizeLinear{axis=1}(Conv(x[1,3,5,5], $w[4,3,2,2]), s+[4], "
              "z:u8[4]), s, z)");
}

/* Numbers of a seed are the same everywhere; they have no gradient. */
static void random_numbers(sweep_t *sweep) {
  static const char *const list[] = {
      "RandomNormal{shape=[3,40], seed=7.5, mean=2, scale=0.5}()",
      "RandomUniform{shape=[3,40], seed=3, low=-2, high=5}()",
      "RandomUniform{shape=[3,0]}()",
      "RandomUniform{shape=[70], dtype=11}()",
      "RandomNormal{shape=[2,3,4], dtype=10, seed=1}()",
      "RandomNormalLike{seed=2}(x[2,30])",
      "RandomNormalLike{dtype=11}(x:f16[2,30])",
      "RandomUniformLike{seed=-1, low=3, high=3.5}(x:bf16[2,30])",
      "Add(Mul(RandomNormalLike(x[2,30]), Exp(y[30])), x)",
      "Bernoulli{seed=4}(x&[3,50])",
      "Bernoulli{seed=4, dtype=9}(x&:f64[3,50])",
      "Bernoulli{dtype=6}(x&:f16[3,50])",
  };
  texts(sweep, list, sweep->gradients ? 0 : COUNT(list));
}

static void signals(sweep_t *sweep) {
  static const char *const list[] = {
      "DFT(x[2,3,5,1])",
      "DFT(x[2,4,3,2])",
      "DFT{onesided=1}(x[2,3,5,1])",
      "DFT{inverse=1}(x[2,4,3,2], _, Squeeze(#[1]))",
      "DFT(x[2,3,5,1], Squeeze(#[7]))",
      "DFT(x[2,4,3,2], Squeeze(#[3]), Squeeze(#[1]))",
      "DFT{onesided=1}(x[2,3,5,1], Squeeze(#[8]), Squeeze(#[2]))",
      "STFT(x[2,12,1], Squeeze(#[3]), w[4])",
      "STFT{onesided=0}(x[2,12,1], Squeeze(#[2]), w[4])",
      "STFT{onesided=0}(x[1,9,2], Squeeze(#[2]), w[4])",
      "STFT(x[2,12,1], Squeeze(#[2]), _, Squeeze(#[5]))",
      "DFT{inverse=1, onesided=1}(x[2,5,3,2], _, #1:i64)",
      "DFT{inverse=1, onesided=1}(x:f64[2,5,3,2], #9:i64, #1:i64)",
      "DFT{inverse=1, onesided=1}(x[2,9,2], #7:i64)",
      "DFT(x[3,64,1])",
      "DFT{onesided=1}(x:f64[3,101,2,1], _, #1:i64)",
      "DFT{inverse=1}(x[2,4,3,1], #6:i64, #1:i64)",
      "DFT{inverse=1}(x[2,8,2], #5:i64)",
      "DFT(x[0,8,1])",
      "DFT(x:f16[2,8,1])",
      "STFT(x:f64[2,33,2], #7:i64, w:f64[9])",
      "STFT{onesided=0}(Relu(x[2,40,1]), #40:i64, _, #17:i64)",
      "STFT(x[0,40,1], #8:i64, w[16])",
      "Col2Im(x[2,12,9], #[4,5], #[2,3])",
      "Col2Im(x[0,12,9], #[4,5], #[2,3])",
      "Col2Im(x[2,6,7], #[8], #[2])",
      "Col2Im{strides=[2,1,2]}(x[1,24,8], #[4,3,4], #[2,2,2])",
      "Col2Im(x:f64[2,12,9], #[4,5], #[2,3])",
      "Col2Im{strides=[2,3]}(x:f16[2,12,4], #[4,6], #[2,3])",
      "Col2Im{strides=[2,1], pads=[1,0,0,1], dilations=[1,2]}(x[1,4,12], #[5,5], #[2,2])",
  };
  static const char *const others[] = {
      /* what has no gradient */
      "STFT(x[2,160], #16:i64, $w[40])",
  };
  texts(sweep, list, COUNT(list));
  texts(sweep, others, sweep->gradients ? 0 : COUNT(others));
}

static void losses(sweep_t *sweep) {
  static const char *const kinds[] = {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"};
  static const char *const reductions[] = {"none", "sum", "mean"};
  static const char *const forms[] = {
      "%s{reduction=%s}(x[3,4], t:i64[3])",
      "%s{reduction=%s}(x[3,4,2], t:i64[3,2], w+[4])",
      "%s{reduction=%s, ignore_index=0}(x[3,4,2], t:i64[3,2], w+[4])",
      "%s{reduction=%s, ignore_index=1}(x:f64[3,4], t:i32[3])",
      "%s{reduction=%s}(x:f16[3,4], t:i64[3], w+:f16[4])",
      "%s{reduction=%s, ignore_index=-7}(x[3,4], Mul(t:i64[3], #[-7,1,2]))",
  };
  for (size_t k = 0; k < COUNT(kinds); k++) {
    for (size_t r = 0; r < COUNT(reductions); r++) {
      for (size_t f = 0; f < COUNT(forms); f++) {
        char text[128];
        (void)snprintf(text, sizeof text, forms[f], kinds[k], reductions[r]);
        sweep_nodes(sweep, "%s", text);
        sweep_rules(sweep, "%s", text);
      }
    }
  }
  static const char *const others[] = {
      "y, l = SoftmaxCrossEntropyLoss(x[3,4], t:i64[3], w+[4]) -> y, l",
      "y, l = SoftmaxCrossEntropyLoss(Add(x[3,4], b[4]), t:i64[3]) -> l",
      "y, l = SoftmaxCrossEntropyLoss(MatMul(x[3,5], $w[5,4]), t:i64[3]); Mul(y, Exp(l))",
  };
  both(sweep, others, COUNT(others));
}

void sweep_rest(sweep_t *sweep) {
  products(sweep);
  definitions(sweep);
  quantizations(sweep);
  signals(sweep);
  random_numbers(sweep);
  losses(sweep);
}

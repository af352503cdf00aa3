// SPDX-License-Identifier: Apache-2.0
// Matrix products: MatMul over every pair of ranks with stacks that broadcast, and Gemm in all its forms; the
// right and the left side constant and at run time.
#include <stdio.h>

#include "sweep.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const char *const sides[][2] = {{"", ""}, {"", "$"}, {"$", ""}};

static void matmuls(sweep_t *sweep) {
  static const char *const shapes[][2] = {
      {"[3,4]", "[4,5]"},
      {"[1,4]", "[4,5]"},
      {"[3,1]", "[1,5]"},
      {"[1,1]", "[1,1]"},
      {"[17,3]", "[3,17]"},
      {"[1,17]", "[17,1]"},
      {"[33,64]", "[64,48]"},
      {"[4]", "[4]"},
      {"[4]", "[4,5]"},
      {"[3,4]", "[4]"},
      {"[2,3,4]", "[4]"},
      {"[4]", "[2,4,5]"},
      {"[2,3,4]", "[4,5]"},
      {"[3,4]", "[2,4,5]"},
      {"[2,3,4]", "[2,4,5]"},
      {"[1,3,4]", "[2,4,5]"},
      {"[2,3,4]", "[1,4,5]"},
      {"[2,1,3,4]", "[3,4,5]"},
      {"[2,3,3,4]", "[2,1,4,5]"},
      {"[2,1,3,4]", "[1,3,4,5]"},
      {"[2,3,1,4]", "[2,3,4,1]"},
      {"[2,2,2,3,4]", "[4,5]"},
      {"[2,1,2,3,4]", "[3,1,4,5]"},
      {"[3,4]", "[2,2,2,4,5]"},
      {"[4]", "[2,1,4,5]"},
      {"[2,1,3,4]", "[4]"},
      {"[2,0,4]", "[4,5]"},
      {"[2,3,0]", "[0,5]"},
      {"[0,3,4]", "[4,5]"},
      {"[3,4]", "[4,0]"},
      {"[2,12,17,8]", "[2,12,8,17]"},
      {"[1,128,64]", "[64,3]"},
      {"[5,1,64]", "[64,64]"},
      {"[1]", "[1]"},
      {"[1,1,1]", "[1]"},
      {"[2,2,2,2,3,4]", "[2,2,1,1,4,3]"},
  };
  for (size_t k = 0; k < COUNT(shapes); k++) {
    for (size_t s = 0; s < COUNT(sides); s++) {
      sweep_nodes(sweep, "MatMul(%sa%s, %sb%s)", sides[s][0], shapes[k][0], sides[s][1], shapes[k][1]);
    }
  }
  sweep_nodes(sweep, "MatMul(a[17,17], a)");
  sweep_nodes(sweep, "MatMul(a[2,3,4], Transpose{perm=[0,2,1]}(a))");
  sweep_nodes(sweep, "MatMul(Transpose{perm=[1,0]}(a[4,3]), b[4,5])");
  sweep_nodes(sweep, "MatMul(a[4,3], Transpose{perm=[1,0]}($b[5,3]))");
  sweep_nodes(sweep, "MatMul(Transpose{perm=[0,2,1,3]}(a[2,5,3,4]), Transpose{perm=[0,2,3,1]}(b[2,6,3,4]))");
  sweep_nodes(sweep, "MatMul(a[4,6,5], Transpose{perm=[1,2,0]}(b[7,4,5]))");
  sweep_nodes(sweep, "MatMul(a[4,1,16], Transpose{perm=[1,0,2]}(b[16,4,32]))");
  sweep_nodes(sweep, "MatMul(Transpose{perm=[1,0,2]}(a[6,4,5]), Transpose{perm=[1,2,0]}(b[7,4,5]))");
  sweep_nodes(sweep, "MatMul(a[2,4,6,5], Transpose{perm=[1,0,2]}(b[5,4,7]))");
  sweep_nodes(sweep, "Transpose{perm=[1,0,2]}(MatMul(a[4,6,5], b[4,5,7]))");
  sweep_nodes(sweep, "MatMul(MatMul(a[3,4], $b[4,5]), c[5,2])");
  sweep_nodes(sweep, "MatMul(a:f64[3,4], b:f64[4,5])");
  sweep_nodes(sweep, "MatMul(a:i32[3,4], b:i32[4,5])");
}

/* One Gemm of size m x n x k in every form of C; C constant and at run time. */
static void gemm(sweep_t *sweep, int m, int n, int k, int a_turned, int b_turned, const char *factors,
                 const char *b_side) {
  char c[6][40];
  (void)snprintf(c[0], sizeof c[0], "%s", "");
  (void)snprintf(c[1], sizeof c[1], "c[]");
  (void)snprintf(c[2], sizeof c[2], "c[%d]", n);
  (void)snprintf(c[3], sizeof c[3], "c[1,%d]", n);
  (void)snprintf(c[4], sizeof c[4], "c[%d,1]", m);
  (void)snprintf(c[5], sizeof c[5], "c[%d,%d]", m, n);
  for (size_t form = 0; form < COUNT(c); form++) {
    const char *side = sweep_below(sweep, 2) == 0 ? "$" : "";
    sweep_nodes(sweep, "Gemm{transA=%d, transB=%d%s}(a[%d,%d], %sb[%d,%d]%s%s%s)", a_turned, b_turned,
                factors, a_turned != 0 ? k : m, a_turned != 0 ? m : k, b_side, b_turned != 0 ? n : k,
                b_turned != 0 ? k : n, form == 0 ? "" : ", ", form == 0 ? "" : side, c[form]);
  }
}

static void gemms(sweep_t *sweep) {
  static const char *const factors[] = {
      "",         ", alpha=0.5", ", beta=0.25",        ", alpha=0.5, beta=-2",
      ", beta=0", ", alpha=0",   ", alpha=0, beta=0.5"};
  static const int sizes[][3] = {{3, 5, 4}, {1, 17, 3}, {17, 1, 33}, {1, 1, 1}, {16, 32, 48}};
  for (size_t s = 0; s < COUNT(sizes); s++) {
    for (size_t f = 0; f < COUNT(factors); f++) {
      for (int turned = 0; turned < 4; turned++) {
        gemm(sweep, sizes[s][0], sizes[s][1], sizes[s][2], turned & 1, turned >> 1, factors[f],
             sweep_below(sweep, 2) == 0 ? "$" : "");
      }
    }
  }
  sweep_nodes(sweep, "Gemm(a[0,4], $b[4,5], $c[5])");
  sweep_nodes(sweep, "Gemm(a[3,0], $b[0,5], $c[5])");
  sweep_nodes(sweep, "Gemm(a[3,4], $b[4,0])");
  sweep_nodes(sweep, "Gemm(a[3,4], $b[4,5], #0.5)");
  sweep_nodes(sweep, "Gemm{beta=3}(a[3,4], $b[4,5], $c[1,1])");
  sweep_nodes(sweep, "Gemm(a[3,4], $b[4,5], $c[1])");
  sweep_nodes(sweep, "Gemm($a[3,4], b[4,5], c[5])");
  sweep_nodes(sweep, "Gemm{transB=1}(a[4,4], a, a)");
  sweep_nodes(sweep, "Gemm(a:f64[3,4], b:f64[4,5])");
  sweep_nodes(sweep, "Gemm(Flatten(x[2,3,4]), $w[12,5], $b[5])");
  sweep_nodes(sweep, "Gemm{transA=1}(Transpose{perm=[1,0]}(x[3,12]), $w[12,5], $b[5])");
}

/* A product whose result has several users, and products that feed each other through views. */
static void attention(sweep_t *sweep) {
  static const char *const before =
      "q = Transpose{perm=[0,2,1,3]}(Reshape(Add(MatMul(x[2,7,24], $wq[24,24]), $bq[24]), #[2,7,3,8]));"
      "k = Transpose{perm=[0,2,3,1]}(Reshape(Add(MatMul(x, $wk[24,24]), $bk[24]), #[2,7,3,8]));"
      "v = Transpose{perm=[0,2,1,3]}(Reshape(Add(MatMul(x, $wv[24,24]), $bv[24]), #[2,7,3,8]));";
  static const char *const after =
      "p = Softmax(s);"
      "o = Reshape(Transpose{perm=[0,2,1,3]}(MatMul(p, v)), #[2,7,24]);"
      "Add(Add(MatMul(o, $wo[24,24]), $bo[24]), x)";
  static const char *const scores[] = {
      "s = Div(MatMul(q, k), #2.8284271);",
      "s = Add(Div(MatMul(q, k), #2.8284271), m[2,1,1,7]);",
      "s = Mul(MatMul(Mul(q, #0.6), Mul(k, #0.6)), #0.7);",
      "s = Add(MatMul(q, k), m[7,7]);",
      "s = Add(m[1,3,7,7], MatMul(q, k));",
  };
  for (size_t k = 0; k < COUNT(scores); k++) {
    const char *outputs = k % 2 == 0 ? "" : " -> p, v";
    sweep_nodes(sweep, "%s %s %s%s", before, scores[k], after, outputs);
    sweep_rules(sweep, "%s %s %s%s", before, scores[k], after, outputs);
  }
}

/* The operator Attention: every form of operands, masks and attributes, between products and views. */
static void attention_operator(sweep_t *sweep) {
  static const char *const cases[] = {
      "Attention(q[2,3,7,8], k[2,3,5,8], v[2,3,5,6])",
      "Attention{scale=0.3, softcap=2}(q[2,3,7,8], k[2,3,5,8], v[2,3,5,6])",
      "Attention{is_causal=1}(q[1,2,17,16], k[1,2,17,16], v[1,2,17,16])",
      "Attention{is_causal=1}(q[1,2,3,4], k[1,2,5,4], v[1,2,5,4], m[5])",
      "Attention{q_num_heads=3, kv_num_heads=3}(q[2,7,24], k[2,5,24], v[2,5,12])",
      "Attention{q_num_heads=1, kv_num_heads=1}(q[12,7,8], k[12,5,8], v[12,5,8])",
      "Attention{q_num_heads=1, kv_num_heads=1}(q[12,7,8], k[12,5,8], v[12,5,8], $m[12,1,7,5])",
      "Attention(q[2,4,7,8], k[2,2,5,8], v[2,2,5,6])",
      "Attention{q_num_heads=4, kv_num_heads=2}(q[2,7,16], k[2,5,8], v[2,5,8], m[2,1,1,5])",
      "Attention{q_num_heads=4, kv_num_heads=1}(q[2,7,16], k[2,5,4], v[2,5,4])",
      "Attention(q[2,3,7,8], k[2,3,5,8], v[2,3,5,8], m[2,1,1,5])",
      "Attention(q[2,3,7,8], k[2,3,5,8], v[2,3,5,8], $m[1,3,7,5])",
      "Attention(q[2,3,7,8], k[2,3,5,8], v[2,3,5,8], Greater(m[7,5], #-1))",
      "Attention(q[1,2,1,64], k[1,2,300,64], v[1,2,300,64])",
      "y, k2, v2 = Attention(q[1,2,1,4], k[1,2,1,4], v[1,2,1,4], _, p[1,2,9,4], r[1,2,9,4]) -> y, k2, v2",
      "Attention(q:f64[1,2,3,4], k:f64[1,2,3,4], v:f64[1,2,3,4])",
      "Relu(Attention(q[2,3,7,8], k[2,3,5,8], v[2,3,5,6]))",
      "a = Attention(q[1,2,5,8], k[1,2,7,8], v[1,2,7,8]); Add(Attention(a, k, v), a)",
      "Attention(q[1,2,5,8], Transpose{perm=[0,1,3,2]}(k[1,2,8,6]), Add(v[1,2,6,8], #1))",
      "x[2,7,24]; Add(MatMul(Attention{q_num_heads=3, kv_num_heads=3}(Add(MatMul(x, $a[24,24]), $b[24]), "
      "MatMul(x, $c[24,24]), MatMul(x, $d[24,24])), $e[24,24]), x)",
  };
  for (size_t k = 0; k < COUNT(cases); k++) {
    sweep_nodes(sweep, "%s", cases[k]);
    sweep_rules(sweep, "%s", cases[k]);
  }
}

void sweep_product(sweep_t *sweep) {
  matmuls(sweep);
  gemms(sweep);
  attention(sweep);
  attention_operator(sweep);
}

// SPDX-License-Identifier: Apache-2.0
// Which products and convolutions of float32 are by AMX, in thirds: as cpu computes them, with what may
// follow in the same step. On other processors they are steps of another kind, with the same results.
#include "kernels/amx/thirds.h"
#include "onednn_case.h"

/* Computes what cpu does; a step of thirds if `is_taken` and the processor can, on any number of threads, or
 * else results would not be the same to the last bit. */
static void expect(const char *text, bool is_taken) {
  uint32_t expected = is_taken && kernel_thirds_runs_here() ? 1 : 0;
  onednn_case(text, 1e-5);
  for (int32_t threads = 1; threads <= 8; threads *= 2) {
    char labels[2048];
    onednn_labels_for(text, threads, labels, sizeof(labels));
    ck_assert_msg(onednn_occurrences(labels, " thirds") == expected, "%d threads: %s\n%s", (int)threads, text,
                  labels);
  }
}

UNIT_TEST(products_of_enough_rows_are_by_amx) {
  static const struct {
    int rows;
    int depth;
    int columns;
    const char *post;
    bool is_taken;
  } cases[] = {
      {128, 256, 192, "", true},
      {128, 256, 192, "z [128,192] = Relu(y)\n", true},
      {128, 256, 192, "z [128,192] = Clip(y, low, high)\n", true},
      {128, 256, 192, "z [128,192] = Gelu(y)\n", true},
      {128, 256, 192, "z [128,192] = Gelu(y) approximate=\"tanh\"\n", true},
      {128, 256, 192, "z [128,192] = Add(y, r)\n", true},
      {128, 256, 192, "s [128,192] = Add(y, r)\nz [128,192] = Swish(s)\n", true},
      {128, 256, 192, "s [128,192] = Mul(y, r)\nz [128,192] = Tanh(s)\n", true},
      {200, 270, 170, "z [200,170] = Relu(y)\n", true},
      {256, 1700, 100, "z [256,100] = Relu(y)\n", true},
      {1, 512, 512, "", false},
      {4, 512, 512, "", false},
      {64, 8, 96, "", false},
      {64, 128, 4, "", false},
  };
  for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
    char text[512];
    int rows = cases[k].rows;
    int depth = cases[k].depth;
    int columns = cases[k].columns;
    (void)snprintf(text, sizeof(text),
                   "x [%d,%d] = input\nr [%d,%d] = input\nw [%d,%d] = random\nb [%d] = random\nlow [] = -1\n"
                   "high [] = 1.5\n{\np [%d,%d] = MatMul(x, w)\ny [%d,%d] = Add(p, b)\n%s}",
                   rows, depth, rows, columns, depth, columns, columns, rows, columns, rows, columns,
                   cases[k].post);
    expect(text, cases[k].is_taken);
  }
}

UNIT_TEST(convolutions_of_enough_channels_are_by_amx) {
  static const struct {
    const char *x; /* shapes */
    const char *w;
    const char *y;
    const char *attributes;
    const char *then; /* reads y */
    bool is_taken;
  } cases[] = {
      {"2,128,28,28", "160,128,1,1", "2,160,28,28", "", "Relu(y)", true},
      {"1,128,28,28", "128,128,3,3", "1,128,14,14", "strides=[2,2] pads=[1,1,1,1]", "Relu(y)", true},
      {"1,64,9,10", "64,64,5,5", "1,64,9,10", "pads=[2,2,2,2]", "HardSwish(y)", true},
      {"1,64,9,10", "64,64,5,5", "1,64,9,10", "pads=[2,2,2,2]", "Add(y, r)", true},
      {"1,256,20,20", "512,256,1,1", "1,512,10,10", "strides=[2,2]", "Sigmoid(y)", true},
      {"1,128,17,17", "192,128,1,7", "1,192,17,17", "pads=[0,3,0,3]", "Swish(y)", true},
      {"1,64,14,14", "64,64,5,5", "1,64,6,6", "dilations=[2,2]", "Relu(y)", false},
      {"1,64,14,14", "64,32,5,5", "1,64,10,10", "group=2", "Relu(y)", false},
      {"1,64,9,10", "64,64,5,5", "1,64,9,10", "pads=[2,2,2,2]", "Mish(y)", false},
      {"1,3,30,30", "64,3,3,3", "1,64,28,28", "", "Relu(y)", false},
      {"1,64,1,1", "64,64,1,1", "1,64,1,1", "", "Relu(y)", false},
  };
  for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
    char text[512];
    const char *y = cases[k].y;
    (void)snprintf(text, sizeof(text),
                   "x [%s] = input\nr [%s] = input\nw [%s] = random\n{\ny [%s] = Conv(x, w) %s\n"
                   "z [%s] = %s\n}",
                   cases[k].x, y, cases[k].w, y, cases[k].attributes, y, cases[k].then);
    expect(text, cases[k].is_taken);
  }
}

/* Two threads that share columns split rows once for queries, keys and values; test_onednn_values has their
 * results. */
UNIT_TEST(rows_are_split_once_for_several_products) {
  char labels[1024];
  onednn_labels_for(
      "x [64,256] = input\nz [64,256] = input\nu [256,1024] = random\nv [256,1024] = random\nw [256,1024] = "
      "random\n"
      "q [64,1024] = MatMul(x, u)\nk [64,1024] = MatMul(x, v)\nl [64,1024] = MatMul(z, w)\n",
      2, labels, sizeof(labels));
  bool runs = kernel_thirds_runs_here();
  ck_assert_msg(onednn_occurrences(labels, "matmul thirds") == (runs ? 3 : 0), "%s", labels);
  ck_assert_msg(onednn_occurrences(labels, "same rows") == (runs ? 1 : 0), "%s", labels);
}

UNIT_SUITE("onednn_thirds")

// SPDX-License-Identifier: Apache-2.0
// TopK: of short and long rows, along every axis, of every dtype; equal elements, NaN and infinities among
// them.
#include "sweep_case.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const char *const dtypes[] = {"f32", "f64", "f16", "bf16", "i8",  "i16",
                                     "i32", "i64", "u8",  "u16",  "u32", "u64"};

static void short_rows(sweep_t *sweep) {
  static const char *const list[] = {
      "y, i = TopK(x[7,1], #[1]) -> y, i",
      "y, i = TopK(x[1], #[1]) -> y, i",
      "y, i = TopK(x[3,5], #[0]) -> y, i",
      "y, i = TopK(x[0,5], #[2]) -> y, i",
      "y, i = TopK{axis=0}(x[3,0], #[2]) -> y, i",
      "y, i = TopK{axis=1}(x[3,0,2], #[0]) -> y, i",
      "y, i = TopK(x[3,17], #[5]) -> i",
      "y, i = TopK(x[1025,3], #[2]) -> y, i",
      "y, i = TopK(Less(x[3,40], #0), #[7]) -> i",
      "y, i = TopK(Relu(MatMul(x[5,6], $w[6,9])), #[3]); Mul(Softmax(y), #2) -> i",
  };
  for (size_t k = 0; k < COUNT(list); k++) {
    sweep_nodes(sweep, "%s", list[k]);
  }
  sweep_rules(sweep, "y, i = TopK(Softmax(x[4,33]), #[3]) -> y, i");
  for (int largest = 0; largest < 2; largest++) {
    for (int k = 1; k <= 5; k += 2) {
      sweep_nodes(sweep, "y, i = TopK{largest=%d}(x[3,5], #[%d]) -> y, i", largest, k);
    }
    for (int axis = -3; axis < 3; axis++) {
      sweep_nodes(sweep, "y, i = TopK{axis=%d, largest=%d}(x[3,4,6], #[3]) -> y, i", axis, largest);
    }
    for (size_t t = 0; t < COUNT(dtypes); t++) {
      sweep_nodes(sweep, "y, i = TopK{axis=%d, largest=%d}(x%%:%s[40,9], #[%d]) -> y, i", (int)(t % 2),
                  largest, dtypes[t], (int)(t % 9) + 1);
    }
    for (size_t t = 0; t < 4; t++) {
      sweep_nodes(sweep, "y, i = TopK{largest=%d}(x!:%s[2,70], #[%d]) -> i", largest, dtypes[t],
                  (int)t * 23 + 1);
      sweep_nodes(sweep, "y, i = TopK{largest=%d}(Neg(x~:%s[2,70]), #[50]) -> y, i", largest, dtypes[t]);
    }
  }
}

/* Rows that several kernels take: what is selected of chunks, and chunks that are sorted and merged. */
static void long_rows(sweep_t *sweep) {
  static const struct {
    const char *shape;
    int axis;
    int count;
  } sizes[] = {{"[2,1025]", 1, 1},    {"[2,1500]", -1, 300}, {"[1,5000]", 1, 1024},  {"[3,9001]", 1, 5},
               {"[1,40000]", 1, 600}, {"[4099,2]", 0, 9},    {"[2,1100]", 1, 1100},  {"[1,4097]", 1, 1025},
               {"[1,9000]", 1, 9000}, {"[4099,2]", 0, 2500}, {"[2,3000,2]", 1, 2049}};
  static const char *const contents[] = {"", "%", "!", "~"};
  for (size_t s = 0; s < COUNT(sizes); s++) {
    for (int largest = 0; largest < 2; largest++) {
      sweep_nodes(sweep, "y, i = TopK{axis=%d, largest=%d}(x%%%s, #[%d]) -> y, i", sizes[s].axis, largest,
                  sizes[s].shape, sizes[s].count);
    }
  }
  for (size_t t = 0; t < COUNT(dtypes); t++) {
    sweep_nodes(sweep, "y, i = TopK{largest=%d}(x:%s[2,5000], #[%d]) -> y, i", (int)(t % 2), dtypes[t],
                t % 3 == 0 ? 1200 : 12);
  }
  for (size_t c = 0; c < COUNT(contents); c++) {
    sweep_nodes(sweep, "y, i = TopK(x%s[2,5000], #[700]) -> i", contents[c]);
  }
}

static void extremes(sweep_t *sweep) {
  static const char *const list[] = {
      "Hardmax(x[3,17])",
      "Hardmax{axis=0}(x[3,17])",
      "Hardmax{axis=-2}(x[2,3,5])",
      "Hardmax(x[2,300])",
      "Hardmax{axis=0}(x[300])",
      "Hardmax(x[3,0])",
      "Hardmax(x[0,3])",
      "Relu(Hardmax(MatMul(x[4,6], $w[6,40])))",
  };
  for (size_t k = 0; k < COUNT(list); k++) {
    sweep_nodes(sweep, "%s", list[k]);
  }
  for (size_t t = 0; t < COUNT(dtypes); t++) {
    if (t < 4) {
      sweep_nodes(sweep, "Hardmax(x%%:%s[4,70])", dtypes[t]);
      sweep_nodes(sweep, "Hardmax{axis=0}(x!:%s[7,3])", dtypes[t]);
      sweep_nodes(sweep, "ArgMax{axis=1, select_last_index=1}(x!:%s[3,170])", dtypes[t]);
    }
    sweep_nodes(sweep, "%s{axis=%d, select_last_index=1, keepdims=%d}(x%%:%s[3,40,2])",
                t % 2 == 0 ? "ArgMax" : "ArgMin", (int)(t % 3), (int)(t / 3 % 2), dtypes[t]);
    sweep_nodes(sweep, "ArgMin{axis=-1, select_last_index=1}(x%%:%s[3,400])", dtypes[t]);
  }
}

static void unpoolings(sweep_t *sweep) {
  static const char *const list[] = {
      "y, i = MaxPool{kernel_shape=[2,2], strides=[2,2]}(x[2,3,4,6]); "
      "MaxUnpool{kernel_shape=[2,2], strides=[2,2]}(y, i)",
      "y, i = MaxPool{kernel_shape=[3], strides=[2], pads=[1,1]}(x[2,3,9]); "
      "MaxUnpool{kernel_shape=[3], strides=[2], pads=[1,1]}(y, i)",
      "y, i = MaxPool{kernel_shape=[2,2,2], strides=[2,2,2]}(x[1,2,4,4,6]); "
      "MaxUnpool{kernel_shape=[2,2,2], strides=[2,2,2]}(y, i)",
      "y, i = MaxPool{kernel_shape=[2,2], strides=[2,2]}(x:f16[1,3,4,4]); "
      "MaxUnpool{kernel_shape=[2,2], strides=[2,2]}(y, i)",
      "y, i = MaxPool{kernel_shape=[2,2], strides=[2,2]}(x:f64[1,3,4,4]); "
      "MaxUnpool{kernel_shape=[2,2], strides=[2,2]}(y, i)",
      "y, i = MaxPool{kernel_shape=[2,2], strides=[2,2]}(x[0,3,4,4]); "
      "MaxUnpool{kernel_shape=[2,2], strides=[2,2]}(y, i)",
      "y, i = MaxPool{kernel_shape=[2,2], strides=[2,2]}(x[2,0,4,4]); "
      "MaxUnpool{kernel_shape=[2,2], strides=[2,2]}(y, i, #[2,0,6,6])",
      "y, i = MaxPool{kernel_shape=[2,2], strides=[2,2]}(x[2,3,4,6]); "
      "MaxUnpool{kernel_shape=[2,2], strides=[2,2]}(y, i, #[2,3,5,7])",
      "y, i = MaxPool{kernel_shape=[3]}(x[2,3,9]); MaxUnpool{kernel_shape=[3]}(y, i)",
  };
  for (size_t k = 0; k < COUNT(list); k++) {
    sweep_nodes(sweep, "%s", list[k]);
  }
}

void sweep_selection(sweep_t *sweep) {
  short_rows(sweep);
  long_rows(sweep);
  extremes(sweep);
  unpoolings(sweep);
}

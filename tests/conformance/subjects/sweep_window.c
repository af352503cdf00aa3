// SPDX-License-Identifier: Apache-2.0
// Windows over images: convolutions, transposed convolutions and poolings in one to three dimensions, with
// odd channel counts, groups, strides, dilations and every way to pad; and image sizes that change by Resize.
#include <stdio.h>

#include "sweep.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* Attributes of a two-dimensional window with kernel 3x3, for images of 7x9 and more. */
static const char *const windows[] = {
    "",
    "pads=[1,1,1,1]",
    "pads=[0,1,2,0]",
    "strides=[2,2]",
    "strides=[2,1], pads=[1,0,0,1]",
    "dilations=[2,2]",
    "dilations=[1,3], pads=[1,2,1,2]",
    "dilations=[2,1], strides=[1,2], pads=[2,1,0,1]",
    "auto_pad=SAME_UPPER",
    "auto_pad=SAME_LOWER",
    "auto_pad=SAME_UPPER, strides=[2,2]",
    "auto_pad=SAME_LOWER, strides=[2,3]",
    "auto_pad=VALID, strides=[3,1]",
    "strides=[4,4]",
    "auto_pad=SAME_LOWER, dilations=[2,2]",
};

static const struct {
  const char *data;
  const char *weights;
  int group;
} channels[] = {
    {"[1,3,7,9]", "[5,3,3,3]", 1},   {"[2,17,7,9]", "[3,17,3,3]", 1},  {"[1,16,8,8]", "[32,16,3,3]", 1},
    {"[1,6,7,9]", "[4,3,3,3]", 2},   {"[2,17,7,9]", "[17,1,3,3]", 17}, {"[1,32,9,10]", "[32,1,3,3]", 32},
    {"[1,3,7,9]", "[6,1,3,3]", 3},   {"[3,32,7,9]", "[64,8,3,3]", 4},  {"[1,1,7,9]", "[1,1,3,3]", 1},
    {"[2,4,11,7]", "[17,4,3,3]", 1},
};

static void convolutions(sweep_t *sweep) {
  for (size_t c = 0; c < COUNT(channels); c++) {
    for (size_t w = 0; w < COUNT(windows); w++) {
      char attributes[120];
      (void)snprintf(attributes, sizeof attributes, "{group=%d%s%s}", channels[c].group,
                     windows[w][0] == '\0' ? "" : ", ", windows[w]);
      /* Weights and bias constant and at run time by turns. */
      const char *side = sweep_below(sweep, 3) == 0 ? "" : "$";
      switch (sweep_below(sweep, 3)) {
        case 0:
          sweep_nodes(sweep, "Conv%s(x%s, %sw%s)", attributes, channels[c].data, side, channels[c].weights);
          break;
        case 1:
          sweep_nodes(sweep, "h = Conv%s(x%s, %sw%s); Relu(h)", attributes, channels[c].data, side,
                      channels[c].weights);
          break;
        default: {
          int out = 0;
          (void)sscanf(channels[c].weights, "[%d", &out);
          sweep_nodes(sweep, "Conv%s(x%s, %sw%s, %sb[%d])", attributes, channels[c].data, side,
                      channels[c].weights, sweep_below(sweep, 3) == 0 ? "" : "$", out);
        }
      }
    }
  }
}

static void other_convolutions(sweep_t *sweep) {
  static const char *const cases[] = {
      "Conv(x[2,3,11], $w[5,3,3])",
      "Conv{pads=[2,1], strides=[2], dilations=[2]}(x[2,17,11], $w[4,17,3], $b[4])",
      "Conv{group=17, auto_pad=SAME_LOWER}(x[1,17,12], $w[17,1,4])",
      "Conv{group=3}(x[1,3,8], w[6,1,2], b[6])",
      "Conv(x[1,3,5,6,7], $w[4,3,2,3,2], $b[4])",
      "Conv{pads=[1,0,1,0,1,1], strides=[2,1,2]}(x[2,3,5,6,7], $w[17,3,3,3,3])",
      "Conv{group=2, dilations=[2,1,1], auto_pad=SAME_UPPER}(x[1,6,5,6,7], $w[4,3,2,3,2])",
      "Conv{group=5}(x[1,5,4,4,4], w[5,1,2,2,2])",
      "Conv(x[1,17,1,1], $w[3,17,1,1])",
      "Conv(x[2,17,5,5], $w[33,17,1,1], $b[33])",
      "Conv{strides=[2,2]}(x[2,8,5,5], $w[16,8,1,1])",
      "Conv{pads=[1,1,1,1]}(x[1,8,5,5], $w[16,8,1,1])",
      "Conv(x[1,3,5,5], $w[7,3,5,5])",
      "Conv{pads=[3,3,3,3], strides=[2,2]}(x[1,3,20,20], $w[16,3,7,7])",
      "Conv{pads=[6,6,6,6], dilations=[6,6]}(x[1,4,9,9], $w[4,4,3,3])",
      "Conv{pads=[0,3,0,3]}(x[1,5,4,12], $w[6,5,1,7])",
      "Conv(x[2,0,5,5], $w[4,0,3,3])",
      "Conv(x[0,3,5,5], $w[4,3,3,3])",
      "Conv(x[2,3,5,5], $w[0,3,3,3])",
      "Conv{pads=[5,5,5,5]}(x[1,3,4,4], $w[2,3,3,3])",
      "Conv{auto_pad=SAME_UPPER, strides=[3,3]}(x[1,3,4,4], $w[2,3,2,2])",
      "Conv{kernel_shape=[3,3], pads=[1,1,1,1]}(x[1,3,4,4], $w[2,3,3,3])",
      "Conv{pads=[1,1,1,1]}(x[1,3,4,4], $w[4,3,3,3], Mul(s[4], #2))",
      "Conv{pads=[1,1,1,1]}(x[1,4,4,4], Reshape(s[144], #[4,4,3,3]))",
      "h = Conv{pads=[1,1,1,1]}(x[1,4,6,6], $w[4,4,3,3]); Conv{pads=[1,1,1,1]}(h, $w) -> h",
      "Conv(Pad(x[1,3,5,5], #[0,0,1,2,0,0,2,1]), $w[4,3,3,3])",
      "Conv{pads=[1,1,1,1]}(Pad(x[1,3,5,5], #[0,0,1,0,0,0,0,1]), $w[4,3,3,3])",
      "Conv(Pad(x[1,3,5,5], #[0,0,1,1,0,0,1,1], #0.5), $w[4,3,3,3])",
      "Conv(Pad{mode=reflect}(x[1,3,5,5], #[0,0,1,1,0,0,1,1]), $w[4,3,3,3])",
      "Conv(Pad(x[1,2,5,5], #[0,1,0,0,0,0,0,0]), $w[4,3,3,3])",
  };
  for (size_t k = 0; k < COUNT(cases); k++) {
    sweep_nodes(sweep, "%s", cases[k]);
    sweep_rules(sweep, "%s", cases[k]);
  }
}

static void transposed(sweep_t *sweep) {
  static const char *const attributes[] = {
      "",
      "pads=[1,1,1,1]",
      "strides=[2,2]",
      "strides=[2,2], pads=[1,0,0,1]",
      "strides=[2,3], output_padding=[1,2]",
      "strides=[2,2], output_padding=[1,1], pads=[1,1,1,1]",
      "dilations=[2,2]",
      "dilations=[2,1], strides=[1,2], pads=[2,1,0,1]",
      "strides=[2,2], output_shape=[10,12]",
      "strides=[2,2], output_shape=[11,12], auto_pad=SAME_UPPER",
      "strides=[2,2], auto_pad=SAME_UPPER",
      "strides=[2,2], auto_pad=SAME_LOWER",
      "strides=[3,3], auto_pad=SAME_LOWER, output_padding=[1,0]",
      "strides=[2,2], auto_pad=VALID",
      "strides=[4,4]",
  };
  static const struct {
    const char *data;
    const char *weights;
    int group;
    int out;
  } sizes[] = {
      {"[1,3,4,5]", "[3,5,3,3]", 1, 5},     {"[2,17,4,5]", "[17,3,3,3]", 1, 3},
      {"[1,6,4,5]", "[6,2,3,3]", 2, 4},     {"[1,17,4,5]", "[17,1,3,3]", 17, 17},
      {"[1,16,4,5]", "[16,16,3,3]", 1, 16}, {"[1,3,4,5]", "[3,2,3,3]", 3, 6},
  };
  for (size_t s = 0; s < COUNT(sizes); s++) {
    for (size_t a = 0; a < COUNT(attributes); a++) {
      const char *side = sweep_below(sweep, 3) == 0 ? "" : "$";
      const char *comma = attributes[a][0] == '\0' ? "" : ", ";
      if (sweep_below(sweep, 2) == 0) {
        sweep_nodes(sweep, "ConvTranspose{group=%d%s%s}(x%s, %sw%s)", sizes[s].group, comma, attributes[a],
                    sizes[s].data, side, sizes[s].weights);
      } else {
        sweep_nodes(sweep, "ConvTranspose{group=%d%s%s}(x%s, %sw%s, $b[%d])", sizes[s].group, comma,
                    attributes[a], sizes[s].data, side, sizes[s].weights, sizes[s].out);
      }
    }
  }
  sweep_nodes(sweep, "ConvTranspose{strides=[2]}(x[2,3,5], $w[3,4,3], b[4])");
  sweep_nodes(sweep, "ConvTranspose{strides=[2,1,2], pads=[1,0,1,0,1,0]}(x[1,3,3,4,5], $w[3,4,2,3,2])");
  sweep_nodes(sweep, "ConvTranspose{strides=[2,2]}(x[1,8,4,4], $w[8,4,2,2], $b[4])");
  sweep_nodes(sweep, "ConvTranspose(x[1,0,4,4], $w[0,4,2,2])");
}

static void poolings(sweep_t *sweep) {
  static const char *const ops[] = {"MaxPool", "AveragePool", "AveragePool{count_include_pad=1"};
  static const char *const images[] = {"[1,3,7,9]", "[2,17,8,8]", "[1,16,7,7]"};
  static const char *const ceiled[] = {"", ", ceil_mode=1"};
  for (size_t o = 0; o < COUNT(ops); o++) {
    for (size_t w = 0; w < COUNT(windows); w++) {
      for (size_t c = 0; c < COUNT(ceiled); c++) {
        sweep_nodes(sweep, "%s%skernel_shape=[3,3]%s%s%s}(x%s)", ops[o], o == 2 ? ", " : "{",
                    windows[w][0] == '\0' ? "" : ", ", windows[w], ceiled[c],
                    images[sweep_below(sweep, COUNT(images))]);
      }
    }
  }
}

static void other_poolings(sweep_t *sweep) {
  static const char *const cases[] = {
      "MaxPool{kernel_shape=[2]}(x[2,3,9])",
      "MaxPool{kernel_shape=[3], strides=[2], ceil_mode=1, pads=[1,1]}(x[2,3,10])",
      "AveragePool{kernel_shape=[3], strides=[2], pads=[1,0]}(x[2,17,10])",
      "MaxPool{kernel_shape=[2,3,2], strides=[2,1,2]}(x[1,5,4,6,5])",
      "AveragePool{kernel_shape=[2,3,2], pads=[1,1,1,0,1,0]}(x[1,17,4,6,5])",
      "AveragePool{kernel_shape=[2,2,2], count_include_pad=1, pads=[1,1,1,1,1,1]}(x[1,3,4,6,5])",
      "MaxPool{kernel_shape=[2,2]}(Neg(Exp(x[1,3,4,4])))",
      "MaxPool{kernel_shape=[3,3], pads=[2,2,2,2]}(Neg(Exp(x[1,3,4,4])))",
      "MaxPool{kernel_shape=[2,2], strides=[2,2], ceil_mode=1}(Neg(Exp(x[1,17,5,5])))",
      "MaxPool{kernel_shape=[3,3], strides=[2,2]}(x~[1,3,9,9])",
      "y, i = MaxPool{kernel_shape=[2,2]}(x[1,3,4,4]) -> y, i",
      "y, i = MaxPool{kernel_shape=[2,2]}(x[1,3,4,4]) -> y",
      "y, i = MaxPool{kernel_shape=[2,3], storage_order=1, strides=[2,1], pads=[1,0,0,1]}(x[2,3,5,7]) -> y, "
      "i",
      "y, i = MaxPool{kernel_shape=[2,2,2], storage_order=1, ceil_mode=1, dilations=[1,2,1]}(x[1,2,5,5,4]) "
      "-> y, i",
      "y, i = MaxPool{kernel_shape=[2,3], strides=[1,2], pads=[1,1,0,1]}(x[2,3,5,7]) -> i",
      "MaxPool{kernel_shape=[1,2], pads=[1,2,1,2]}(Neg(Exp(x[1,2,3,4])))",
      "y, i = MaxPool{kernel_shape=[1,1], pads=[1,0,0,1]}(x[1,2,3,4]) -> y, i",
      "MaxPool{kernel_shape=[2,2]}(x[0,3,4,4])",
      "MaxPool{kernel_shape=[1,1], strides=[2,2]}(x[2,3,5,5])",
      "AveragePool{kernel_shape=[5,5]}(x[2,3,5,5])",
      "AveragePool{kernel_shape=[2,2], strides=[2,2], ceil_mode=1, pads=[1,1,1,1]}(x[1,3,6,6])",
      "GlobalAveragePool(x[2,3,5,7])",
      "GlobalAveragePool(x[1,17,1,1])",
      "GlobalAveragePool(x[3,17,9])",
      "GlobalAveragePool(x[1,16,3,4,5])",
      "GlobalMaxPool(x[2,3,5,7])",
      "GlobalMaxPool(Neg(Exp(x[1,17,3,4,5])))",
      "GlobalMaxPool(x[3,17,9])",
      "LRN{size=5}(x[2,17,4,5])",
      "LRN{size=3, alpha=0.5, beta=0.5, bias=2}(x[1,16,4,5])",
      "LRN{size=4, alpha=0.5}(x[1,16,4,5])",
      "LRN{size=5, alpha=1, beta=0.9}(x[1,3,4,5])",
      "LpPool{kernel_shape=[2,2]}(x[1,3,4,5])",
      "LpPool{kernel_shape=[2,2], p=1}(x[1,3,4,5])",
      "LpPool{kernel_shape=[2,3], strides=[2,2], pads=[1,0,0,0], ceil_mode=1}(x[1,3,5,4])",
      "LpPool{kernel_shape=[2,2], p=4294967298}(x%[1,3,4,5])",
      "AveragePool{kernel_shape=[3,3]}(Pad(x[1,3,5,5], #[0,0,1,1,0,0,1,1]))",
      "AveragePool{kernel_shape=[3,3], strides=[2,2], ceil_mode=1}(Pad(x[1,3,6,6], #[0,0,1,1,0,0,0,0]))",
      "MaxPool{kernel_shape=[3,3]}(Pad(x[1,3,5,5], #[0,0,1,1,0,0,1,1]))",
      "Relu(AveragePool{kernel_shape=[2,2]}(Conv(x[1,17,7,7], $w[16,17,2,2])))",
      "MaxPool{kernel_shape=[2,2], strides=[2,2]}(Conv{pads=[1,1,1,1]}(x[2,3,8,8], $w[17,3,3,3]))",
      "Mul(GlobalAveragePool(x[2,17,5,5]), s[2,17,1,1])",
      "Add(AveragePool{kernel_shape=[2,2]}(x[2,17,5,5]), s[2,17,4,4])",
      "Max(AveragePool{kernel_shape=[2,2]}(x[1,16,5,5]), s[1,16,4,4])",
      "Mul(AveragePool{kernel_shape=[2,2]}(x[2,17,5,5]), s[1,1,4,4])",
      "Mul(AveragePool{kernel_shape=[2,2]}(Conv(x[2,3,5,5], $w^[16,3,1,1])), s[2,16,4,4])",
      "Add(MaxPool{kernel_shape=[3,3], pads=[1,1,1,1]}(x[1,17,5,5]), x)",
  };
  for (size_t k = 0; k < COUNT(cases); k++) {
    sweep_nodes(sweep, "%s", cases[k]);
    sweep_rules(sweep, "%s", cases[k]);
  }
}

static void resizes(sweep_t *sweep) {
  static const char *const modes[] = {"mode=nearest", "mode=linear", "mode=cubic"};
  static const char *const transforms[] = {"half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners",
                                           "half_pixel_symmetric"};
  static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  static const char *const sizes[] = {"[1,3,8,10]", "[1,3,3,2]", "[1,3,1,1]",
                                      "[1,3,4,15]", "[1,3,7,5]", "[1,3,12,5]"};
  for (size_t m = 0; m < COUNT(modes); m++) {
    for (size_t t = 0; t < COUNT(transforms); t++) {
      for (size_t r = 0; r < (m == 0 ? COUNT(roundings) : 1); r++) {
        for (size_t s = 0; s < COUNT(sizes); s++) {
          sweep_nodes(sweep,
                      "Resize{%s, coordinate_transformation_mode=%s, nearest_mode=%s}(x[1,3,4,5], _, _, #%s)",
                      modes[m], transforms[t], roundings[r], sizes[s]);
        }
      }
    }
  }
  sweep_nodes(sweep, "Resize{mode=linear}(x[2,17,9], _, _, #[2,17,4])");
  sweep_nodes(sweep, "Resize{mode=linear}(x[1,3,3,4,5], _, _, #[1,3,6,8,10])");
  sweep_nodes(sweep, "Resize{mode=nearest}(x[1,17,3,4,5], _, _, #[1,17,6,8,10])");
  sweep_nodes(sweep, "Resize{mode=linear}(x[2,4,4,5], _, _, #[2,8,8,10])");
  sweep_nodes(sweep, "Resize{mode=linear}(x[4,5], _, _, #[8,10])");
  sweep_nodes(sweep, "Resize{mode=linear, axes=[2,3]}(x[1,3,4,5], _, _, #[8,10])");
  static const char *const narrow[][2] = {{"[2,5,1]", "[2,5,2]"},       {"[1,5,1,1]", "[1,5,2,2]"},
                                          {"[2,16,1,1]", "[2,16,3,2]"}, {"[2,17,3,1]", "[2,17,6,2]"},
                                          {"[2,5,1,3]", "[2,5,2,6]"},   {"[1,5,1,1,1]", "[1,5,2,2,2]"}};
  for (size_t k = 0; k < COUNT(narrow); k++) {
    for (size_t m = 0; m < 2; m++) {
      sweep_nodes(sweep, "Resize{%s}(x%s, _, _, #%s)", modes[m], narrow[k][0], narrow[k][1]);
      sweep_nodes(sweep, "Resize{%s}(Relu(Add(x%s, y%s)), _, _, #%s)", modes[m], narrow[k][0], narrow[k][0],
                  narrow[k][1]);
    }
  }
  sweep_nodes(sweep, "Resize{mode=linear}(Conv(x[1,3,2,2], $w[5,3,2,2]), _, _, #[1,5,2,2])");
  sweep_nodes(sweep, "Resize{mode=linear}(Transpose{perm=[0,3,1,2]}(x[2,1,1,5]), _, _, #[2,5,2,2])");
  sweep_rules(sweep, "Add(Resize(x[1,17,4,5], _, _, #[1,17,8,10]), y[1,17,8,10])");
  sweep_rules(sweep, "Relu(Resize{mode=linear}(Conv(x[1,3,6,6], $w[16,3,3,3]), _, _, #[1,16,8,8]))");
}

/* What training has beside: gradients of all of the above, statistics of batches, and both in a row. */
static void gradients(sweep_t *sweep) {
  static const char *const pools[] = {
      "kernel_shape=[2,2]", "kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]",
      "kernel_shape=[3,2], dilations=[1,2]", "kernel_shape=[2,3], auto_pad=SAME_UPPER, strides=[2,2]",
      "kernel_shape=[3,3], ceil_mode=1, strides=[2,2]"};
  static const char *const images[] = {"[2,17,7,9]", "[1,16,8,8]", "[2,3,9,7]"};
  for (size_t c = 0; c < COUNT(channels); c++) {
    for (size_t w = 0; w < COUNT(windows); w++) {
      char attributes[120];
      (void)snprintf(attributes, sizeof attributes, "kernel_shape=[3,3], group=%d%s%s", channels[c].group,
                     windows[w][0] == '\0' ? "" : ", ", windows[w]);
      sweep_nodes(sweep, "h = Conv{%s}(x%s, w%s); ConvGradWeight{%s}(x, h)", attributes, channels[c].data,
                  channels[c].weights, attributes);
    }
  }
  sweep_nodes(sweep, "ConvGradWeight{kernel_shape=[3], strides=[2]}(x[2,5,9], d[2,4,4])");
  sweep_nodes(sweep, "ConvGradWeight{kernel_shape=[2,2,2]}(x[1,5,3,4,5], d[1,18,2,3,4])");
  for (size_t k = 0; k < COUNT(images); k++) {
    for (size_t p = 0; p < COUNT(pools); p++) {
      sweep_nodes(sweep, "MaxPoolGrad{%s}(MaxPool{%s}(x%s), x)", pools[p], pools[p], images[k]);
      sweep_nodes(sweep, "AveragePoolGrad{%s}(AveragePool{%s}(x%s), #%s)", pools[p], pools[p], images[k],
                  images[k]);
    }
    sweep_nodes(sweep, "ReluGrad(d%s, x%%%s)", images[k], images[k]);
    sweep_nodes(sweep, "ReluGrad(d~%s, x~%s)", images[k], images[k]);
  }
  static const char *const averages[][2] = {
      {"[2,5,9]", "kernel_shape=[3], strides=[2], pads=[1,1]"},
      {"[2,5,9]", "kernel_shape=[3], strides=[2], pads=[1,1], count_include_pad=1"},
      {"[1,3,6,5]", "kernel_shape=[3,2], pads=[1,1,1,1], count_include_pad=1"},
      {"[1,3,6,5]", "kernel_shape=[2,2], strides=[2,2], pads=[1,1,0,0], count_include_pad=1, ceil_mode=1"},
      {"[1,3,6,5]", "kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]"},
      {"[1,3,6,5]", "kernel_shape=[2,2], strides=[3,3]"},
      {"[1,2,4,6,5]", "kernel_shape=[2,3,2], strides=[1,2,2], pads=[1,1,0,1,1,0]"}};
  static const char *const floats[] = {"f32", "f64", "f16", "bf16"};
  for (size_t k = 0; k < COUNT(averages); k++) {
    for (size_t t = 0; t < COUNT(floats); t++) {
      sweep_nodes(sweep, "AveragePoolGrad{%s}(AveragePool{%s}(x:%s%s), #%s)", averages[k][1], averages[k][1],
                  floats[t], averages[k][0], averages[k][0]);
    }
  }
  for (size_t t = 0; t < COUNT(floats); t++) {
    const char *own = floats[t];
    sweep_nodes(sweep,
                "dx, ds, db = BatchNormalizationGrad{epsilon=0.01}(d:%s[2,5,3,4], x:%s[2,5,3,4], s:%s[5], "
                "m:%s[5], v+:%s[5]) -> dx, ds, db",
                own, own, own, own, own);
    sweep_nodes(sweep, "dx, ds, db = BatchNormalizationGrad(d:%s[7,5], x:%s[7,5], s[5], m[5], v+[5]) -> db",
                own, own);
  }
  sweep_nodes(
      sweep,
      "dx, ds, db = BatchNormalizationGrad(d:f16[2,5,6], x:f16[2,5,6], s:f32[5], m:f64[5], v+:f64[5]) "
      "-> dx, ds");
  sweep_nodes(sweep,
              "y, m, v = BatchNormalization{training_mode=1, momentum=0.8}(x[2,5,3,4], s[5], b[5], m0[5], "
              "v0+[5]) -> y, m, v");
  sweep_nodes(sweep, "BatchNormalization{training_mode=1}(x:f16[2,5,3,4], s[5], b[5], m0[5], v0+[5])");
  static const char *const batches[][2] = {
      {"[4,17,5,6]", "[17]"}, {"[2,32,8,8]", "[32]"}, {"[3,5,70]", "[5]"}, {"[9,20]", "[20]"}};
  for (size_t k = 0; k < COUNT(batches); k++) {
    const char *x = batches[k][0];
    const char *c = batches[k][1];
    sweep_nodes(sweep,
                "y, a, b, m, v = BatchNormalizationTraining{momentum=0.8}(x%s, s%s, t%s, p%s, q+%s); "
                "dx, ds, db = BatchNormalizationGrad(d%s, x, s, m, v) -> y, a, b, m, v, dx, ds, db",
                x, c, c, c, c, x);
  }
  sweep_nodes(sweep,
              "h = Conv{pads=[1,1,1,1]}(x[2,32,8,8], w^[32,32,3,3]); "
              "y, a, b, m, v = BatchNormalizationTraining(h, s[32], t[32], p[32], q+[32]); "
              "z = Relu(Add(y, x)); e = ReluGrad(d[2,32,8,8], z); "
              "dh, ds, db = BatchNormalizationGrad(e, h, s, m, v); "
              "dw = ConvGradWeight{kernel_shape=[3,3], pads=[1,1,1,1]}(x, dh); "
              "dx = ConvTranspose{pads=[1,1,1,1]}(dh, w) -> z, a, b, ds, db, dw, dx");
}

void sweep_window(sweep_t *sweep) {
  convolutions(sweep);
  other_convolutions(sweep);
  transposed(sweep);
  poolings(sweep);
  other_poolings(sweep);
  resizes(sweep);
  gradients(sweep);
}

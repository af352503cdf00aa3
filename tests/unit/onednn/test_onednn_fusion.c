// SPDX-License-Identifier: Apache-2.0
// Fusions of the oneDNN backend against the nodes one by one on the reference backend: what follows a
// convolution, product or pooling.
#include "onednn_case.h"

/* Winograd's algorithm, which 3x3 windows use, rounds differently. */
#define WINOGRAD 1e-4

#define CONVOLUTION                                                    \
  "x [2,16,9,9] = input\nw [32,16,3,3] = random\nb [32] = random\n{\n" \
  "y [2,32,9,9] = Conv(x, w, b) kernel_shape=[3,3] pads=[1,1,1,1] strides=[1,1] group=1\n"

#define PRODUCT                                                                               \
  "x [4,10,32] = input\nw [32,24] = random\nb [24] = random\n{\np [4,10,24] = MatMul(x, w)\n" \
  "y [4,10,24] = Add(p, b)\n"

UNIT_TEST(folds_batch_normalization_into_a_convolution) {
  onednn_case(CONVOLUTION "}", WINOGRAD);
  onednn_case("g [32] = random\nc [32] = random\nm [32] = random\nv [32] = positive\n" CONVOLUTION
              "n [2,32,9,9] = BatchNormalization(y, g, c, m, v) epsilon=0.001 training_mode=0\n"
              "r [2,32,9,9] = Relu(n)\n}",
              WINOGRAD);
}

UNIT_TEST(folds_constants_per_channel_into_a_convolution) {
  onednn_case("g [32,1,1] = random\nc [1,32,1,1] = random\ns [] = 0.25\n" CONVOLUTION
              "m [2,32,9,9] = Mul(g, y)\na [2,32,9,9] = Sub(m, c)\nd [2,32,9,9] = Div(a, s)\n}",
              WINOGRAD);
}

UNIT_TEST(adds_a_residual_to_a_convolution) {
  onednn_case("r [2,32,9,9] = input\n" CONVOLUTION "s [2,32,9,9] = Add(y, r)\nz [2,32,9,9] = Relu(s)\n}",
              WINOGRAD);
  onednn_case("r [2,32,9,9] = input\n" CONVOLUTION
              "a [2,32,9,9] = Relu(y)\ns [2,32,9,9] = Add(r, a)\nz [2,32,9,9] = Tanh(s)\n}",
              WINOGRAD);
}

UNIT_TEST(adds_the_input_of_the_same_convolution) {
  onednn_case(
      "x [1,16,7,7] = input\nw [16,16,1,1] = random\n{\n"
      "a [1,16,7,7] = Relu(x)\n}\n{\n"
      "y [1,16,7,7] = Conv(a, w) kernel_shape=[1,1]\ns [1,16,7,7] = Add(a, y)\n}\n",
      1e-5);
}

UNIT_TEST(takes_operands_of_every_broadcast_shape) {
  static const char *const shapes[] = {"",        "1",       "32,1,1",   "1,32,1,1", "9",       "9,9",
                                       "1,1,9,1", "2,1,1,1", "2,32,1,1", "32,9,9",   "2,32,9,9"};
  static const char *const ops[] = {"Add", "Sub", "Mul", "Div", "Max", "Min"};
  for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
    const char *op = ops[s % 6];
    char text[1024];
    (void)snprintf(text, sizeof(text),
                   "r [%s] = positive\n" CONVOLUTION "z [2,32,9,9] = %s(y, r)\nt [2,32,9,9] = Relu(z)\n}",
                   shapes[s], op);
    onednn_case(text, WINOGRAD);
    (void)snprintf(text, sizeof(text),
                   "r [%s] = input\n" CONVOLUTION "z [2,32,9,9] = %s(y, r)\nt [2,32,9,9] = Relu(z)\n}",
                   shapes[s], s % 6 == 3 ? "Mul" : op);
    onednn_case(text, WINOGRAD);
  }
}

UNIT_TEST(turns_subtraction_and_division_around) {
  onednn_case("r [2,32,9,9] = input\n" CONVOLUTION "z [2,32,9,9] = Sub(r, y)\n}", WINOGRAD);
  onednn_case("r [] = 2\n" CONVOLUTION "e [2,32,9,9] = Exp(y)\nz [2,32,9,9] = Div(r, e)\n}", 1e-4);
  onednn_case("r [32,1,1] = random\n" CONVOLUTION "e [2,32,9,9] = Exp(y)\nz [2,32,9,9] = Div(r, e)\n}", 1e-4);
}

UNIT_TEST(pads_where_the_graph_pads) {
  onednn_case(
      "x [1,4,8,9] = input\np i64[8] = 0 0 1 1 0 0 1 2\nw [6,4,3,3] = random\n{\n"
      "q [1,4,10,12] = Pad(x, p) mode='constant'\n"
      "y [1,6,8,10] = Conv(q, w) kernel_shape=[3,3]\nz [1,6,8,10] = Relu(y)\n}",
      1e-5);
  onednn_case(
      "x [1,4,8,8] = input\np i64[8] = 0 0 1 1 0 0 1 1\n{\n"
      "q [1,4,10,10] = Pad(x, p) mode='constant'\n"
      "y [1,4,8,8] = AveragePool(q) kernel_shape=[3,3] count_include_pad=0\n}",
      1e-5);
  onednn_case(
      "x [1,5,9,7] = input\nw [7,5,3,3] = random\n"
      "y [1,7,5,4] = Conv(x, w) kernel_shape=[3,3] strides=[2,2] auto_pad='SAME_UPPER'\n"
      "z [1,7,5,4] = Relu(y)",
      1e-5);
}

UNIT_TEST(fuses_grouped_dilated_and_transposed_convolutions) {
  onednn_case(
      "x [2,16,9,9] = input\nw [16,1,3,3] = random\n{\n"
      "y [2,16,9,9] = Conv(x, w) kernel_shape=[3,3] pads=[1,1,1,1] group=16\n"
      "z [2,16,9,9] = HardSwish(y)\n}",
      1e-5);
  onednn_case(
      "x [2,16,9] = input\nw [12,4,3] = random\n{\n"
      "y [2,12,5] = Conv(x, w) kernel_shape=[3] dilations=[2] group=4\nz [2,12,5] = Elu(y) alpha=0.5\n}",
      1e-5);
  onednn_case(
      "x [1,3,4,5,6] = input\nw [4,3,2,2,2] = random\n{\n"
      "y [1,4,3,4,5] = Conv(x, w) kernel_shape=[2,2,2]\nz [1,4,3,4,5] = Sigmoid(y)\n}",
      1e-5);
  onednn_case(
      "g [8] = random\nc [8] = random\nm [8] = random\nv [8] = positive\n"
      "x [2,16,5,5] = input\nw [16,4,3,3] = random\nb [8] = random\n{\n"
      "y [2,8,10,10] = ConvTranspose(x, w, b) kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] "
      "output_padding=[1,1] group=2\n"
      "n [2,8,10,10] = BatchNormalization(y, g, c, m, v) epsilon=0.001\nz [2,8,10,10] = Relu(n)\n}",
      1e-5);
}

static const char *const activations[] = {
    "z S = Relu(y)\n",
    "z S = Clip(y, zero, six)\n",
    "z S = Clip(y, -, six)\n",
    "z S = LeakyRelu(y) alpha=0.2\n",
    "z S = Elu(y) alpha=0.7\n",
    "z S = Selu(y)\n",
    "z S = Celu(y) alpha=0.6\n",
    "z S = Sigmoid(y)\n",
    "z S = Tanh(y)\n",
    "z S = Softplus(y)\n",
    "z S = Mish(y)\n",
    "z S = HardSwish(y)\n",
    "z S = HardSigmoid(y) alpha=0.3 beta=0.4\n",
    "z S = Gelu(y)\n",
    "z S = Gelu(y) approximate='tanh'\n",
    "z S = Abs(y)\n",
    "z S = Neg(y)\n",
    "z S = Swish(y) alpha=1.702\n",
    "z S = Add(y, y)\n",
    "z S = Mul(y, y)\n",
    "z S = Max(y, y)\n",
    "z S = Sum(y, y, y)\n",
};

#define CONSTANTS "zero [] = 0\nsix [] = 6\n"

/* The text with every S replaced by a shape. */
static void shaped(char *out, size_t size, const char *text, const char *shape) {
  size_t used = 0;
  for (; *text != '\0' && used + 1 < size; text++) {
    if (text[0] == 'S' && text[1] == ' ') {
      used += (size_t)snprintf(out + used, size - used, "%s", shape);
    } else {
      out[used++] = *text;
    }
  }
  out[used] = '\0';
}

UNIT_TEST(fuses_every_activation) {
  for (size_t k = 0; k < sizeof(activations) / sizeof(activations[0]); k++) {
    char text[2048];
    char part[1024];
    shaped(part, sizeof(part), activations[k], "[2,32,9,9]");
    (void)snprintf(text, sizeof(text), CONSTANTS CONVOLUTION "%s}", part);
    onednn_case(text, WINOGRAD);
    shaped(part, sizeof(part), activations[k], "[4,10,24]");
    (void)snprintf(text, sizeof(text), CONSTANTS PRODUCT "%s}", part);
    onednn_case(text, WINOGRAD);
    (void)snprintf(text, sizeof(text),
                   CONSTANTS "other [4,10,24] = input\n" PRODUCT "%sw2 [4,10,24] = Add(z, other)\n}", part);
    onednn_case(text, WINOGRAD);
    (void)snprintf(text, sizeof(text), CONSTANTS "y [4,10,24] = input\n{\n%s}", part);
    onednn_case(text, WINOGRAD);
  }
}

UNIT_TEST(keeps_apart_the_parameters_of_one_algorithm_used_twice) {
  onednn_case("r [2,32,9,9] = input\n" CONVOLUTION
              "a [2,32,9,9] = LeakyRelu(y) alpha=0.2\ns [2,32,9,9] = Add(a, r)\n"
              "z [2,32,9,9] = LeakyRelu(s) alpha=0.6\n}",
              WINOGRAD);
  onednn_case("two [] = 2\nthree [] = 3\nr [2,32,9,9] = input\n" CONVOLUTION
              "s [2,32,9,9] = Add(y, r)\na [2,32,9,9] = Mul(s, two)\nt [2,32,9,9] = Tanh(a)\n"
              "z [2,32,9,9] = Mul(t, three)\n}",
              WINOGRAD);
}

UNIT_TEST(multiplies_matrices_of_every_rank) {
  static const char *const cases[] = {
      "a [5] = %s\nb [5] = %s\nc [] = MatMul(a, b)\nd [] = Relu(c)",
      "a [5] = %s\nb [5,3] = %s\nc [3] = MatMul(a, b)\nd [3] = Relu(c)",
      "a [4,5] = %s\nb [5] = %s\nc [4] = MatMul(a, b)\nd [4] = Relu(c)",
      "a [2,4,5] = %s\nb [5] = %s\nc [2,4] = MatMul(a, b)\nd [2,4] = Relu(c)",
      "a [5] = %s\nb [2,5,3] = %s\nc [2,3] = MatMul(a, b)\nd [2,3] = Relu(c)",
      "a [2,4,5] = %s\nb [2,5,3] = %s\nc [2,4,3] = MatMul(a, b)\nd [2,4,3] = Relu(c)",
      "a [2,1,4,5] = %s\nb [3,5,6] = %s\nc [2,3,4,6] = MatMul(a, b)\nd [2,3,4,6] = Relu(c)",
      "a [4,5] = %s\nb [2,3,5,6] = %s\nc [2,3,4,6] = MatMul(a, b)\nd [2,3,4,6] = Relu(c)",
      "a [2,3,2,4,5] = %s\nb [2,3,2,5,6] = %s\nc [2,3,2,4,6] = MatMul(a, b)\nd [2,3,2,4,6] = Relu(c)",
      "a [2,3,2,4,5] = %s\nb [3,1,5,6] = %s\nc [2,3,2,4,6] = MatMul(a, b)\nd [2,3,2,4,6] = Relu(c)",
  };
  for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
    for (int constant = 0; constant < 3; constant++) {
      char text[512] = "{\n";
      (void)snprintf(text, sizeof(text), cases[k], constant == 2 ? "random" : "input",
                     constant == 1 ? "random" : "input");
      onednn_case(text, 1e-5);
    }
  }
}

UNIT_TEST(computes_gemm_with_all_its_parameters) {
  static const char *const shapes[] = {"", "6", "1,6", "4,1", "4,6"};
  for (int flags = 0; flags < 4; flags++) {
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
      for (int constant = 0; constant < 2; constant++) {
        char text[512];
        (void)snprintf(text, sizeof(text),
                       "a %s = input\nb %s = %s\nc [%s] = %s\n{\n"
                       "y [4,6] = Gemm(a, b, c) transA=%d transB=%d alpha=0.7 beta=0.5\nz [4,6] = Tanh(y)\n}",
                       (flags & 1) != 0 ? "[5,4]" : "[4,5]", (flags & 2) != 0 ? "[6,5]" : "[5,6]",
                       constant != 0 ? "random" : "input", shapes[s], s % 2 == 0 ? "random" : "input",
                       flags & 1, (flags & 2) / 2);
        onednn_case(text, 1e-5);
      }
    }
  }
}

UNIT_TEST(scales_a_product_by_factors_of_its_inputs) {
  onednn_case(
      "a [2,3,4,8] = input\nb [2,3,8,5] = input\nm [2,1,1,5] = input\ns [] = 0.5\nd [] = 3\n{\n"
      "t [2,3,4,8] = Mul(a, s)\nu [2,3,8,5] = Div(b, d)\np [2,3,4,5] = MatMul(t, u)\n"
      "y [2,3,4,5] = Add(p, m)\n}",
      1e-5);
  onednn_case(
      "a [3,8] = input\nb [8,5] = random\ns [1] = 0.5\n{\n"
      "t [3,8] = Mul(s, a)\np [3,5] = MatMul(t, b)\ny [3,5] = Relu(p)\n}",
      1e-5);
}

UNIT_TEST(fuses_what_follows_poolings_reductions_and_resampling) {
  onednn_case(
      "x [2,16,9,11] = input\nc [16,1,1] = random\n{\n"
      "y [2,16,4,5] = MaxPool(x) kernel_shape=[3,3] strides=[2,2]\nz [2,16,4,5] = Relu(y)\n"
      "t [2,16,4,5] = Mul(z, c)\n}",
      1e-5);
  onednn_case(
      "x [2,5,9] = input\n{\n"
      "y [2,5,5] = AveragePool(x) kernel_shape=[3] strides=[2] pads=[1,1] ceil_mode=1\n"
      "z [2,5,5] = Tanh(y)\n}",
      1e-5);
  onednn_case(
      "x [2,16,5,6] = input\naxes i64[2] = 2 3\nh [] = 0.5\n{\n"
      "y [2,16] = ReduceMean(x, axes) keepdims=0\nz [2,16] = Mul(y, h)\n}",
      1e-5);
  onednn_case(
      "x [2,7,5,6] = input\naxes i64[2] = -1 1\n{\n"
      "y [2,1,5,1] = ReduceSum(x, axes) keepdims=1\nz [2,1,5,1] = Sigmoid(y)\n}",
      1e-5);
  onednn_case(
      "x [1,8,5,6] = input\ns [4] = 1 1 2 2\n{\n"
      "y [1,8,10,12] = Resize(x, -, s) mode='linear' coordinate_transformation_mode='half_pixel'\n"
      "z [1,8,10,12] = Relu(y)\n}",
      1e-5);
  onednn_case(
      "x [1,8,5,6] = input\ns [4] = 1 1 3 3\n"
      "y [1,8,15,18] = Resize(x, -, s) mode='nearest' coordinate_transformation_mode='asymmetric' "
      "nearest_mode='floor'\n",
      1e-6);
}

/* Weights of 2, 4 and 8 bits, packed along the depth, and across it, which no kernel reads. */
UNIT_TEST(multiplies_by_packed_integers) {
#define NUMBERS "27 228 30 177 129 200 7 90 66 15 240 99\n"
  static const char *const texts[] = {
      "w u8[3,4] = " NUMBERS
      "z u8[3] = 3 0 200\ns [3] = positive\n{ integers\n"
      "q u8[8,3] = cleave.UnpackBits(w) bits=4 count=8 transposed=1\n"
      "n [8,3] = DequantizeLinear(q, s, z) axis=1\ny [5,3] = MatMul(x, n)\n}\n",
      "w u8[6,2] = " NUMBERS
      "s [6,1] = positive\n{ integers\n"
      "q i8[6,8] = cleave.UnpackBits(w) bits=2 count=8 signed=1\n"
      "n [6,8] = DequantizeLinear(q, s) axis=1 block_size=8\ny [5,6] = Gemm(x, n) transB=1\n}\n",
      "w u8[1,12] = " NUMBERS
      "s [1] = positive\n{ integers\n"
      "q i8[8,1] = cleave.UnpackBits(w) bits=8 count=8 signed=1 transposed=1\n"
      "n [8,1] = DequantizeLinear(q, s) axis=1\ny [5,1] = MatMul(x, n)\n}\n",
      "w u8[8,1] = 129\ns [] = 0.5\n{ integers\nq u8[8,2] = cleave.UnpackBits(w) bits=4 count=2\n"
      "n [8,2] = DequantizeLinear(q, s)\ny [5,2] = MatMul(x, n)\n}\n",
  };
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    char text[512];
    (void)snprintf(text, sizeof text, "x [5,8] = input\n%s", texts[k]);
    onednn_case(text, 2e-6);
  }
}

UNIT_SUITE("onednn_fusion")

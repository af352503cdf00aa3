// SPDX-License-Identifier: Apache-2.0
// What the oneDNN backend refuses, with the reason people read; and hostile or unusual views.
#include "onednn_case.h"

#define CONVOLUTION \
  "x [1,16,5,5] = input\nw [8,16,1,1] = random\n{\ny [1,8,5,5] = Conv(x, w) kernel_shape=[1,1]\n"

UNIT_TEST(refuses_post_ops_that_do_not_exist) {
  onednn_refuses(
      "x [1,4,8,8] = input\n{\np [1,4,4,4] = MaxPool(x) kernel_shape=[2,2] strides=[2,2]\n"
      "y [1,4,4,4] = Erf(p)\n}",
      "oneDNN has no post-op for Erf after MaxPool: node 'node'");
  onednn_refuses(CONVOLUTION "z [1,8,5,5] = Sin(y)\n}",
                 "oneDNN has no post-op for Sin after Conv: node 'node'");
  onednn_refuses("x [2,8] = input\n{\ny [2,8] = Softmax(x) axis=-1\nz [2,8] = Relu(y)\n}",
                 "oneDNN has no post-op for Relu after Softmax: node 'node'");
  onednn_refuses("x [2,8] = input\ne [8] = random\n{\ny [2,8] = Relu(x)\nz [2,8] = Pow(y, e)\n}",
                 "oneDNN has no post-op for Pow after a value: node 'node'");
}

UNIT_TEST(refuses_chains_that_read_a_value_twice) {
  onednn_refuses(CONVOLUTION "a [1,8,5,5] = Relu(y)\nb [1,8,5,5] = Tanh(y)\nz [1,8,5,5] = Add(a, b)\n}",
                 "Tanh 'node' is the second node of the fusion that reads 'value', and a chain of post-ops "
                 "reads it once; rules/canonical.lua finds activations that are spelled out");
  // A Swish that is spelled out.
  onednn_refuses(CONVOLUTION "s [1,8,5,5] = Sigmoid(y)\nz [1,8,5,5] = Mul(y, s)\n}",
                 "Mul 'node' is the second node of the fusion that reads 'value', and a chain of post-ops "
                 "reads it once; rules/canonical.lua finds activations that are spelled out");
  onednn_refuses(
      "x [4,8] = input\nlast i64[1] = -1\n{\nm [4,1] = ReduceMean(x, last) keepdims=1\n"
      "d [4,8] = Sub(x, m)\nq [4,8] = Mul(d, d)\nv [4,1] = ReduceMean(q, last) keepdims=1\n}",
      "ReduceMean 'node' and ReduceMean 'node' are two primitives of oneDNN");
}

UNIT_TEST(refuses_operands_that_are_the_value_itself) {
  // Alone they are generated kernels.
  onednn_refuses("x [4] = input\n{\nw [4] = Neg(x)\ny [4] = Sub(w, w)\n}",
                 "oneDNN has no post-op for Sub after a value: node 'node'");
  onednn_refuses("x [4] = input\n{\ny [4] = Sum(x, x, x)\nz [4] = Pow(y, y)\n}",
                 "oneDNN has no post-op for Pow after a value: node 'node'");
  onednn_refuses("x [4] = input\nr [4] = input\n{\ny [4] = Relu(x)\nz [4] = Sum(y, r, y)\n}",
                 "oneDNN has no post-op for Sum after a value: node 'node'");
}

UNIT_TEST(refuses_values_inside_that_are_used_outside) {
  onednn_refuses(CONVOLUTION "z [1,8,5,5] = Relu(y)\n}\noutput y\n",
                 "value 'value' inside the fusion is also used outside");
}

UNIT_TEST(refuses_two_primitives_in_one) {
  onednn_refuses("w2 [4,8,1,1] = random\n" CONVOLUTION "z [1,4,5,5] = Conv(y, w2) kernel_shape=[1,1]\n}",
                 "Conv 'node' and Conv 'node' are two primitives of oneDNN");
  onednn_refuses(
      "v [1,8,5,5] = input\n" CONVOLUTION
      "a [1,8,5,5] = Relu(y)\nb [1,8,5,5] = Tanh(v)\nz [1,8,5,5] = Add(a, b)\n}",
      "Add 'node': its operand 'value' is computed inside the fusion; a post-op needs it from outside");
}

UNIT_TEST(refuses_operands_that_enlarge_the_result) {
  onednn_refuses(
      "x [1,16,5,5] = input\nw [1,16,1,1] = random\nr [1,8,5,5] = input\n{\n"
      "y [1,1,5,5] = Conv(x, w) kernel_shape=[1,1]\nz [1,8,5,5] = Add(y, r)\n}",
      "Add 'node': its operand 'value' would enlarge the result");
}

UNIT_TEST(refuses_more_post_ops_than_there_are) {
  char text[4096] = "x [2,8] = input\n{\nv0 [2,8] = Tanh(x)\n";
  for (int k = 0; k < 33; k++) {
    size_t used = strlen(text);
    (void)snprintf(text + used, sizeof(text) - used, "v%d [2,8] = Tanh(v%d)\n", k + 1, k);
  }
  strncat(text, "}", sizeof(text) - strlen(text) - 1);
  onednn_refuses(text, "oneDNN supports at most 32 post-ops, 'node' would be one more");
}

UNIT_TEST(refuses_what_is_not_constant_or_not_float32) {
  onednn_refuses("x [4] = input\nlow [] = input\n{\nw [4] = Neg(x)\ny [4] = Clip(w, low)\n}",
                 "Clip 'node': the bound 'value' is not a constant scalar");
  onednn_refuses("x i64[4] = input\ny i64[4] = Neg(x)", "Neg 'node': value 'value' is not float32");
  onednn_refuses("x [4,3] = input\ns i64[2] = input\ny [3,4] = Reshape(x, s)",
                 "Reshape 'node': value 'value' is not float32");
  onednn_refuses(
      "x [1,2,4,4] = input\nw [2,2,1,1] = random\n{\ny [1,2,4,4] = Conv(x, w) kernel_shape=[1,1]\n"
      "z [1,2,4,4] = Dropout(y, -, w)\n}",
      "Dropout 'node': its training mode is not a constant false");
}

UNIT_TEST(refuses_geometry_that_differs) {
  onednn_refuses(
      "x [1,2,4,4] = input\ns [4] = 1 1 2 2\n"
      "y [1,2,8,8] = Resize(x, -, s) mode='linear' coordinate_transformation_mode='align_corners'",
      "Resize 'node': oneDNN samples at half-pixel centres");
  onednn_refuses(
      "x [1,2,4,4] = input\ns [4] = 1 1 2 2\n"
      "y [1,2,8,8] = Resize(x, -, s) mode='nearest' coordinate_transformation_mode='half_pixel' "
      "nearest_mode='floor'",
      "Resize 'node': its rounding differs from oneDNN's");
  onednn_refuses("x [1,4,8,8] = input\np i64[8] = 0 0 1 1 0 0 1 1\ny [1,4,10,10] = Pad(x, p)",
                 "Pad 'node': oneDNN pads only inside a convolution or an average pooling");
  onednn_refuses(
      "x [1,4,8,8] = input\np i64[8] = 0 0 1 1 0 0 1 1\n{\nq [1,4,10,10] = Pad(x, p)\n"
      "y [1,4,8,8] = MaxPool(q) kernel_shape=[3,3]\n}",
      "Pad 'node' cannot be computed inside MaxPool 'node'");
  onednn_refuses("x [1,4,8,8] = input\nw [4,4,3,3] = random\ny [1,4,6,6] = Conv(x, w) strides=[1]",
                 "Conv 'node': expected 2 strides, found 1");
  onednn_refuses(
      "x [8,9] = input\nb i64[1] = 7\ne i64[1] = 0\na i64[1] = 0\nk i64[1] = -1\n"
      "y [7,9] = Slice(x, b, e, a, k)",
      "Slice 'node': a negative step");
}

UNIT_TEST(refuses_tensors_without_elements) {
  onednn_refuses("x [0,4] = input\ny [0,4] = Relu(x)", "Relu 'node': value 'value' has no elements");
}

UNIT_TEST(answers_for_what_is_known_of_a_shape) {
  static const char *const texts[] = {
      "x [?,16,?,?] = input\nw [8,16,3,3] = random\nb [8,1,1] = random\n{\n"
      "y [?,8,?,?] = Conv(x, w) kernel_shape=[3,3]\nz [?,8,?,?] = Add(y, b)\nr [?,8,?,?] = Relu(z)\n}",
      "x [?,?,32] = input\nw [32,24] = random\nb [24] = random\nr [?,?,24] = input\n{\n"
      "y [?,?,24] = MatMul(x, w)\nz [?,?,24] = Add(y, b)\nt [?,?,24] = Add(z, r)\n}",
      "x [*] = input\ny [*] = Relu(x)",
      "x [*] = input\nw [32,24] = random\ny [*] = MatMul(x, w)",
  };
  op_backend_t onednn = onednn_create();
  for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
    fusion_region_t *region = fusion_region_create(texts[k], true);
    cleave_message_t message = {.text = ""};
    cleave_compile_options_t options = {.size = sizeof(options), .threads = 1};
    void *program = NULL;
    const cleave_region_view_t *view = fusion_region_view(region);
    ck_assert_msg(onednn.backend->supports(onednn.state, view, &message) == CLEAVE_OK, "%s", message.text);
    ck_assert_int_eq(onednn.backend->compile(onednn.state, view, &options, &program, &message),
                     CLEAVE_ERROR_UNSUPPORTED);
    ck_assert_msg(strstr(message.text, "unknown") != NULL || strstr(message.text, "known rank") != NULL, "%s",
                  message.text);
    ck_assert_ptr_null(program);
    fusion_region_destroy(region);
  }
  op_backend_destroy(&onednn);
}

UNIT_TEST(refuses_shapes_that_contradict_each_other_when_it_compiles) {
  static const char *const texts[] = {
      "x [3,4] = input\nw [5,6] = random\ny [3,6] = MatMul(x, w)",
      "x [1,16,5,5] = input\nw [8,15,1,1] = random\ny [1,8,5,5] = Conv(x, w) kernel_shape=[1,1]",
      "x [1,16,5,5] = input\nw [8,16,3,3] = random\ny [1,8,900,5] = Conv(x, w) kernel_shape=[3,3]",
      "x [1,16,5,5] = input\ny [1,16,9,9] = MaxPool(x) kernel_shape=[2,2]",
      "x [3,4] = input\ns i64[1] = 13\ny [13] = Reshape(x, s)",
      "x [3,4] = input\nz [5,4] = input\ny [3,4] = Add(x, z)",
      "x [3,4] = input\nz [3,4] = input\ny [7,4] = Concat(x, z) axis=0",
      "x [3,4] = input\nb i64[1] = 2\ne i64[1] = 4\na i64[1] = 0\ny [9,4] = Slice(x, b, e, a)",
      "x [3,4] = input\na [2,4] & b [2,4] = Split(x) axis=0",
      "x [1,4,8,8] = input\ng [5] = random\ny [1,4,8,8] = BatchNormalization(x, g, g, g, g)",
  };
  op_backend_t onednn = onednn_create();
  for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
    fusion_region_t *region = fusion_region_create(texts[k], true);
    cleave_message_t message = {.text = ""};
    cleave_compile_options_t options = {.size = sizeof(options), .threads = 1};
    void *program = NULL;
    ck_assert_msg(onednn.backend->compile(onednn.state, fusion_region_view(region), &options, &program,
                                          &message) != CLEAVE_OK,
                  "%s", texts[k]);
    ck_assert_str_ne(message.text, "");
    ck_assert_ptr_null(program);
    fusion_region_destroy(region);
  }
  op_backend_destroy(&onednn);
}

UNIT_TEST(refuses_huge_tensors) {
  op_backend_t onednn = onednn_create();
  view_builder_t *b = view_builder_create();
  int64_t dims[2] = {(int64_t)1 << 40, (int64_t)1 << 40};
  uint32_t x = view_builder_value(b, CLEAVE_DTYPE_F32, 2, dims);
  uint32_t y = view_builder_value(b, CLEAVE_DTYPE_F32, 2, dims);
  view_builder_node(b, "Relu", 1, &x, 1, &y);
  view_builder_output(b, y);
  cleave_message_t message = {.text = ""};
  cleave_compile_options_t options = {.size = sizeof(options), .threads = 1};
  void *program = NULL;
  ck_assert_int_eq(
      onednn.backend->compile(onednn.state, view_builder_region(b), &options, &program, &message),
      CLEAVE_ERROR_LIMIT);
  ck_assert_str_eq(message.text, "value 'value': it has more than 2^44 elements");
  view_builder_destroy(b);
  op_backend_destroy(&onednn);
}

UNIT_TEST(refuses_another_major_version) {
  cleave_message_t message = {.text = ""};
  ck_assert_ptr_null(cleave_backend_onednn(CLEAVE_BACKEND_ABI_MAJOR + 1, 0, &message));
  char expected[64];
  (void)snprintf(expected, sizeof expected, "backend interface %d, expected %d", CLEAVE_BACKEND_ABI_MAJOR + 1,
                 CLEAVE_BACKEND_ABI_MAJOR);
  ck_assert_str_eq(message.text, expected);
  ck_assert_ptr_nonnull(cleave_backend_onednn(CLEAVE_BACKEND_ABI_MAJOR, 99, &message));
}

UNIT_TEST(packed_weights_that_are_no_constant_matrix) {
#define PRODUCT "n [8,2] = DequantizeLinear(q, s)\ny [5,2] = MatMul(x, n)\n}\n"
  onednn_refuses(
      "x [5,8] = input\nw u8[2,4] = input\ns [] = 0.5\n{ integers\n"
      "q u8[8,2] = cleave.UnpackBits(w) bits=4 count=8 transposed=1\n" PRODUCT,
      "UnpackBits 'node': its bytes are not constant");
  onednn_refuses(
      "x [5,8] = input\nw u8[2,4] = 7\ns [] = 0.5\n{ integers\n"
      "q u8[8,2] = cleave.UnpackBits(w) bits=2 count=17 transposed=1\n" PRODUCT,
      "UnpackBits 'node': its bytes do not fit its numbers");
  onednn_refuses(
      "x [5,8] = input\nw u8[2,4] = 7\ns [] = 0.5\n{ integers\n"
      "q u8[8,2] = cleave.UnpackBits(w) axis=0 bits=8 count=8\n" PRODUCT,
      "UnpackBits 'node': its result is no matrix");
}

UNIT_SUITE("onednn_refuse")

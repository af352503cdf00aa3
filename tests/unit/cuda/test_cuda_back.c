// SPDX-License-Identifier: Apache-2.0
// Gradients of convolutions on a GPU: cuDNN's calls with its operands in their places, kernels where it has
// no algorithm or is missing, its errors; all against cpu.
#include "gpu_case.h"
#include "graph/graph.h"

enum { X_COUNT = 2 * 4 * 7 * 6, DY_COUNT = 2 * 6 * 4 * 3 };
static const int64_t x_dims[4] = {2, 4, 7, 6};
static const int64_t dy_dims[4] = {2, 6, 4, 3};
static const int64_t w_dims[4] = {6, 2, 3, 3};
static float x_data[X_COUNT];
static float dy_data[DY_COUNT];
static float w_data[6 * 2 * 3 * 3];

static void fill(float *data, int count, int step) {
  for (int k = 0; k < count; k++) {
    data[k] = (float)(k * step % 17 - 8) / 8.0f;
  }
}

static cleave_value_t add(session_case_t *c, const cleave_op_t *op, const char *name, cleave_value_t a,
                          cleave_value_t b) {
  static const int64_t pads[4] = {1, 1, 1, 1};
  static const int64_t strides[2] = {2, 2};
  static const int64_t size[2] = {3, 3};
  const cleave_value_t inputs[2] = {a, b};
  cleave_node_t node;
  ck_assert_ptr_nonnull(op);
  unit_ok(cleave_graph_add_node(c->graph, op, name, inputs, 2, 1, &node, e));
  unit_ok(cleave_graph_set_ints(c->graph, node, "kernel_shape", size, 2, e));
  unit_ok(cleave_graph_set_ints(c->graph, node, "strides", strides, 2, e));
  unit_ok(cleave_graph_set_ints(c->graph, node, "pads", pads, 4, e));
  unit_ok(cleave_graph_set_int(c->graph, node, "group", 2, e));
  cleave_value_t output = cleave_node_output(c->graph, node, 0);
  unit_ok(cleave_graph_set_value_name(c->graph, output, name, e));
  session_case_output(c, output);
  return output;
}

/* Both gradients of a convolution with groups, strides and borders, of which the last windows leave a column.
 */
static session_case_t gradients(bool on_device) {
  static const int64_t left[2] = {0, 1};
  session_case_t c = session_case_create();
  fill(x_data, X_COUNT, 5);
  fill(dy_data, DY_COUNT, 7);
  fill(w_data, 6 * 2 * 3 * 3, 11);
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 4, x_dims);
  cleave_value_t dy = session_case_input(&c, "dy", CLEAVE_DTYPE_F32, 4, dy_dims);
  cleave_value_t w = session_case_floats(&c, "w", 4, w_dims, w_data);
  (void)add(&c, cleave_op_find("cleave", "ConvGradWeight"), "dw", x, dy);
  cleave_value_t dx = add(&c, cleave_op_find("", "ConvTranspose"), "dx", dy, w);
  unit_ok(cleave_graph_set_ints(c.graph, cleave_value_producer(c.graph, dx), "output_padding", left, 2, e));
  session_case_infer(&c);
  if (on_device) {
    session_case_partition(&c, "ConvTranspose,ConvGradWeight", "cuda");
  }
  session_case_feed(&c, 4, x_dims, x_data);
  session_case_feed(&c, 4, dy_dims, dy_data);
  const cleave_session_options_t options = {.size = sizeof options, .threads = 1};
  session_case_compile(&c, &options);
  return c;
}

static void expect_equal(session_case_t *c) {
  session_case_t reference = gradients(false);
  session_case_run(&reference);
  ck_assert_uint_eq(cleave_session_note_count(c->session), 0);
  for (int run = 0; run < 3; run++) { /* the later ones are graphs */
    session_case_run(c);
    for (uint32_t output = 0; output < 2; output++) {
      cleave_tensor_view_t view = session_case_view(&reference, output);
      for (int64_t k = 0; k < cleave_view_element_count(&view); k++) {
        ck_assert_float_eq_tol(session_case_value(c, output, k), session_case_value(&reference, output, k),
                               1e-4f);
      }
    }
  }
  session_case_deinit(&reference);
}

static void expect_gradients(const char *fail) {
  gpu_case_stand_ins(fail);
  session_case_t c = gradients(true);
  expect_equal(&c);
  session_case_deinit(&c);
}

UNIT_TEST(both_gradients_are_those_of_cpu) {
  expect_gradients(NULL);
}

UNIT_TEST(kernels_take_over_from_missing_algorithms) {
  expect_gradients("cudnnGetConvolutionBackwardDataAlgorithm_v7=9");
}

UNIT_TEST(kernels_take_over_from_missing_algorithms_for_weights) {
  expect_gradients("cudnnGetConvolutionBackwardFilterAlgorithm_v7=9");
}

UNIT_TEST(kernels_take_over_from_a_missing_library) {
  gpu_case_stand_ins(NULL);
  setenv("CLEAVE_CUDA_PATH", CLEAVE_BINARY_DIR "/tests/cuda/alone", 1);
  session_case_t c = gradients(true);
  expect_equal(&c);
  session_case_deinit(&c);
}

static void expect_failure(const char *fail) {
  gpu_case_stand_ins(NULL);
  session_case_t c = gradients(true);
  gpu_case_fail(fail);
  cleave_error_t error = gpu_case_failed_run(&c);
  ck_assert_msg(strstr(error.message, "cuDNN cannot compute") != NULL, "%s", error.message);
  session_case_deinit(&c);
}

UNIT_TEST(cudnn_computes_the_gradient_of_data) {
  expect_failure("cudnnConvolutionBackwardData=1");
}

UNIT_TEST(cudnn_computes_the_gradient_of_weights) {
  expect_failure("cudnnConvolutionBackwardFilter=1");
}

UNIT_SUITE("gradients on a GPU")

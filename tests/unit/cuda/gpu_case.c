// SPDX-License-Identifier: Apache-2.0
#include "gpu_case.h"

#include <math.h>

#include "backend/registry/registry.h"

enum { ROWS = 8, COLUMNS = 16 };
static float data[ROWS * COLUMNS];
static float weights[COLUMNS * COLUMNS];
static float bias[COLUMNS];

void gpu_case_fail(const char *fail) {
  ck_assert_int_eq(setenv("CLEAVE_CUDA_FAIL", fail == NULL ? "" : fail, 1), 0);
}

void gpu_case_stand_ins(const char *fail) {
  ck_assert_int_eq(setenv("CLEAVE_CUDA_PATH", CLEAVE_BINARY_DIR "/tests/cuda", 1), 0);
  ck_assert_int_eq(setenv("CLEAVE_CUDA_CACHE", CLEAVE_BINARY_DIR "/tests/cuda/cache", 1), 0);
  gpu_case_fail(fail);
}

cleave_error_t gpu_case_refusal(void) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  const cleave_backend_handle_t *handle = NULL;
  ck_assert_int_ne(cleave_registry_find(NULL, "cuda", &handle, &error), CLEAVE_OK);
  return error;
}

const char *gpu_case_ask(const char *key) {
  const cleave_backend_handle_t *handle = NULL;
  const cleave_key_value_t *answers = NULL;
  uint32_t count = 0;
  const cleave_key_value_t question = {.key = key, .value = NULL};
  cleave_message_t message = {.text = ""};
  unit_ok(cleave_registry_find(NULL, "cuda", &handle, e));
  ck_assert_msg(
      handle->backend->configure(handle->state, &question, 1, &answers, &count, &message) == CLEAVE_OK, "%s",
      message.text);
  ck_assert_uint_eq(count, 1);
  return answers[0].value;
}

session_case_t gpu_case_graph(void) {
  static const int64_t x_dims[2] = {ROWS, COLUMNS};
  static const int64_t w_dims[2] = {COLUMNS, COLUMNS};
  static const int64_t b_dims[1] = {COLUMNS};
  session_case_t c = session_case_create();
  for (int k = 0; k < COLUMNS * COLUMNS; k++) {
    weights[k] = (float)(k * 7 % 11 - 5) / 16.0f;
    bias[k % COLUMNS] = (float)(k % COLUMNS - 8) / 4.0f;
  }
  for (int k = 0; k < ROWS * COLUMNS; k++) {
    data[k] = (float)(k * 5 % 13 - 6) / 8.0f;
  }
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, x_dims);
  cleave_value_t w = session_case_floats(&c, "w", 2, w_dims, weights);
  cleave_value_t b = session_case_floats(&c, "b", 1, b_dims, bias);
  cleave_value_t product = session_case_node(&c, "MatMul", "product", x, w, CLEAVE_VALUE_NONE);
  cleave_value_t biased = session_case_node(&c, "Add", "biased", product, b, CLEAVE_VALUE_NONE);
  cleave_value_t relu = session_case_node(&c, "Relu", "relu", biased, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE);
  cleave_value_t sum = session_case_node(&c, "Add", "sum", relu, x, CLEAVE_VALUE_NONE);
  session_case_output(&c, session_case_node(&c, "Tanh", "tanh", sum, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE));
  session_case_infer(&c);
  session_case_partition(&c, "MatMul,Add,Relu,Tanh", "cuda");
  session_case_feed(&c, 2, x_dims, data);
  return c;
}

cleave_status_t gpu_case_compile_with(session_case_t *c, bool fallback, const cleave_backend_option_t *option,
                                      cleave_error_t *error) {
  const cleave_session_options_t options = {.size = sizeof options,
                                            .threads = 1,
                                            .fallback = fallback,
                                            .backend_options = option,
                                            .backend_option_count = option == NULL ? 0 : 1};
  c->pointers[0] = &c->views[0];
  cleave_status_t status =
      cleave_session_create_planned(c->graph, c->plan, c->pointers, 1, &options, &c->session, error);
  if (status == CLEAVE_OK) {
    unit_ok(cleave_session_set_input(c->session, 0, &c->views[0], e));
  }
  return status;
}

cleave_status_t gpu_case_compile(session_case_t *c, bool fallback, const char *device,
                                 cleave_error_t *error) {
  const cleave_backend_option_t option = {.backend = "cuda", .key = "device", .value = device};
  return gpu_case_compile_with(c, fallback, device == NULL ? NULL : &option, error);
}

static float expected(int row, int column) {
  float sum = bias[column];
  for (int k = 0; k < COLUMNS; k++) {
    sum += data[row * COLUMNS + k] * weights[k * COLUMNS + column];
  }
  return tanhf((sum < 0 ? 0 : sum) + data[row * COLUMNS + column]);
}

void gpu_case_expect(session_case_t *c) {
  session_case_run(c);
  for (int r = 0; r < ROWS; r++) {
    for (int k = 0; k < COLUMNS; k++) {
      ck_assert_float_eq_tol(session_case_value(c, 0, r * COLUMNS + k), expected(r, k), 1e-5f);
    }
  }
}

cleave_error_t gpu_case_failed_run(session_case_t *c) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  ck_assert_int_ne(cleave_session_run(c->session, &error), CLEAVE_OK);
  return error;
}

// SPDX-License-Identifier: Apache-2.0
// What ONNX files say about their inputs and outputs: declared shapes, defaults of inputs, operator sets.
#include "cleave/cleave.h"
#include "onnx_builder.h"
#include "runtime/model/model.h"
#include "runtime/session/session.h"
#include "unit.h"

static cleave_status_t open_with(onnx_builder_t *b, cleave_model_load_options_t options,
                                 cleave_model_t **out_model, cleave_error_t *error) {
  cleave_text_t bytes = onnx_finish(b);
  options.size = sizeof options;
  options.data = bytes.data;
  options.data_size = bytes.length;
  cleave_status_t status = cleave_model_load(NULL, "m", &options, out_model, error);
  cleave_text_deinit(&bytes);
  return status;
}

static void refused(onnx_builder_t *b, cleave_status_t status, const char *message) {
  cleave_model_t *model = NULL;
  unit_fails(open_with(b, (cleave_model_load_options_t){0}, &model, e), status, message);
}

static cleave_model_t *opened(onnx_builder_t *b, cleave_model_load_options_t options) {
  cleave_model_t *model = NULL;
  unit_ok(open_with(b, options, &model, e));
  return model;
}

/* The shape of input or output 0: "2 3", -1 for what is open. */
static void expect_dims(const cleave_port_t *port, int32_t rank, const int64_t *dims) {
  ck_assert_int_eq(port->tensor.rank, rank);
  for (int32_t d = 0; d < rank; d++) {
    ck_assert_int_eq(dims[d] < 0 ? -1 : dims[d], port->tensor.dims[d] < 0 ? -1 : port->tensor.dims[d]);
  }
}

static void expect_output(const cleave_model_t *model, int32_t rank, const int64_t *dims) {
  cleave_port_t port = {.size = sizeof port};
  unit_ok(cleave_model_output(model, 0, &port, e));
  expect_dims(&port, rank, dims);
}

/* ---- declared shapes ---- */

static onnx_builder_t relu(const char *input, const char *declared) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, input);
  onnx_simple(&b, "Relu", "x", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, declared);
  return b;
}

UNIT_TEST(a_wrong_declared_shape_is_an_error) {
  onnx_builder_t b = relu("2 3", "2 4");
  refused(
      &b, CLEAVE_ERROR_SHAPE,
      "m: output 'y' is declared as [2, 4], inference finds [2, 3] (--lenient passes over declared shapes)");
  b = relu("2 3", "6");
  refused(&b, CLEAVE_ERROR_SHAPE,
          "m: output 'y' is declared as [6], inference finds [2, 3] (--lenient passes over declared shapes)");
}

UNIT_TEST(a_wrong_declared_shape_is_passed_over_leniently) {
  onnx_builder_t b = relu("2 3", "2 4");
  cleave_model_t *model = opened(&b, (cleave_model_load_options_t){.lenient = true});
  expect_output(model, 2, (int64_t[]){2, 3});
  cleave_model_release(model);
}

/* A size for what the input leaves open is neither right nor wrong: files whose batch size was opened say it.
 */
UNIT_TEST(a_declared_size_does_not_close_an_open_one) {
  onnx_builder_t b = relu("N 3", "1 3");
  cleave_model_t *model = opened(&b, (cleave_model_load_options_t){0});
  expect_output(model, 2, (int64_t[]){-1, 3});
  cleave_model_release(model);
}

/* The only hint at the shapes is at the end: it goes back to the inputs. */
UNIT_TEST(a_declared_shape_is_a_fact_where_nothing_else_is) {
  onnx_builder_t b = relu(NULL, "2 3");
  cleave_port_t port = {.size = sizeof port};
  cleave_model_t *model = opened(&b, (cleave_model_load_options_t){0});
  expect_output(model, 2, (int64_t[]){2, 3});
  unit_ok(cleave_model_input(model, 0, &port, e));
  expect_dims(&port, 2, (int64_t[]){2, 3});
  cleave_model_release(model);
}

UNIT_TEST(declared_sizes_fill_the_dimensions_that_are_unknown) {
  onnx_builder_t b = relu("? 3", "5 ?");
  cleave_model_t *model = opened(&b, (cleave_model_load_options_t){0});
  expect_output(model, 2, (int64_t[]){5, 3});
  cleave_model_release(model);
}

/* ---- operator sets ---- */

static onnx_builder_t of_opset(int64_t version) {
  onnx_builder_t b;
  onnx_begin(&b, 10, version);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_simple(&b, "Relu", "x", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2");
  return b;
}

static void keep_line(void *context, cleave_log_level_t level, const char *line) {
  ck_assert_int_eq(level, CLEAVE_LOG_WARNING);
  cleave_text_add(context, line);
}

UNIT_TEST(refuses_operator_sets_newer_than_all_that_is_known) {
  onnx_builder_t b = of_opset(25);
  refused(
      &b, CLEAVE_ERROR_UNSUPPORTED,
      "m: opset 25 of ai.onnx is newer than 24, the newest that is known (--lenient reads it as that one)");
  b = of_opset(24);
  cleave_model_release(opened(&b, (cleave_model_load_options_t){0}));
}

UNIT_TEST(newer_operator_sets_are_read_leniently_with_a_warning) {
  cleave_text_t lines = {0};
  onnx_builder_t b = of_opset(99);
  cleave_context_set_log(NULL, keep_line, &lines);
  cleave_model_release(opened(&b, (cleave_model_load_options_t){.lenient = true}));
  ck_assert_str_eq(cleave_text_get(&lines), "m: opset 99 is read as opset 24");
  cleave_context_set_log(NULL, NULL, NULL);
  cleave_text_deinit(&lines);
}

/* ---- inputs with a default ---- */

/* y = x * (w + w), where w is an input whose initializer is [1, 2]. */
static onnx_builder_t with_default(int64_t ir_version, const char *w_dims) {
  onnx_builder_t b;
  onnx_begin(&b, ir_version, 13);
  onnx_input(&b, "w", CLEAVE_DTYPE_F32, w_dims);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_floats(&b, "w", "2", (float[]){1, 2}, 2);
  onnx_simple(&b, "Add", "w w", "twice");
  onnx_simple(&b, "Mul", "x twice", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, NULL);
  return b;
}

static cleave_tensor_view_t floats(const float *data, const int64_t *dims) {
  return (cleave_tensor_view_t){.size = sizeof(cleave_tensor_view_t),
                                .dtype = CLEAVE_DTYPE_F32,
                                .rank = 1,
                                .dims = dims,
                                .data = (void *)(uintptr_t)data};
}

static void expect_run(cleave_model_t *model, const cleave_tensor_view_t *inputs, uint32_t count, float first,
                       float second, uint32_t steps) {
  cleave_session_t *session = NULL;
  cleave_tensor_view_t output;
  const cleave_tensor_view_t *pointers[2] = {&inputs[0], count > 1 ? &inputs[1] : NULL};
  ck_assert_uint_eq(cleave_model_input_count(model), count);
  unit_ok(cleave_session_create(model, NULL, pointers, count, NULL, &session, e));
  for (uint32_t k = 0; k < count; k++) {
    unit_ok(cleave_session_set_input(session, k, &inputs[k], e));
  }
  unit_ok(cleave_session_run(session, e));
  unit_ok(cleave_session_output(session, 0, &output, e));
  ck_assert_uint_eq(cleave_session_step_count(session), steps);
  ck_assert_float_eq(((const float *)output.data)[0], first);
  ck_assert_float_eq(((const float *)output.data)[1], second);
  cleave_session_destroy(session);
}

UNIT_TEST(an_input_with_an_initializer_is_a_constant_and_folds) {
  static const int64_t versions[] = {3, 8};
  for (size_t k = 0; k < 2; k++) {
    onnx_builder_t b = with_default(versions[k], "2");
    cleave_model_t *model = opened(&b, (cleave_model_load_options_t){0});
    cleave_tensor_view_t x = floats((float[]){3, 5}, (int64_t[]){2});
    expect_run(model, &x, 1, 6, 20, 1); /* w + w is no step */
    cleave_model_release(model);
  }
}

UNIT_TEST(an_input_with_an_initializer_can_be_opened) {
  onnx_builder_t b = with_default(8, "2");
  const char *names[] = {"w"};
  cleave_model_t *model =
      opened(&b, (cleave_model_load_options_t){.open_inputs = names, .open_input_count = 1});
  cleave_tensor_view_t inputs[2] = {
      floats((float[]){10, 20}, (int64_t[]){2}), /* as in the file: w is first */
      floats((float[]){3, 5}, (int64_t[]){2})};
  expect_run(model, inputs, 2, 60, 200, 2);
  inputs[0] = floats((float[]){-1, 1}, (int64_t[]){2});
  expect_run(model, inputs, 2, -6, 10, 2);
  cleave_model_release(model);
}

/* The declared shape of an input may take more than its default has. */
UNIT_TEST(an_opened_input_has_the_shape_that_it_is_declared_with) {
  onnx_builder_t b = with_default(8, "M");
  const char *names[] = {"w"};
  cleave_port_t port = {.size = sizeof port};
  cleave_model_t *model =
      opened(&b, (cleave_model_load_options_t){.open_inputs = names, .open_input_count = 1});
  cleave_tensor_view_t inputs[2] = {floats((float[]){7}, (int64_t[]){1}),
                                    floats((float[]){3, 5}, (int64_t[]){2})};
  unit_ok(cleave_model_input(model, 0, &port, e));
  ck_assert_str_eq(port.name, "w");
  expect_dims(&port, 1, (int64_t[]){-1});
  expect_run(model, inputs, 2, 42, 70, 2);
  cleave_model_release(model);
}

UNIT_TEST(only_inputs_of_the_file_can_be_opened) {
  onnx_builder_t b = with_default(8, "2");
  const char *names[] = {"twice"};
  cleave_model_t *model = NULL;
  unit_fails(
      open_with(&b, (cleave_model_load_options_t){.open_inputs = names, .open_input_count = 1}, &model, e),
      CLEAVE_ERROR_INVALID_ARGUMENT, "m: the file has no input 'twice'");
}

/* The value takes the place of the default; a weight that is no input of the file cannot be fixed. */
UNIT_TEST(an_input_with_an_initializer_can_be_fixed) {
  const cleave_fixed_input_t fixed = {.name = "w", .value = "5"};
  onnx_builder_t b;
  cleave_model_t *model = NULL;
  for (int is_input = 0; is_input < 2; is_input++) {
    onnx_begin(&b, 8, 17);
    onnx_floats(&b, "w", "1", (float[]){1}, 1);
    if (is_input == 1) {
      onnx_input(&b, "w", CLEAVE_DTYPE_F32, "1");
    }
    onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
    onnx_simple(&b, "Mul", "x w", "y");
    onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2");
    cleave_model_load_options_t options = {.fixed_inputs = &fixed, .fixed_input_count = 1};
    if (is_input == 0) {
      unit_fails(open_with(&b, options, &model, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                 "m: expected an input to fix, found 'w' (did you mean 'x'?); the model's inputs are: x");
    } else {
      model = opened(&b, options);
    }
  }
  cleave_tensor_view_t x = floats((float[]){3, 4}, (int64_t[]){2});
  expect_run(model, &x, 1, 15, 20, 1);
  cleave_model_release(model);
}

/* ---- dead nodes ---- */

UNIT_TEST(nodes_that_no_output_needs_go_unless_they_are_kept) {
  for (int keep = 0; keep < 2; keep++) {
    onnx_builder_t b = relu("2 3", "2 3");
    onnx_simple(&b, "Exp", "y", "half");
    onnx_simple(&b, "Tanh", "half", "dead");
    cleave_model_t *model = opened(&b, (cleave_model_load_options_t){.keep_dead = keep == 1});
    ck_assert_uint_eq(cleave_model_graph(model)->live_node_count, keep == 1 ? 3 : 1);
    ck_assert_uint_eq(cleave_model_dead_count(model), keep == 1 ? 0 : 2);
    cleave_model_t *bound = NULL;
    unit_ok(cleave_model_bind(model, NULL, 0, &bound, e));
    ck_assert_uint_eq(cleave_model_dead_count(bound), keep == 1 ? 0 : 2);
    cleave_session_t *session = NULL;
    unit_ok(cleave_session_create(bound, NULL, NULL, 0, NULL, &session, e));
    cleave_session_destroy(session);
    cleave_model_release(bound);
    cleave_model_release(model);
  }
}

UNIT_SUITE("declared")

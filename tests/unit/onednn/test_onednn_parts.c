// SPDX-License-Identifier: Apache-2.0
// Batches in parts: which regions are cut, that the results are those of the reference backend, row by row,
// also with special values in one part, and what a program says of it. The attribute `rows` asks for two of
// six rows at a time, which nothing here would be worth by the estimate.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "onednn_case.h"

enum { ROWS = 6, AT_A_TIME = 2 };

typedef struct asked {
  cleave_region_view_t view;
  cleave_attribute_view_t rows;
} asked_t;

/* The view of a region whose attribute says how many rows at a time. */
static const cleave_region_view_t *ask(asked_t *asked, fusion_region_t *region, int64_t rows) {
  asked->rows = (cleave_attribute_view_t){
      .size = sizeof asked->rows, .name = "rows", .kind = CLEAVE_ATTRIBUTE_INT, .i = rows};
  asked->view = *fusion_region_view(region);
  asked->view.size = sizeof asked->view;
  asked->view.attribute_count = 1;
  asked->view.attributes = &asked->rows;
  return &asked->view;
}

static void give_inputs(const fusion_region_t *region, const cleave_region_view_t *view,
                        view_program_t *program) {
  for (uint32_t k = 0; k < view->input_count; k++) {
    const cleave_tensor_view_t *tensor = &view->values[view->inputs[k]].tensor;
    view_program_input(program, k, tensor->rank, tensor->dims, fusion_region_input(region, k));
  }
}

static bool is_cut(const view_program_t *program) {
  const char *note = program->backend->info(program->program)->note;
  return note != NULL && strstr(note, "6 rows are computed 2 at a time") == note;
}

static bool is_near(float found, float expected) {
  return isnan(expected) ? isnan(found)
                         : found == expected || fabsf(found - expected) <= 1e-5F * (fabsf(expected) + 1);
}

static void compare(const view_program_t *found, const view_program_t *expected, const char *text) {
  for (uint32_t o = 0; o < expected->output_count; o++) {
    const float *f = found->outputs[o].data;
    const float *e = expected->outputs[o].data;
    for (int64_t k = 0; k < cleave_view_element_count(&expected->outputs[o]); k++) {
      if (!is_near(f[k], e[k])) {
        ck_abort_msg("output %u[%lld]: expected %.7g, found %.7g in\n%s", (unsigned)o, (long long)k,
                     (double)e[k], (double)f[k], text);
      }
    }
  }
}

/* Is the region of this text cut? Its results are checked in any case; `bad` is written into row 3 of the
 * first input unless it is 0. */
static bool check_text(const char *text, int32_t threads, float bad) {
  op_backend_t cpu = op_backend_cpu();
  op_backend_t onednn = onednn_create();
  fusion_region_t *plain = fusion_region_create(text, false);
  fusion_region_t *region = fusion_region_create(text, true);
  asked_t asked;
  view_program_t expected;
  view_program_t found;
  const cleave_region_view_t *view = ask(&asked, region, AT_A_TIME);
  const cleave_tensor_view_t *first = &view->values[view->inputs[0]].tensor;
  int64_t place = cleave_view_element_count(first) / ROWS * 3;
  if (bad != 0.0F) {
    /* Both have the same seed; the test owns the data of both. */
    ((float *)(uintptr_t)fusion_region_input(plain, 0))[place] = bad;
    ((float *)(uintptr_t)fusion_region_input(region, 0))[place] = bad;
  }
  fusion_region_compile(plain, &cpu, 1, &expected);
  ck_assert_int_eq(view_program_run(&expected), CLEAVE_OK);
  cleave_status_t status = view_program_create(&found, onednn.backend, onednn.state, view, threads);
  ck_assert_msg(status == CLEAVE_OK, "%s in\n%s", found.message.text, text);
  give_inputs(region, view, &found);
  for (int k = 0; k < 2; k++) {
    ck_assert_msg(view_program_run(&found) == CLEAVE_OK, "%s in\n%s", found.message.text, text);
    compare(&found, &expected, text);
  }
  bool cut = is_cut(&found);
  view_program_destroy(&found);
  view_program_destroy(&expected);
  fusion_region_destroy(region);
  fusion_region_destroy(plain);
  op_backend_destroy(&onednn);
  op_backend_destroy(&cpu);
  return cut;
}

#define IMAGES "x [6,16,8,8] = input\n"
#define MATRIX "x [6,20] = input\n"

static const char *const apart[] = {
    IMAGES
    "w [8,16,3,3] = random\nb [8] = random\n{\nc [6,8,6,6] = Conv(x, w, b)\nr [6,8,6,6] = Relu(c)\n}\n"
    "p [6,8,3,3] = MaxPool(r) kernel_shape=[2,2] strides=[2,2]\ng [6,8,1,1] = GlobalAveragePool(p)\n"
    "f [6,8] = Flatten(g)\n",
    IMAGES "w [16,4,2,2] = random\nc [6,4,9,9] = ConvTranspose(x, w)\n",
    IMAGES
    "s [16] = positive\nt [16] = random\nm [16] = random\nv [16] = positive\n"
    "n [6,16,8,8] = BatchNormalization(x, s, t, m, v)\na [6,16,4,4] = AveragePool(n) kernel_shape=[2,2] "
    "strides=[2,2]\n",
    IMAGES "s [16,1,1] = random\np [6,16,8,8] = PRelu(x, s)\nl [6,16,8,8] = LRN(p) size=3\n",
    IMAGES
    "y [6,16,8,8] = input\nc [6,32,8,8] = Concat(x, y) axis=1\nn i64[2] = 10 22\n"
    "a [6,10,8,8] & b [6,22,8,8] = Split(c, n) axis=1\noutput a\noutput b\n",
    IMAGES
    "t [6,8,8,16] = Transpose(x) perm=[0,2,3,1]\na i64[1] = -1\nm [6,8,8,1] = ReduceMean(t, a)\n"
    "d [6,8,8,16] = Sub(t, m)\n",
    IMAGES
    "b i64[1] = 2\ne i64[1] = 7\na i64[1] = 2\ns [6,16,5,8] = Slice(x, b, e, a)\nh i64[2] = 6 640\n"
    "r [6,640] = Reshape(s, h)\n",
    IMAGES
    "s [4] = 1 1 2 2\nr [6,16,16,16] = Resize(x, -, s) mode='nearest' "
    "coordinate_transformation_mode='asymmetric' nearest_mode='floor'\n",
    MATRIX "w [20,12] = random\nb [12] = random\ng [6,12] = Gemm(x, w, b)\ns [6,12] = Softmax(g)\n",
    MATRIX
    "y [6,20] = input\nw [20,20] = random\nm [6,20] = MatMul(x, w)\ns [6,20] = Add(m, y)\n"
    "g [20] = random\nb [20] = random\nl [6,20] = LayerNormalization(s, g, b)\n",
    "x [6,4,5] = input\ny [6,5,7] = input\nm [6,4,7] = MatMul(x, y)\nt [6,7,4] = Transpose(m) perm=[0,2,1]\n",
    /* A constant that a node makes, and one with a row for all. */
    MATRIX "c [1,20] = random\ns [1,20] = Sigmoid(c)\ny [6,20] = Mul(x, s)\n",
};

UNIT_TEST(computes_rows_in_parts) {
  for (size_t k = 0; k < sizeof apart / sizeof *apart; k++) {
    for (int32_t threads = 1; threads <= 2; threads++) {
      ck_assert_msg(check_text(apart[k], threads, 0.0F), "not cut:\n%s", apart[k]);
    }
  }
}

UNIT_TEST(computes_rows_together_that_depend_on_each_other) {
  static const char *const together[] = {
      MATRIX "s [6,20] = Softmax(x) axis=0\n",
      MATRIX "a i64[1] = 0\nm [1,20] = ReduceMean(x, a)\n",
      MATRIX "a i64[1] = 0\nm [1,20] = ReduceMean(x, a)\nd [6,20] = Sub(x, m)\n",
      MATRIX "t [20,6] = Transpose(x) perm=[1,0]\n",
      "x [6,6] = input\nt [6,6] = Transpose(x) perm=[1,0]\n",
      "x [6,6] = input\ny [6,6] = input\nm [6,6] = MatMul(x, y)\n",
      "x [6,6] = input\nb [6] = input\ny [6,6] = Add(x, b)\n",
      "x [6,20] = input\nc [6,20] = random\ny [6,20] = Add(x, c)\n",
      "x [6,20] = input\nc [6,1] = random\ny [6,20] = Mul(x, c)\n",
      "x [6,4] = input\nc [6,3] = random\ny [6,7] = Concat(x, c) axis=1\n",
      "x [6,4] = input\ny [6,4] = input\nz [12,4] = Concat(x, y) axis=0\n",
      "x [6,4] = input\nw [4,6] = random\nc [6,6] = random\ny [6,6] = Gemm(x, w, c)\n",
      "x [6,4] = input\nw [6,6] = random\ny [4,6] = Gemm(x, w) transA=1\n",
      "x [6,4,4] = input\nw [6,4,4] = random\ny [6,4,4] = MatMul(x, w)\n",
      MATRIX "r [3,40] = Reshape(x, h)\n",
      MATRIX "b i64[1] = 1\ne i64[1] = 6\na i64[1] = 0\ns [5,20] = Slice(x, b, e, a)\n",
      MATRIX "c [6,20] = random\nr [6,20] = Relu(x)\ns [6,20] = Sigmoid(c)\noutput r\noutput s\n",
  };
  for (size_t k = 0; k < sizeof together / sizeof *together; k++) {
    char text[512];
    bool needs_shape = strstr(together[k], ", h)") != NULL;
    (void)snprintf(text, sizeof text, "%s%s", needs_shape ? "h i64[2] = 3 40\n" : "", together[k]);
    ck_assert_msg(!check_text(text, 1, 0.0F), "cut:\n%s", text);
  }
}

/* Only the part with them is computed again. */
UNIT_TEST(keeps_special_values_where_they_are) {
  ck_assert(check_text(apart[0], 2, NAN));
  ck_assert(check_text(apart[0], 1, INFINITY));
  ck_assert(check_text(apart[8], 1, NAN));
  ck_assert(check_text(apart[9], 2, -INFINITY));
}

/* By the estimate small regions stay whole, a number of rows that does not divide the batch is no part, and
 * -1 refuses. */
UNIT_TEST(cuts_what_is_asked_for) {
  op_backend_t onednn = onednn_create();
  static const int64_t wanted[] = {0, 4, 6, 7, -1};
  for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
    fusion_region_t *region = fusion_region_create(apart[0], true);
    asked_t asked;
    view_program_t program;
    const cleave_region_view_t *view = ask(&asked, region, wanted[k]);
    ck_assert_int_eq(view_program_create(&program, onednn.backend, onednn.state, view, 1), CLEAVE_OK);
    ck_assert_ptr_null(onednn.backend->info(program.program)->note);
    view_program_destroy(&program);
    fusion_region_destroy(region);
  }
  op_backend_destroy(&onednn);
}

/* Images of which all together do not fit into any cache; how much there is to compute decides. */
UNIT_TEST(cuts_large_batches_where_memory_takes_the_time) {
  static const char text[] =
      "x [64,64,64,64] = input\n{\nr [64,64,64,64] = Relu(x)\n}\n{\ns [64,64,64,64] = Sigmoid(r)\n}\n"
      "p [64,64,1,1] = GlobalAveragePool(s)\n";
  op_backend_t onednn = onednn_create();
  fusion_region_t *region = fusion_region_create(text, true);
  for (int heavy = 0; heavy < 2; heavy++) {
    asked_t asked;
    view_program_t program;
    double flops[3] = {heavy != 0 ? 1e14 : 1e8, 1e8, 1e8};
    (void)ask(&asked, region, 0);
    asked.view.flops = flops;
    ck_assert_int_eq(view_program_create(&program, onednn.backend, onednn.state, &asked.view, 1), CLEAVE_OK);
    ck_assert_int_eq(onednn.backend->info(program.program)->note != NULL, heavy == 0);
    view_program_destroy(&program);
  }
  fusion_region_destroy(region);
  op_backend_destroy(&onednn);
}

/* A step's time is that of all its parts: the steps of a whole batch, one after the other. */
UNIT_TEST(adds_up_the_times_of_parts) {
  op_backend_t onednn = onednn_create();
  fusion_region_t *region = fusion_region_create(apart[0], true);
  asked_t asked;
  const cleave_region_view_t *view = ask(&asked, region, AT_A_TIME);
  cleave_compile_options_t options = {.size = sizeof options, .threads = 1, .profile = true};
  cleave_message_t message = {.text = ""};
  view_program_t program;
  const cleave_step_time_t *times = NULL;
  ck_assert_int_eq(view_program_create(&program, onednn.backend, onednn.state, view, 1), CLEAVE_OK);
  onednn.backend->unload(program.program);
  ck_assert_int_eq(onednn.backend->compile(onednn.state, view, &options, &program.program, &message),
                   CLEAVE_OK);
  give_inputs(region, view, &program);
  ck_assert_int_eq(view_program_run(&program), CLEAVE_OK);
  uint32_t count = onednn.backend->profile(program.program, &times);
  ck_assert_uint_ge(count, 3);
  for (uint32_t k = 0; k < count; k++) {
    ck_assert(times[k].end_ns > times[k].start_ns);
    ck_assert(k == 0 || times[k].start_ns == times[k - 1].end_ns);
  }
  view_program_destroy(&program);
  fusion_region_destroy(region);
  op_backend_destroy(&onednn);
}

UNIT_TEST(refuses_another_number_of_rows) {
  static const int64_t dims[2] = {4, 20};
  static const float data[80];
  op_backend_t onednn = onednn_create();
  fusion_region_t *region = fusion_region_create(apart[8], true);
  asked_t asked;
  view_program_t program;
  const cleave_region_view_t *view = ask(&asked, region, AT_A_TIME);
  ck_assert_int_eq(view_program_create(&program, onednn.backend, onednn.state, view, 1), CLEAVE_OK);
  view_program_input(&program, 0, 2, dims, data);
  ck_assert_int_eq(view_program_run(&program), CLEAVE_ERROR_INVALID_ARGUMENT);
  ck_assert_str_eq(program.message.text, "input 0: expected 6 rows, found 4");
  view_program_destroy(&program);
  fusion_region_destroy(region);
  op_backend_destroy(&onednn);
}

UNIT_SUITE("onednn_parts")

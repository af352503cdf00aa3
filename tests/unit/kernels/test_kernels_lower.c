// SPDX-License-Identifier: Apache-2.0
// From nodes to programs: what a program says, what is refused and why.
#include "kernel_case.h"
#include "kernels/lower/lower.h"
#include "system/clock.h"
#include "unit.h"
#include "view_builder.h"

typedef struct nodes_case {
  view_builder_t *builder;
  int64_t dims[2];
} nodes_case_t;

static uint32_t value(nodes_case_t *c) {
  return view_builder_value(c->builder, CLEAVE_DTYPE_F32, 2, c->dims);
}

static uint32_t node1(nodes_case_t *c, const char *op, uint32_t x, uint32_t y) {
  return view_builder_node(c->builder, op, 1, &x, 1, &y);
}

static uint32_t node2(nodes_case_t *c, const char *op, uint32_t a, uint32_t b, uint32_t y) {
  const uint32_t inputs[] = {a, b};
  return view_builder_node(c->builder, op, 2, inputs, 1, &y);
}

static cleave_status_t lower(nodes_case_t *c, kernel_lowered_t *out_lowered, cleave_message_t *message) {
  const cleave_region_view_t *region = view_builder_region(c->builder);
  kernel_arena_t arena = {0};
  kernel_lowerer_t *lowerer = NULL;
  uint32_t nodes[16];
  for (uint32_t k = 0; k < region->node_count; k++) {
    nodes[k] = k;
  }
  ck_assert_int_eq(kernel_lowerer_create(region, &arena, &lowerer, message), CLEAVE_OK);
  cleave_status_t status = kernel_lower(lowerer, region->node_count, nodes, out_lowered, message);
  kernel_arena_free(&arena);
  return status;
}

static void check_lowers(nodes_case_t *c, const char *expected) {
  kernel_lowered_t lowered = {0};
  cleave_message_t message = {.text = ""};
  char text[4096];
  cleave_status_t status = lower(c, &lowered, &message);
  ck_assert_msg(status == CLEAVE_OK, "%s", message.text);
  kernel_program_print(lowered.program, text, sizeof text);
  ck_assert_str_eq(text, expected);
  kernel_program_destroy(lowered.program);
  view_builder_destroy(c->builder);
}

static void check_refused(nodes_case_t *c, const char *expected) {
  kernel_lowered_t lowered = {0};
  cleave_message_t message = {.text = ""};
  ck_assert_int_eq(lower(c, &lowered, &message), CLEAVE_ERROR_UNSUPPORTED);
  ck_assert_str_eq(message.text, expected);
  ck_assert_ptr_null(lowered.program);
  view_builder_destroy(c->builder);
}

UNIT_TEST(operands_broadcast_and_numbers_become_constants) {
  nodes_case_t c = {.builder = view_builder_create(), .dims = {4, 6}};
  static const float half = 0.5f;
  uint32_t x = value(&c);
  uint32_t bias = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 1, &c.dims[1]);
  uint32_t number = view_builder_constant(c.builder, CLEAVE_DTYPE_F32, 0, NULL, &half);
  uint32_t sum = value(&c);
  uint32_t scaled = value(&c);
  uint32_t leaky = value(&c);
  node2(&c, "Add", x, bias, sum);
  node2(&c, "Mul", sum, number, scaled);
  uint32_t node = node1(&c, "LeakyRelu", scaled, leaky);
  view_builder_float(c.builder, node, "alpha", 0.25);
  view_builder_output(c.builder, sum);
  view_builder_output(c.builder, leaky);
  check_lowers(
      &c,
      "kernel rank 2 reduced 0\nin0 f32 [0 1]\nin1 f32 [. 0]\n%0 = load in0\n%1 = load in1\n%2 = Add %0 %1\n"
      "%3 = constant f32 0.5\n%4 = Mul %2 %3\n%5 = LeakyRelu %4 0.25\nout0 f32 = %2\nout1 f32 = %5\n");
}

UNIT_TEST(a_softmax_is_two_reductions) {
  nodes_case_t c = {.builder = view_builder_create(), .dims = {4, 6}};
  uint32_t x = value(&c);
  uint32_t y = value(&c);
  uint32_t node = node1(&c, "Softmax", x, y);
  view_builder_int(c.builder, node, "axis", -1);
  view_builder_output(c.builder, y);
  check_lowers(&c,
               "kernel rank 2 reduced 1\nin0 f32 [0 1]\n%0 = load in0\n%1 = ReduceMax %0\n%2 = Sub %0 %1\n%3 "
               "= Exp %2\n"
               "%4 = ReduceSum %3\n%5 = Reciprocal %4\n%6 = Mul %3 %5\nout0 f32 = %6\n");
}

UNIT_TEST(bounds_are_operators_of_their_own) {
  nodes_case_t c = {.builder = view_builder_create(), .dims = {4, 6}};
  static const float half = 0.5f;
  uint32_t x = value(&c);
  uint32_t number = view_builder_constant(c.builder, CLEAVE_DTYPE_F32, 0, NULL, &half);
  uint32_t high = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 0, NULL);
  uint32_t y = value(&c);
  const uint32_t inputs[] = {x, number, high};
  view_builder_node(c.builder, "Clip", 3, inputs, 1, &y);
  view_builder_output(c.builder, y);
  check_lowers(&c,
               "kernel rank 2 reduced 0\nin0 f32 [0 1]\nin1 f32 [. .]\n%0 = load in0\n%1 = constant f32 0.5\n"
               "%2 = AtLeast %0 %1\n%3 = load in1\n%4 = AtMost %2 %3\nout0 f32 = %4\n");
}

UNIT_TEST(scales_of_an_instance_normalization_lie_along_channels) {
  nodes_case_t c = {.builder = view_builder_create()};
  static const int64_t image[] = {2, 3, 5, 7};
  uint32_t inputs[3] = {view_builder_value(c.builder, CLEAVE_DTYPE_F32, 4, image),
                        view_builder_value(c.builder, CLEAVE_DTYPE_F32, 1, &image[1]),
                        view_builder_value(c.builder, CLEAVE_DTYPE_F32, 1, &image[1])};
  uint32_t y = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 4, image);
  uint32_t node = view_builder_node(c.builder, "InstanceNormalization", 3, inputs, 1, &y);
  view_builder_float(c.builder, node, "epsilon", 0.0078125);
  view_builder_output(c.builder, y);
  check_lowers(
      &c,
      "kernel rank 4 reduced 2\nin0 f32 [0 1 2 3]\nin1 f32 [. 0 . .]\nin2 f32 [. 0 . .]\n%0 = load in0\n"
      "%1 = ReduceMean %0\n%2 = Sub %0 %1\n%3 = MeanSquare %2\n%4 = constant f32 0.0078125\n%5 = Add %3 %4\n"
      "%6 = Sqrt %5\n%7 = Reciprocal %6\n%8 = Mul %2 %7\n%9 = load in1\n%10 = Mul %8 %9\n"
      "%11 = load in2\n%12 = Add %10 %11\nout0 f32 = %12\n");
}

UNIT_TEST(groups_of_channels_are_an_axis_of_their_own) {
  nodes_case_t c = {.builder = view_builder_create()};
  static const int64_t image[] = {2, 6, 5, 7};
  uint32_t inputs[3] = {view_builder_value(c.builder, CLEAVE_DTYPE_F32, 4, image),
                        view_builder_value(c.builder, CLEAVE_DTYPE_F32, 1, &image[1]),
                        view_builder_value(c.builder, CLEAVE_DTYPE_F32, 1, &image[1])};
  uint32_t y = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 4, image);
  uint32_t node = view_builder_node(c.builder, "GroupNormalization", 3, inputs, 1, &y);
  view_builder_float(c.builder, node, "epsilon", 0.0078125);
  view_builder_int(c.builder, node, "num_groups", 3);
  view_builder_output(c.builder, y);
  check_lowers(
      &c,
      "kernel rank 5 reduced 3\nin0 f32 [0 1 2 3 4]\nin1 f32 [. 0 1 . .]\nin2 f32 [. 0 1 . .]\n%0 = load "
      "in0\n"
      "%1 = ReduceMean %0\n%2 = Sub %0 %1\n%3 = MeanSquare %2\n%4 = constant f32 0.0078125\n%5 = Add %3 %4\n"
      "%6 = Sqrt %5\n%7 = Reciprocal %6\n%8 = Mul %2 %7\n%9 = load in1\n%10 = Mul %8 %9\n"
      "%11 = load in2\n%12 = Add %10 %11\nout0 f32 = %12\n");
}

static void check_view(const kernel_view_t *view, int64_t offset, int32_t rank, const int64_t *dims,
                       const int64_t *strides) {
  ck_assert(view->is_part);
  ck_assert_int_eq(view->offset, offset);
  ck_assert_int_eq(view->rank, rank);
  for (int32_t d = 0; d < rank; d++) {
    ck_assert_int_eq(view->dims[d], dims[d]);
    ck_assert_int_eq(view->strides[d], strides[d]);
  }
}

/* Rows 1 and 3 of x, backwards, times y turned. */
UNIT_TEST(views_are_read_by_strides) {
  nodes_case_t c = {.builder = view_builder_create(), .dims = {2, 6}};
  static const int64_t tall[] = {5, 6};
  static const int64_t turned[] = {6, 2};
  static const int64_t one = 1;
  static const int64_t numbers[] = {3, -6, 0, -2};
  uint32_t x = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 2, tall);
  uint32_t y = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 2, turned);
  uint32_t inputs[5] = {x};
  for (int k = 0; k < 4; k++) {
    inputs[k + 1] = view_builder_constant(c.builder, CLEAVE_DTYPE_I64, 1, &one, &numbers[k]);
  }
  uint32_t rows = value(&c);
  uint32_t columns = value(&c);
  uint32_t z = value(&c);
  view_builder_node(c.builder, "Slice", 5, inputs, 1, &rows);
  node1(&c, "Transpose", y, columns);
  node2(&c, "Mul", rows, columns, z);
  view_builder_output(c.builder, z);
  kernel_lowered_t lowered = {0};
  cleave_message_t message = {.text = ""};
  cleave_status_t status = lower(&c, &lowered, &message);
  ck_assert_msg(status == CLEAVE_OK, "%s", message.text);
  check_view(&lowered.views[0], 18, 2, c.dims, (const int64_t[]){-12, 1});
  check_view(&lowered.views[1], 0, 2, c.dims, (const int64_t[]){1, 2});
  kernel_program_destroy(lowered.program);
  view_builder_destroy(c.builder);
}

UNIT_TEST(views_of_what_is_computed_inside_are_refused) {
  nodes_case_t c = {.builder = view_builder_create(), .dims = {6, 6}};
  uint32_t x = value(&c);
  uint32_t exp = value(&c);
  uint32_t turned = value(&c);
  uint32_t y = value(&c);
  node1(&c, "Exp", x, exp);
  node1(&c, "Transpose", exp, turned);
  node2(&c, "Add", exp, turned, y);
  view_builder_output(c.builder, y);
  check_refused(&c, "Transpose 'node': its operand is computed inside");
}

/* Rows 1 and 2 of x behind those of y, twice, and what they are joined with. */
UNIT_TEST(a_concat_is_one_load_of_its_parts) {
  nodes_case_t c = {.builder = view_builder_create(), .dims = {7, 6}};
  static const int64_t three[] = {3, 6};
  static const int64_t two[] = {2, 6};
  static const int64_t one = 1;
  static const int64_t numbers[] = {1, 3, 0};
  uint32_t x = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 2, three);
  uint32_t y = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 2, three);
  uint32_t inputs[4] = {x};
  for (int k = 0; k < 3; k++) {
    inputs[k + 1] = view_builder_constant(c.builder, CLEAVE_DTYPE_I64, 1, &one, &numbers[k]);
  }
  uint32_t rows = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 2, two);
  uint32_t joined = value(&c);
  uint32_t other = value(&c);
  uint32_t z = value(&c);
  view_builder_node(c.builder, "Slice", 4, inputs, 1, &rows);
  const uint32_t parts[] = {rows, y, rows};
  uint32_t node = view_builder_node(c.builder, "Concat", 3, parts, 1, &joined);
  view_builder_int(c.builder, node, "axis", -2);
  node2(&c, "Mul", joined, other, z);
  view_builder_output(c.builder, z);
  kernel_lowered_t lowered = {0};
  cleave_message_t message = {.text = ""};
  char text[1024];
  cleave_status_t status = lower(&c, &lowered, &message);
  ck_assert_msg(status == CLEAVE_OK, "%s", message.text);
  kernel_program_print(lowered.program, text, sizeof text);
  ck_assert_str_eq(text,
                   "kernel rank 2 reduced 0\nin0 f32 [0 1]\nin1 f32 [0 1]\nin2 f32 [0 1]\nin3 f32 [0 1]\n"
                   "%0 = load in0 in1 in2 along 0\n%1 = load in3\n%2 = Mul %0 %1\nout0 f32 = %2\n");
  check_view(&lowered.views[0], 6, 2, two, (const int64_t[]){6, 1});
  check_view(&lowered.views[2], 6, 2, two, (const int64_t[]){6, 1});
  ck_assert_uint_eq(lowered.inputs[0], x);
  ck_assert_uint_eq(lowered.inputs[1], y);
  kernel_program_destroy(lowered.program);
  view_builder_destroy(c.builder);
}

/* A Concat of x with itself along axis 1, and what reads it. */
static nodes_case_t join_case(uint32_t *out_joined) {
  nodes_case_t c = {.builder = view_builder_create(), .dims = {4, 6}};
  static const int64_t half[] = {4, 3};
  uint32_t x = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 2, half);
  *out_joined = value(&c);
  uint32_t node = node2(&c, "Concat", x, x, *out_joined);
  view_builder_int(c.builder, node, "axis", 1);
  return c;
}

UNIT_TEST(a_concat_that_is_no_load_is_refused) {
  uint32_t joined = 0;
  nodes_case_t c = join_case(&joined);
  static const int64_t turned[] = {6, 4};
  uint32_t y = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 2, turned);
  uint32_t z = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 2, turned);
  node1(&c, "Transpose", joined, y);
  node1(&c, "Exp", y, z);
  view_builder_output(c.builder, z);
  check_refused(&c, "Concat 'node': a view of it is no load");

  c = (nodes_case_t){.builder = view_builder_create(), .dims = {4, 6}};
  static const int64_t empty[] = {0, 6};
  uint32_t x = value(&c);
  uint32_t inside = value(&c);
  uint32_t nothing = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 2, empty);
  joined = value(&c);
  z = value(&c);
  node1(&c, "Exp", x, inside);
  node2(&c, "Concat", nothing, inside, joined);
  node1(&c, "Neg", joined, z);
  view_builder_output(c.builder, z);
  check_refused(&c, "Concat 'node': its operand is missing, or computed inside");

  c = (nodes_case_t){.builder = view_builder_create(), .dims = {4, 6}};
  static const int64_t column[] = {4, 1};
  static const int64_t none[] = {4, 0};
  x = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 2, column);
  nothing = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 2, none);
  joined = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 2, column);
  y = value(&c);
  z = value(&c);
  uint32_t node = node2(&c, "Concat", x, nothing, joined);
  view_builder_int(c.builder, node, "axis", 1);
  node2(&c, "Add", joined, y, z);
  view_builder_output(c.builder, z);
  check_refused(&c, "Concat 'node': it is repeated along the axis of its parts");
}

UNIT_TEST(groups_are_cut_beside_joined_axes_alone) {
  for (int axis = 1; axis < 3; axis++) {
    nodes_case_t c = {.builder = view_builder_create()};
    static const int64_t image[] = {2, 6, 4, 7};
    int64_t half[] = {2, 6, 4, 7};
    half[axis] /= 2;
    uint32_t x = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 4, half);
    uint32_t inputs[3] = {view_builder_value(c.builder, CLEAVE_DTYPE_F32, 4, image),
                          view_builder_value(c.builder, CLEAVE_DTYPE_F32, 1, &image[1]),
                          view_builder_value(c.builder, CLEAVE_DTYPE_F32, 1, &image[1])};
    uint32_t y = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 4, image);
    uint32_t node = node2(&c, "Concat", x, x, inputs[0]);
    view_builder_int(c.builder, node, "axis", axis);
    node = view_builder_node(c.builder, "GroupNormalization", 3, inputs, 1, &y);
    view_builder_float(c.builder, node, "epsilon", 0.0078125);
    view_builder_int(c.builder, node, "num_groups", 3);
    view_builder_output(c.builder, y);
    if (axis == 1) {
      check_refused(&c, "Concat 'node': it joins the channels that are in groups");
    } else {
      check_lowers(&c,
                   "kernel rank 5 reduced 3\nin0 f32 [0 1 2 3 4]\nin1 f32 [0 1 2 3 4]\nin2 f32 [. 0 1 . .]\n"
                   "in3 f32 [. 0 1 . .]\n%0 = load in0 in1 along 3\n%1 = ReduceMean %0\n%2 = Sub %0 %1\n"
                   "%3 = MeanSquare %2\n%4 = constant f32 0.0078125\n%5 = Add %3 %4\n%6 = Sqrt %5\n"
                   "%7 = Reciprocal %6\n%8 = Mul %2 %7\n%9 = load in2\n%10 = Mul %8 %9\n%11 = load in3\n"
                   "%12 = Add %10 %11\nout0 f32 = %12\n");
    }
  }
}

UNIT_TEST(values_of_other_shapes_are_refused) {
  nodes_case_t c = {.builder = view_builder_create(), .dims = {4, 6}};
  uint32_t x = value(&c);
  uint32_t bias = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 1, &c.dims[1]);
  uint32_t doubled = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 1, &c.dims[1]);
  uint32_t sum = value(&c);
  node2(&c, "Add", bias, bias, doubled);
  node2(&c, "Add", x, doubled, sum);
  view_builder_output(c.builder, sum);
  check_refused(&c, "Add 'node': the result has another shape than the rest");
}

UNIT_TEST(what_is_no_program_is_refused_with_its_reason) {
  const int64_t unknown[] = {-1, 6};
  nodes_case_t c = {.builder = view_builder_create(), .dims = {4, 6}};
  uint32_t x = value(&c);
  uint32_t y = value(&c);
  node1(&c, "Foo", x, y);
  view_builder_output(c.builder, y);
  check_refused(&c, "Foo 'node': the operator is not pointwise");

  c.builder = view_builder_create();
  x = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 2, unknown);
  y = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 2, unknown);
  node1(&c, "Exp", x, y);
  view_builder_output(c.builder, y);
  check_refused(&c, "Exp 'node': a shape is not known");

  c.builder = view_builder_create();
  x = view_builder_value(c.builder, CLEAVE_DTYPE_I32, 2, c.dims);
  y = view_builder_value(c.builder, CLEAVE_DTYPE_I32, 2, c.dims);
  node2(&c, "Div", x, x, y);
  view_builder_output(c.builder, y);
  check_refused(&c, "Div: dtype i32 is not supported");

  c.builder = view_builder_create();
  x = value(&c);
  y = value(&c);
  view_builder_int(c.builder, node1(&c, "Softmax", x, y), "axis", 0);
  view_builder_output(c.builder, y);
  check_refused(&c, "Softmax 'node': it is not over the last axis");
}

UNIT_TEST(a_reduction_that_drops_its_axes_ends_a_kernel) {
  for (int is_read = 0; is_read < 2; is_read++) {
    nodes_case_t c = {.builder = view_builder_create(), .dims = {4, 6}};
    uint32_t x = value(&c);
    uint32_t exp = value(&c);
    uint32_t sum = view_builder_value(c.builder, CLEAVE_DTYPE_F32, 0, NULL);
    node1(&c, "Exp", x, exp);
    view_builder_int(c.builder, node1(&c, "ReduceSum", exp, sum), "keepdims", 0);
    view_builder_output(c.builder, sum);
    if (is_read == 0) {
      check_lowers(&c,
                   "kernel rank 2 reduced 2\nin0 f32 [0 1]\n%0 = load in0\n%1 = Exp %0\n%2 = ReduceSum %1\n"
                   "out0 f32 = %2\n");
      continue;
    }
    uint32_t y = value(&c);
    view_builder_output(c.builder, y);
    node2(&c, "Div", exp, sum, y);
    check_refused(&c, "Div 'node': it reads a reduction that does not keep its axes");
  }
}

/* Exp and Add in turns, each of which reads the one before. Milliseconds for 500 kernels of two nodes. */
static double time_of_kernels(uint32_t kernel_count) {
  enum { LOWERED = 500 };
  static const int64_t dims[] = {4, 6};
  uint32_t node_count = 2 * kernel_count;
  cleave_value_view_t *values = calloc(node_count + 1, sizeof *values);
  cleave_node_view_t *nodes = calloc(node_count, sizeof *nodes);
  uint32_t(*ids)[3] = calloc(node_count, sizeof *ids);
  for (uint32_t k = 0; k <= node_count; k++) {
    values[k] = (cleave_value_view_t){
        .size = sizeof *values,
        .name = "",
        .tensor = {.size = sizeof values->tensor, .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = dims},
        .producer = k == 0 ? CLEAVE_INDEX_NONE : k - 1};
  }
  for (uint32_t n = 0; n < node_count; n++) {
    ids[n][0] = ids[n][1] = n;
    ids[n][2] = n + 1;
    nodes[n] = (cleave_node_view_t){.size = sizeof *nodes,
                                    .op = n % 2 == 0 ? "Exp" : "Add",
                                    .domain = "",
                                    .name = "",
                                    .input_count = 1 + n % 2,
                                    .output_count = 1,
                                    .inputs = ids[n],
                                    .outputs = &ids[n][2],
                                    .fusion = CLEAVE_INDEX_NONE};
  }
  const cleave_region_view_t region = {.size = sizeof region,
                                       .value_count = node_count + 1,
                                       .node_count = node_count,
                                       .values = values,
                                       .nodes = nodes,
                                       .output_count = 1,
                                       .outputs = &ids[node_count - 1][2]};
  kernel_arena_t arena = {0};
  kernel_lowerer_t *lowerer = NULL;
  cleave_message_t message = {.text = ""};
  ck_assert_int_eq(kernel_lowerer_create(&region, &arena, &lowerer, &message), CLEAVE_OK);
  uint64_t start = cleave_clock_now();
  for (uint32_t k = 0; k < LOWERED; k++) {
    const uint32_t pair[] = {2 * k, 2 * k + 1};
    const uint32_t exp_alone[] = {2 * k};
    kernel_lowered_t lowered = {0};
    ck_assert_int_eq(kernel_lower(lowerer, 2, pair, &lowered, &message), CLEAVE_OK);
    ck_assert_uint_eq(lowered.program->output_count, 1);
    ck_assert_uint_eq(lowered.outputs[0], 2 * k + 2);
    kernel_program_destroy(lowered.program);
    /* What the kernel before has left behind would show here. */
    ck_assert_int_eq(kernel_lower(lowerer, 1, exp_alone, &lowered, &message), CLEAVE_OK);
    ck_assert_uint_eq(lowered.outputs[0], 2 * k + 1);
    ck_assert_uint_eq(lowered.inputs[0], 2 * k);
    kernel_program_destroy(lowered.program);
  }
  double milliseconds = cleave_clock_ms(start, cleave_clock_now());
  kernel_arena_free(&arena);
  free(values);
  free(nodes);
  free(ids);
  return milliseconds;
}

UNIT_TEST(a_kernel_costs_its_own_nodes_however_many_the_region_has) {
  double small = time_of_kernels(500);
  double large = time_of_kernels(50000);
  ck_assert_msg(large < 10.0 * small + 20.0, "of 500 kernels: %g ms, of 50000: %g ms", small, large);
}

UNIT_SUITE("kernels_lower")

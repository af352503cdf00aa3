// SPDX-License-Identifier: Apache-2.0
// Every operator with random ports, shapes, constants and attributes, hostile numbers among them: inference
// answers or refuses, and what it answers is consistent. Meant for sanitizer builds.

#include "graph/verify.h"
#include "ops/infer.h"
#include "unit.h"

enum { TRIALS = 150, MAX_ELEMENTS = 12 };

static uint64_t state;

static uint32_t draw(uint32_t bound) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state >> 33) % bound;
}

static int64_t draw_number(void) {
  static const int64_t numbers[] = {0,
                                    1,
                                    1,
                                    1,
                                    2,
                                    2,
                                    3,
                                    4,
                                    5,
                                    8,
                                    -1,
                                    -1,
                                    -2,
                                    -3,
                                    7,
                                    100,
                                    255,
                                    256,
                                    257,
                                    INT32_MAX,
                                    INT32_MIN,
                                    (int64_t)1 << 33,
                                    (int64_t)1 << 62,
                                    INT64_MAX,
                                    INT64_MIN};
  uint32_t tame = draw(4) != 0 ? 11 : sizeof numbers / sizeof *numbers;
  return numbers[draw(tame)];
}

static cleave_dtype_t draw_dtype(void) {
  static const cleave_dtype_t dtypes[] = {CLEAVE_DTYPE_F32,  CLEAVE_DTYPE_F32,    CLEAVE_DTYPE_F32,
                                          CLEAVE_DTYPE_I64,  CLEAVE_DTYPE_I64,    CLEAVE_DTYPE_I32,
                                          CLEAVE_DTYPE_BOOL, CLEAVE_DTYPE_U8,     CLEAVE_DTYPE_F16,
                                          CLEAVE_DTYPE_F64,  CLEAVE_DTYPE_STRING, CLEAVE_DTYPE_UNKNOWN};
  return dtypes[draw(sizeof dtypes / sizeof *dtypes)];
}

static cleave_dim_t draw_dim(cleave_graph_t *graph) {
  int64_t number = draw_number();
  if (draw(6) == 0) {
    return cleave_dims_symbol(graph->dims, draw(2) == 0 ? "N" : "T", 1);
  }
  return number < 0 ? CLEAVE_DIM_UNKNOWN : number;
}

static cleave_value_t draw_constant(cleave_graph_t *graph) {
  static const cleave_dtype_t dtypes[] = {CLEAVE_DTYPE_I64, CLEAVE_DTYPE_I64, CLEAVE_DTYPE_F32,
                                          CLEAVE_DTYPE_BOOL, CLEAVE_DTYPE_I32};
  int64_t dims[2] = {draw(5), draw(3)};
  cleave_tensor_t *tensor = NULL;
  cleave_value_t value = CLEAVE_VALUE_NONE;
  uint32_t form = draw(6);
  unit_ok(cleave_tensor_create(dtypes[draw(5)], form == 0 ? 0 : form == 1 ? 2 : 1, dims, &tensor, e));
  for (int64_t k = 0; k < tensor->count; k++) {
    if (tensor->dtype == CLEAVE_DTYPE_I64) {
      ((int64_t *)tensor->data)[k] = draw_number();
    } else {
      cleave_tensor_set_float(tensor, k, (double)draw_number() * 0.5);
    }
  }
  unit_ok(cleave_graph_add_constant(graph, "", tensor, &value, e));
  cleave_tensor_release(tensor);
  return value;
}

static cleave_value_t draw_value(cleave_graph_t *graph) {
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  cleave_value_t value = CLEAVE_VALUE_NONE;
  if (draw(3) == 0) {
    return draw_constant(graph);
  }
  int32_t rank = (int32_t)draw(draw(8) == 0 ? CLEAVE_MAX_RANK + 1 : 5);
  for (int32_t d = 0; d < rank; d++) {
    dims[d] = draw_dim(graph);
  }
  unit_ok(cleave_graph_add_input(graph, "", draw_dtype(), draw(8) == 0 ? -1 : rank, dims, &value, e));
  return value;
}

static void draw_attribute(cleave_graph_t *graph, cleave_node_t node, const cleave_op_attribute_t *schema) {
  static const char *const texts[] = {
      "NOTSET",    "SAME_UPPER",     "SAME_LOWER", "VALID", "bidirectional",      "none",      "sum",
      "ij,jk->ik", "...i,i...->...", "",           "->",    "tf_crop_and_resize", "not_larger"};
  const char *name = schema->value.name;
  int64_t ints[MAX_ELEMENTS];
  uint32_t count = draw(MAX_ELEMENTS);
  count = draw(2) == 0 ? 2 * draw(3) : count;
  for (uint32_t k = 0; k < count; k++) {
    ints[k] = draw_number();
  }
  switch (schema->value.kind) {
    case CLEAVE_ATTRIBUTE_INT: unit_ok(cleave_graph_set_int(graph, node, name, draw_number(), e)); break;
    case CLEAVE_ATTRIBUTE_FLOAT:
      unit_ok(cleave_graph_set_float(graph, node, name, (double)draw_number(), e));
      break;
    case CLEAVE_ATTRIBUTE_STRING:
      unit_ok(cleave_graph_set_text(graph, node, name, texts[draw(sizeof texts / sizeof *texts)], e));
      break;
    case CLEAVE_ATTRIBUTE_INTS: unit_ok(cleave_graph_set_ints(graph, node, name, ints, count, e)); break;
    default: break;
  }
}

static cleave_node_t draw_node(cleave_graph_t *graph, const cleave_op_t *op) {
  cleave_value_t inputs[12];
  uint32_t count = 0;
  for (uint32_t k = 0; k < op->input_count; k++) {
    uint32_t copies = op->inputs[k].kind == CLEAVE_OP_INPUT_VARIADIC ? 1 + draw(4) : 1;
    for (; copies > 0 && count < 12; copies--) {
      bool left_out = op->inputs[k].kind == CLEAVE_OP_INPUT_OPTIONAL && draw(3) == 0;
      bool repeats = count > 0 && draw(10) == 0;
      inputs[count] = left_out ? CLEAVE_VALUE_NONE : repeats ? inputs[count - 1] : draw_value(graph);
      count++;
    }
  }
  bool is_variadic = op->outputs[op->output_count - 1].kind == CLEAVE_OP_INPUT_VARIADIC;
  cleave_node_t node = CLEAVE_NODE_NONE;
  unit_ok(cleave_graph_add_node(graph, op, "", inputs, count, is_variadic ? 1 + draw(4) : op->output_count,
                                &node, e));
  for (uint32_t k = 0; k < op->attribute_count; k++) {
    if (op->attributes[k].required || draw(3) == 0) {
      draw_attribute(graph, node, &op->attributes[k]);
    }
  }
  for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
    unit_ok(cleave_graph_add_output(graph, "", cleave_node_output(graph, node, k), e));
  }
  return node;
}

/* The same node through the door for run time: same functions, no symbols. */
static void infer_alone(const cleave_graph_t *graph, cleave_node_t node) {
  cleave_node_type_t inputs[12];
  cleave_node_type_t outputs[12];
  const cleave_node_type_t *pointers[12];
  uint32_t input_count = cleave_node_input_count(graph, node);
  uint32_t output_count = cleave_node_output_count(graph, node);
  memset(inputs, 0, sizeof inputs);
  memset(outputs, 0, sizeof outputs);
  for (uint32_t k = 0; k < input_count; k++) {
    cleave_value_t value = cleave_node_input(graph, node, k);
    pointers[k] = NULL;
    if (cleave_value_exists(value)) {
      const cleave_value_record_t *record = cleave_graph_value(graph, value);
      inputs[k] = (cleave_node_type_t){
          .dtype = (cleave_dtype_t)record->dtype, .rank = record->rank, .tensor = record->tensor};
      for (int32_t d = 0; d < record->rank; d++) {
        inputs[k].dims[d] = record->dims[d];
      }
      pointers[k] = &inputs[k];
    }
  }
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t status =
      cleave_node_infer(graph, node, pointers, input_count, outputs, output_count, &error);
  ck_assert(status == CLEAVE_OK || status == CLEAVE_ERROR_SHAPE || status == CLEAVE_ERROR_FORMAT);
  for (uint32_t k = 0; status == CLEAVE_OK && k < output_count; k++) {
    ck_assert_int_le(outputs[k].rank, CLEAVE_MAX_RANK);
    for (int32_t d = 0; d < outputs[k].rank; d++) {
      ck_assert_int_ge(outputs[k].dims[d], -1);
    }
  }
}

static void check_once(const cleave_op_t *op, uint32_t *accepted) {
  cleave_graph_t *graph = NULL;
  unit_ok(cleave_graph_create(&graph, e));
  cleave_node_t node = draw_node(graph, op);
  infer_alone(graph, node);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_infer_options_t options = {.assume_equal = draw(2) == 0};
  cleave_infer_result_t result;
  cleave_status_t status = cleave_graph_infer(graph, &options, &result, &error);
  ck_assert_msg(status == CLEAVE_OK || status == CLEAVE_ERROR_SHAPE || status == CLEAVE_ERROR_FORMAT,
                "%s: %s", op->name, error.message);
  if (status == CLEAVE_OK) {
    cleave_infer_result_t again;
    (*accepted)++;
    double flops = cleave_op_flops(graph, node);
    ck_assert_msg(flops >= 0.0 || flops == -1.0, "%s: %g", op->name, flops);
    options.fold = true;
    unit_ok(cleave_graph_infer(graph, &options, &again, e)); /* what was found contradicts nothing */
    unit_ok(cleave_graph_verify(graph, e));
  } else {
    ck_assert_str_ne(error.message, "");
  }
  cleave_graph_destroy(graph);
}

UNIT_TEST(random_nodes_are_inferred_or_refused) {
  uint32_t accepted = 0;
  for (uint32_t id = 0; id < CLEAVE_OP_COUNT; id++) {
    for (uint32_t trial = 0; trial < TRIALS; trial++) {
      state = 0x9e3779b97f4a7c15U + id * 1000003U + trial;
      check_once(cleave_op_get((cleave_op_id_t)id), &accepted);
    }
  }
  ck_assert_uint_gt(accepted, CLEAVE_OP_COUNT * TRIALS / 20); /* the rest are refusals */
}

/* Chains of integer operators over constants and symbolic shapes: element arithmetic meets every number. */
UNIT_TEST(random_shape_arithmetic_never_overflows) {
  static const cleave_op_id_t ops[] = {CLEAVE_OP_Add, CLEAVE_OP_Sub,   CLEAVE_OP_Mul,
                                       CLEAVE_OP_Div, CLEAVE_OP_Mod,   CLEAVE_OP_Min,
                                       CLEAVE_OP_Max, CLEAVE_OP_Equal, CLEAVE_OP_Less};
  for (uint32_t trial = 0; trial < 2000; trial++) {
    cleave_graph_t *graph = NULL;
    cleave_value_t values[24];
    uint32_t count = 0;
    state = 0xd1b54a32d192ed03U + trial;
    unit_ok(cleave_graph_create(&graph, e));
    for (; count < 4; count++) {
      int64_t number = draw_number();
      cleave_tensor_t *tensor = NULL;
      unit_ok(cleave_tensor_create_ints(1, &number, 1, &tensor, e));
      unit_ok(cleave_graph_add_constant(graph, "", tensor, &values[count], e));
      cleave_tensor_release(tensor);
    }
    const cleave_dim_t dims[1] = {cleave_dims_symbol(graph->dims, "N", 1)};
    cleave_node_t node = CLEAVE_NODE_NONE;
    unit_ok(cleave_graph_add_input(graph, "", CLEAVE_DTYPE_F32, 1, dims, &values[count], e));
    unit_ok(cleave_graph_add_node(graph, cleave_op_get(CLEAVE_OP_Shape), "", &values[count], 1, 1, &node, e));
    values[count++] = cleave_node_output(graph, node, 0);
    while (count < 24) {
      cleave_value_t inputs[2] = {values[draw(count)], values[draw(count)]};
      const cleave_op_t *op = cleave_op_get(ops[draw(draw(4) == 0 ? 9 : 7)]);
      unit_ok(cleave_graph_add_node(graph, op, "", inputs, 2, 1, &node, e));
      values[count++] = cleave_node_output(graph, node, 0);
    }
    unit_ok(cleave_graph_add_output(graph, "", values[count - 1], e));
    cleave_infer_options_t options = {.fold = true};
    cleave_error_t error = CLEAVE_ERROR_INIT;
    cleave_status_t status = cleave_graph_infer(graph, &options, NULL, &error);
    ck_assert_msg(status == CLEAVE_OK || status == CLEAVE_ERROR_SHAPE, "%s", error.message);
    cleave_graph_destroy(graph);
  }
}

UNIT_SUITE("infer_hostile")

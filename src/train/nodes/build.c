// SPDX-License-Identifier: Apache-2.0
#include "train/nodes/build.h"

#include <stdio.h>

#include "ops/ops.h"

enum { NAME_SIZE = 128 };

static cleave_status_t add(cleave_train_build_t *build, const cleave_op_t *op, cleave_edit_t *edit,
                           cleave_value_t *out_value) {
  char base[NAME_SIZE];
  char name[NAME_SIZE + 16];
  cleave_node_t node = CLEAVE_NODE_NONE;
  (void)snprintf(base, sizeof base, "%.60s/%.50s", build->prefix, op->name);
  edit->name = cleave_editor_unique_name(build->editor, base, name, sizeof name);
  CLEAVE_TRY(cleave_editor_add_node(build->editor, op, edit, &node, build->error));
  *out_value = cleave_node_output(build->editor->graph, node, 0);
  return CLEAVE_OK;
}

cleave_value_t cleave_train_node(cleave_train_build_t *build, const char *op, const cleave_value_t *inputs,
                                 size_t input_count, const cleave_attribute_t *attributes,
                                 size_t attribute_count) {
  cleave_value_t value = CLEAVE_VALUE_NONE;
  cleave_edit_t edit = {.inputs = inputs,
                        .input_count = (uint32_t)input_count,
                        .output_count = 1,
                        .attributes = attributes,
                        .attribute_count = (uint32_t)attribute_count};
  if (build->status == CLEAVE_OK) {
    build->status = add(build, cleave_op_find("", op), &edit, &value);
  }
  return value;
}

cleave_value_t cleave_train_unary(cleave_train_build_t *build, const char *op, cleave_value_t a) {
  return cleave_train_node(build, op, &a, 1, NULL, 0);
}

cleave_value_t cleave_train_binary(cleave_train_build_t *build, const char *op, cleave_value_t a,
                                   cleave_value_t b) {
  const cleave_value_t inputs[] = {a, b};
  return cleave_train_node(build, op, inputs, 2, NULL, 0);
}

/* Takes the tensor over. */
static cleave_value_t add_constant(cleave_train_build_t *build, cleave_tensor_t *tensor) {
  char base[NAME_SIZE];
  char name[NAME_SIZE + 16];
  cleave_value_t value = CLEAVE_VALUE_NONE;
  (void)snprintf(base, sizeof base, "%.60s/number", build->prefix);
  (void)cleave_editor_unique_name(build->editor, base, name, sizeof name);
  cleave_tensor_touch(tensor);
  build->status = cleave_editor_add_constant(build->editor, name, tensor, &value, build->error);
  cleave_tensor_release(tensor);
  return value;
}

cleave_value_t cleave_train_number(cleave_train_build_t *build, cleave_dtype_t dtype, double number) {
  cleave_tensor_t *tensor = NULL;
  if (build->status == CLEAVE_OK) {
    build->status = cleave_tensor_create(dtype, 0, NULL, &tensor, build->error);
  }
  if (build->status != CLEAVE_OK) {
    return CLEAVE_VALUE_NONE;
  }
  cleave_tensor_set_float(tensor, 0, number);
  return add_constant(build, tensor);
}

cleave_value_t cleave_train_integers(cleave_train_build_t *build, const int64_t *values, size_t count) {
  cleave_tensor_t *tensor = NULL;
  if (build->status == CLEAVE_OK) {
    build->status = cleave_tensor_create_ints(1, values, (int64_t)count, &tensor, build->error);
  }
  return build->status == CLEAVE_OK ? add_constant(build, tensor) : CLEAVE_VALUE_NONE;
}

cleave_attribute_t cleave_train_integer(const char *name, int64_t value) {
  return (cleave_attribute_t){.name = name, .kind = CLEAVE_ATTRIBUTE_INT, .i = value};
}

cleave_value_t cleave_train_cast(cleave_train_build_t *build, cleave_value_t a, cleave_dtype_t dtype) {
  if (build->status != CLEAVE_OK || cleave_graph_value(build->editor->graph, a)->dtype == (uint8_t)dtype) {
    return a;
  }
  cleave_attribute_t to = cleave_train_integer("to", dtype);
  return cleave_train_node(build, "Cast", &a, 1, &to, 1);
}

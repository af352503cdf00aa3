// SPDX-License-Identifier: Apache-2.0
#include "train/nodes/form.h"

#include <stdio.h>

#include "ops/ops.h"
#include "train/nodes/build.h"

enum {
  NORM_MEAN = 3,
  NORM_VARIANCE = 4,
  NORM_INPUTS = 5,
  NORM_OUTPUTS = 5,
  DROPOUT_RATIO = 1,
  DROPOUT_MODE = 2,
  LABEL_SIZE = 160,
  MASK_NAME = 40
};
static const double DEFAULT_RATIO = 0.5;

static bool is_op(const cleave_graph_t *graph, cleave_node_t node, cleave_op_id_t id) {
  const cleave_op_t *op = cleave_node_op(graph, node);
  return op != NULL && op->id == (uint16_t)id;
}

/* Replaces a BatchNormalization by one in the other mode. */
static cleave_status_t replace_norm(cleave_editor_t *editor, cleave_node_t node, bool trains,
                                    cleave_node_t *out_node, cleave_error_t *error) {
  cleave_graph_t *graph = editor->graph;
  char name[MASK_NAME + LABEL_SIZE];
  cleave_value_t inputs[NORM_INPUTS];
  const cleave_attribute_t attributes[] = {
      {.name = "epsilon", .kind = CLEAVE_ATTRIBUTE_FLOAT, .f = cleave_op_float(graph, node, "epsilon", 1e-5)},
      {.name = "momentum",
       .kind = CLEAVE_ATTRIBUTE_FLOAT,
       .f = cleave_op_float(graph, node, "momentum", 0.9)}};
  for (uint32_t k = 0; k < NORM_INPUTS; k++) {
    inputs[k] = cleave_node_input(graph, node, k);
  }
  char label[LABEL_SIZE];
  (void)cleave_editor_unique_name(editor, cleave_node_label(graph, node, label, sizeof label), name,
                                  sizeof name);
  cleave_edit_t edit = {.name = name,
                        .inputs = inputs,
                        .input_count = NORM_INPUTS,
                        .output_count = trains ? NORM_OUTPUTS : 1,
                        .attributes = attributes,
                        .attribute_count = sizeof attributes / sizeof attributes[0]};
  cleave_op_id_t op = trains ? CLEAVE_OP_BatchNormalizationTraining : CLEAVE_OP_BatchNormalization;
  CLEAVE_TRY(cleave_editor_add_node(editor, cleave_op_get(op), &edit, out_node, error));
  CLEAVE_TRY(cleave_editor_replace_uses(editor, cleave_node_output(graph, node, 0),
                                        cleave_node_output(graph, *out_node, 0), error));
  return cleave_editor_remove_node(editor, node, error);
}

// ---- inference ----

static bool is_read(const cleave_graph_t *graph, cleave_node_t node, uint32_t output) {
  cleave_value_t value = cleave_node_output(graph, node, output);
  return cleave_value_exists(value) && cleave_graph_value(graph, value)->use_count > 0;
}

static cleave_status_t norm_to_inference(cleave_editor_t *editor, cleave_node_t node, cleave_error_t *error) {
  const cleave_graph_t *graph = editor->graph;
  cleave_node_t made = CLEAVE_NODE_NONE;
  if (cleave_op_int(graph, node, "training_mode", 0) == 0) {
    return CLEAVE_OK;
  }
  if (is_read(graph, node, 1) || is_read(graph, node, 2)) {
    char label[LABEL_SIZE];
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                            "BatchNormalization '%.100s' is in training mode, and its running statistics are "
                            "read in the model: in inference there are none",
                            cleave_node_label(graph, node, label, sizeof label));
  }
  return replace_norm(editor, node, false, &made, error);
}

static cleave_status_t each_to_inference(cleave_editor_t *editor, cleave_error_t *error) {
  uint32_t count = cleave_graph_node_bound(editor->graph);
  for (uint32_t k = 0; k < count; k++) {
    cleave_node_t node = {k};
    if (is_op(editor->graph, node, CLEAVE_OP_BatchNormalization)) {
      CLEAVE_TRY(norm_to_inference(editor, node, error));
    } else if (is_op(editor->graph, node, CLEAVE_OP_Dropout) &&
               cleave_value_exists(cleave_node_input(editor->graph, node, DROPOUT_MODE))) {
      CLEAVE_TRY(cleave_editor_set_input(editor, node, DROPOUT_MODE, CLEAVE_VALUE_NONE, error));
    }
  }
  return cleave_editor_settle(editor, error);
}

cleave_status_t cleave_train_to_inference(cleave_graph_t *graph, cleave_error_t *error) {
  cleave_editor_t editor;
  cleave_editor_init(&editor, graph, NULL);
  editor.rule = "inference";
  cleave_status_t status = each_to_inference(&editor, error);
  cleave_editor_deinit(&editor);
  return status;
}

// ---- training ----

cleave_status_t cleave_train_open_constant(cleave_graph_t *graph, cleave_value_t constant,
                                           cleave_value_t *out_input, cleave_error_t *error) {
  const cleave_tensor_t *tensor = cleave_graph_value(graph, constant)->tensor;
  CLEAVE_TRY(cleave_graph_add_input(graph, cleave_value_name(graph, constant), tensor->dtype, tensor->rank,
                                    tensor->dims, out_input, error));
  cleave_graph_replace_uses(graph, constant, *out_input);
  cleave_graph_remove_constant(graph, constant);
  return CLEAVE_OK;
}

static cleave_status_t open_statistic(cleave_graph_t *graph, cleave_node_t node, uint32_t input,
                                      cleave_train_form_t *form, cleave_error_t *error) {
  cleave_value_t value = cleave_node_input(graph, node, input);
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  const char *what = input == NORM_MEAN ? "mean" : "variance";
  bool is_own = record->tensor != NULL && record->use_count == 1;
  if (!is_own || record->name == CLEAVE_STRING_EMPTY.index) {
    char label[LABEL_SIZE];
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                            "BatchNormalization '%.100s': its running %s '%.100s' %s: freeze the norms, or "
                            "give each one constants of its own",
                            cleave_node_label(graph, node, label, sizeof label), what,
                            cleave_value_name(graph, value),
                            record->tensor == NULL ? "is not a constant" : "is read elsewhere, too");
  }
  cleave_train_norm_t norm = {.next = CLEAVE_VALUE_NONE};
  CLEAVE_TRY(cleave_train_open_constant(graph, value, &norm.now, error));
  CLEAVE_ARRAY_PUSH(&form->norms, norm, error);
  return CLEAVE_OK;
}

static cleave_status_t open_statistics(cleave_graph_t *graph, cleave_train_form_t *form,
                                       cleave_error_t *error) {
  for (uint32_t k = 0; k < cleave_graph_node_bound(graph); k++) {
    cleave_node_t node = {k};
    if (is_op(graph, node, CLEAVE_OP_BatchNormalization)) {
      CLEAVE_TRY(open_statistic(graph, node, NORM_MEAN, form, error));
      CLEAVE_TRY(open_statistic(graph, node, NORM_VARIANCE, form, error));
    }
  }
  return CLEAVE_OK;
}

static double read_ratio(const cleave_graph_t *graph, cleave_node_t node) {
  cleave_value_t ratio = cleave_node_input(graph, node, DROPOUT_RATIO);
  if (!cleave_value_exists(ratio)) {
    return DEFAULT_RATIO;
  }
  const cleave_tensor_t *tensor = cleave_graph_value(graph, ratio)->tensor;
  return tensor != NULL && tensor->count == 1 ? cleave_tensor_get_float(tensor, 0) : -1.0;
}

/* Dropout: what the mask keeps, times 1 / (1 - ratio); else 0. */
static cleave_status_t expand_dropout(cleave_editor_t *editor, cleave_node_t node, cleave_train_form_t *form,
                                      cleave_error_t *error) {
  cleave_graph_t *graph = editor->graph;
  cleave_value_t data = cleave_node_input(graph, node, 0);
  const cleave_value_record_t *record = cleave_graph_value(graph, data);
  cleave_train_mask_t mask = {.ratio = read_ratio(graph, node)};
  char label[LABEL_SIZE];
  char name[MASK_NAME];
  if (!(mask.ratio >= 0.0 && mask.ratio < 1.0) || record->rank < 0) {
    return cleave_error_set(
        error, CLEAVE_ERROR_UNSUPPORTED,
        "Dropout '%.100s': expected data of a known shape, and a constant ratio from 0 to "
        "less than 1",
        cleave_node_label(graph, node, label, sizeof label));
  }
  if (mask.ratio == 0.0) {
    return CLEAVE_OK;
  }
  cleave_dtype_t dtype = (cleave_dtype_t)record->dtype;
  (void)snprintf(name, sizeof name, "dropout_mask_%u", (unsigned)form->masks.count);
  CLEAVE_TRY(
      cleave_graph_add_input(graph, name, CLEAVE_DTYPE_BOOL, record->rank, record->dims, &mask.input, error));
  CLEAVE_ARRAY_PUSH(&form->masks, mask, error);
  cleave_editor_forget_facts(editor);
  cleave_train_build_t build = {.editor = editor, .prefix = "dropout", .error = error};
  cleave_value_t scale = cleave_train_number(&build, dtype, 1.0 / (1.0 - mask.ratio));
  cleave_value_t zero = cleave_train_number(&build, dtype, 0.0);
  const cleave_value_t choice[] = {mask.input, cleave_train_binary(&build, "Mul", data, scale), zero};
  cleave_value_t kept = cleave_train_node(&build, "Where", choice, 3, NULL, 0);
  CLEAVE_TRY(build.status);
  CLEAVE_TRY(cleave_editor_replace_uses(editor, cleave_node_output(graph, node, 0), kept, error));
  if (is_read(graph, node, 1)) {
    CLEAVE_TRY(cleave_editor_replace_uses(editor, cleave_node_output(graph, node, 1), mask.input, error));
  }
  return cleave_editor_remove_node(editor, node, error);
}

static cleave_status_t each_to_training(cleave_editor_t *editor, bool norms, bool dropout,
                                        cleave_train_form_t *form, cleave_error_t *error) {
  uint32_t count = cleave_graph_node_bound(editor->graph);
  size_t norm = 0;
  for (uint32_t k = 0; k < count; k++) {
    cleave_node_t node = {k};
    if (norms && is_op(editor->graph, node, CLEAVE_OP_BatchNormalization)) {
      cleave_node_t made = CLEAVE_NODE_NONE;
      CLEAVE_TRY(replace_norm(editor, node, true, &made, error));
      form->norms.items[norm++].next = cleave_node_output(editor->graph, made, 1);
      form->norms.items[norm++].next = cleave_node_output(editor->graph, made, 2);
    } else if (dropout && is_op(editor->graph, node, CLEAVE_OP_Dropout)) {
      CLEAVE_TRY(expand_dropout(editor, node, form, error));
    }
  }
  return cleave_editor_settle(editor, error);
}

cleave_status_t cleave_train_to_training(cleave_graph_t *graph, bool norms, bool dropout,
                                         cleave_train_form_t *out_form, cleave_error_t *error) {
  *out_form = (cleave_train_form_t){0};
  if (norms) {
    CLEAVE_TRY(open_statistics(graph, out_form, error));
  }
  cleave_editor_t editor;
  cleave_editor_init(&editor, graph, NULL);
  editor.rule = "training";
  cleave_status_t status = each_to_training(&editor, norms, dropout, out_form, error);
  cleave_editor_deinit(&editor);
  return status;
}

void cleave_train_form_deinit(cleave_train_form_t *form) {
  cleave_array_free(&form->norms);
  cleave_array_free(&form->masks);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * If: exporters write it for what depends on a rank or a size, and mostly these are known. Conditions are
 * found in rounds. Each builds a trial graph of all that does not depend on an If, infers what is known of
 * it, and puts the branches that are decided in place; what they define may decide further ones.
 */
#include "formats/onnx/read/onnx_branch.h"

#include <string.h>

#include "formats/onnx/read/onnx_build.h"
#include "ops/infer.h"

/* Nodes built in all rounds together: a chain of N conditions takes N rounds. */
enum { MAX_WORK = 1 << 22 };

typedef struct round {
  cleave_onnx_model_t *model;
  cleave_graph_t *trial;
  cleave_value_t *conditions;            /* by node; NONE: no If, or not there yet */
  const cleave_onnx_attribute_t **taken; /* by node */
  size_t decided;
} round_t;

/* Is there an If? Other operators with graphs are refused. */
static cleave_status_t find_if(const cleave_onnx_model_t *model, bool *out_found, cleave_error_t *error) {
  *out_found = false;
  for (size_t k = 0; k < model->nodes.count; k++) {
    const cleave_onnx_node_t *node = &model->nodes.items[k];
    const cleave_onnx_attribute_t *graph = cleave_onnx_find_graph(node);
    if (graph != NULL && (node->domain[0] != '\0' || strcmp(node->op_type, "If") != 0)) {
      return cleave_error_set(
          error, CLEAVE_ERROR_UNSUPPORTED,
          "node '%s': operator '%s': attribute '%s' is a graph, which is read for If alone", node->label,
          node->op_type, graph->value.name);
    }
    *out_found |= graph != NULL;
  }
  return CLEAVE_OK;
}

/* The branch that a known condition takes. */
static cleave_status_t decide(round_t *round, size_t index, const cleave_tensor_t *condition,
                              cleave_error_t *error) {
  const cleave_onnx_node_t *node = &round->model->nodes.items[index];
  if (condition->dtype != CLEAVE_DTYPE_BOOL || condition->count != 1) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                            "node '%s': operator 'If': expected a condition of one bool, found %lld of %s",
                            node->label, (long long)condition->count, cleave_dtype_name(condition->dtype));
  }
  const char *name = cleave_tensor_get_int(condition, 0) != 0 ? "then_branch" : "else_branch";
  for (uint32_t k = 0; k < node->attribute_count; k++) {
    if (node->attributes[k].is_graph && strcmp(node->attributes[k].value.name, name) == 0) {
      round->taken[index] = &node->attributes[k];
      round->decided++;
      return CLEAVE_OK;
    }
  }
  return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "node '%s': operator 'If': it has no graph '%s'",
                          node->label, name);
}

/* Builds the trial graph, and looks which conditions are constants once what is known of it is folded. */
static cleave_status_t run(round_t *round, cleave_error_t *error) {
  cleave_onnx_model_t *model = round->model;
  cleave_graph_t *graph = model->graph;
  const cleave_infer_options_t options = {.fold = true};
  CLEAVE_TRY(cleave_strings_copy(&graph->strings, &round->trial->strings, error));
  model->graph = round->trial;
  cleave_status_t status = cleave_onnx_build_partly(model, round->conditions, error);
  model->graph = graph;
  for (size_t k = 0; k < model->nodes.count && status == CLEAVE_OK; k++) {
    if (cleave_value_exists(round->conditions[k])) {
      status = cleave_graph_add_output(round->trial, NULL, round->conditions[k], error);
    }
  }
  CLEAVE_THEN(status, cleave_graph_infer(round->trial, &options, NULL, error));
  size_t output = 0;
  for (size_t k = 0; k < model->nodes.count && status == CLEAVE_OK; k++) {
    if (cleave_value_exists(round->conditions[k])) {
      round->conditions[k] = cleave_graph_output(round->trial, output++);
      const cleave_tensor_t *condition = cleave_graph_value(round->trial, round->conditions[k])->tensor;
      status = condition != NULL ? decide(round, k, condition, error) : CLEAVE_OK;
    }
  }
  return status;
}

/* ---- sizes that are given ---- */

/* Inputs get the sizes that the options have for theirs. The names stay known as names of sizes. */
static bool take_sizes(cleave_onnx_model_t *model) {
  const cleave_onnx_read_options_t *options = model->options;
  bool is_more = false;
  for (size_t k = 0; k < model->inputs.count; k++) {
    const cleave_onnx_value_info_t *info = &model->inputs.items[k];
    for (int32_t d = 0; d < info->rank && d < CLEAVE_MAX_RANK; d++) {
      const char *name = cleave_strings_text(&model->graph->strings, info->dims[d].symbol);
      for (size_t s = 0; info->dims[d].size < 0 && name[0] != '\0' && s < options->size_count; s++) {
        if (strcmp(options->sizes[s].name, name) == 0 && options->sizes[s].size >= 0) {
          info->dims[d].size = options->sizes[s].size;
          (void)cleave_dims_symbol(model->graph->dims, name, strlen(name));
          is_more = true;
        }
      }
    }
  }
  return is_more;
}

/* ---- what decides ---- */

/* What a value depends on that is not known: the content of `value`, or, if `is_size`, its shape. */
typedef struct cause {
  cleave_value_t value;
  bool is_size;
} cause_t;

static bool has_open_size(const cleave_graph_t *graph, cleave_value_t value) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  bool is_open = record->rank < 0;
  for (int32_t d = 0; d < record->rank; d++) {
    is_open |= !cleave_dim_is_known(record->dims[d]);
  }
  return is_open;
}

/* The first cause on the way back from a value, each node visited once. */
static cleave_status_t find_cause(const cleave_graph_t *graph, cleave_value_t from, cause_t *out_cause,
                                  cleave_error_t *error) {
  CLEAVE_ARRAY(cleave_value_t) stack = {0};
  bool *is_seen = cleave_allocate_zeroed((size_t)cleave_graph_value_bound(graph) + 1, sizeof *is_seen);
  cleave_status_t status = CLEAVE_OK;
  bool is_found = false;
  *out_cause = (cause_t){.value = from};
  CLEAVE_TRY_MEMORY_CLEANUP(is_seen != NULL, error);
  CLEAVE_TRY_CLEANUP(cleave_array_reserve(&stack, 1, error));
  cleave_array_push_reserved(&stack, from);
  while (stack.count > 0 && !is_found) {
    cleave_value_t value = stack.items[--stack.count];
    cleave_node_t node = cleave_value_producer(graph, value);
    is_found = cleave_graph_value(graph, value)->is_input;
    out_cause->value = is_found ? value : out_cause->value;
    for (uint32_t k = 0; cleave_node_exists(node) && k < cleave_node_input_count(graph, node); k++) {
      cleave_value_t input = cleave_node_input(graph, node, k);
      cleave_op_id_t op = cleave_node_op(graph, node)->id;
      if (!cleave_value_exists(input) || is_seen[input.index]) {
        continue;
      }
      is_seen[input.index] = true;
      if (op != CLEAVE_OP_Shape && op != CLEAVE_OP_Size) {
        CLEAVE_TRY_CLEANUP(cleave_array_reserve(&stack, 1, error));
        cleave_array_push_reserved(&stack, input);
      } else if (has_open_size(graph, input)) {
        *out_cause = (cause_t){.value = input, .is_size = true};
        is_found = true;
      }
    }
  }
cleanup:
  cleave_free(is_seen);
  cleave_array_free(&stack);
  return status;
}

/* What is open of a cause, and which option gives it. */
static void describe(const cleave_graph_t *graph, const cause_t *cause, cleave_text_t *open,
                     cleave_text_t *hint) {
  const cleave_value_record_t *record = cleave_graph_value(graph, cause->value);
  if (!cause->is_size) {
    if (record->is_input && cleave_value_is_single(graph, cause->value)) {
      cleave_text_format(hint, "; --fix %s=VALUE decides it", cleave_value_name(graph, cause->value));
    }
    return;
  }
  cleave_text_add(open, ", which is open");
  cleave_text_add(hint, "; --shape NAME=SIZE gives a size that has a name");
  for (int32_t d = 0; d < record->rank; d++) {
    if (!cleave_dim_is_known(record->dims[d])) {
      cleave_text_add(open, ": ");
      cleave_dim_print(graph->dims, record->dims[d], open);
      return;
    }
  }
}

static cleave_status_t explain(const round_t *round, const cleave_onnx_node_t *node, cleave_value_t condition,
                               cleave_error_t *error) {
  const cleave_graph_t *trial = round->trial;
  const char *name = cleave_strings_text(&trial->strings, node->inputs[0]);
  cause_t cause;
  cleave_text_t open = {0};
  cleave_text_t hint = {0};
  CLEAVE_TRY(find_cause(trial, condition, &cause, error));
  describe(trial, &cause, &open, &hint);
  cleave_status_t status = cleave_error_set(
      error, CLEAVE_ERROR_UNSUPPORTED,
      "node '%s': operator 'If': its condition '%s' depends on the %s of '%s'%s (a branch is taken when the "
      "file is read%s)",
      node->label, name, cause.is_size ? "shape" : "content", cleave_value_name(trial, cause.value),
      cleave_text_get(&open), cleave_text_get(&hint));
  cleave_text_deinit(&open);
  cleave_text_deinit(&hint);
  return status;
}

/* No condition is known: says why of the first one that there is. */
static cleave_status_t refuse(const round_t *round, cleave_error_t *error) {
  const cleave_onnx_node_t *first = NULL;
  for (size_t k = 0; k < round->model->nodes.count; k++) {
    const cleave_onnx_node_t *node = &round->model->nodes.items[k];
    if (cleave_value_exists(round->conditions[k])) {
      return explain(round, node, round->conditions[k], error);
    }
    first = first == NULL && cleave_onnx_find_graph(node) != NULL ? node : first;
  }
  return cleave_error_set(
      error, CLEAVE_ERROR_FORMAT,
      "node '%s': operator 'If': its condition is not defined, or depends on its own output", first->label);
}

static cleave_status_t run_round(cleave_onnx_inliner_t *inliner, cleave_error_t *error) {
  size_t count = inliner->model->nodes.count;
  round_t round = {.model = inliner->model};
  round.conditions = cleave_allocate(count, sizeof *round.conditions);
  round.taken = cleave_allocate_zeroed(count, sizeof *round.taken);
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_MEMORY_CLEANUP(round.conditions != NULL && round.taken != NULL, error);
  memset(round.conditions, 0xff, count * sizeof *round.conditions); /* NONE */
  CLEAVE_TRY_CLEANUP(cleave_graph_create(&round.trial, error));
  CLEAVE_TRY_CLEANUP(run(&round, error));
  if (round.decided > 0) {
    CLEAVE_TRY_CLEANUP(cleave_onnx_inline_branches(inliner, round.taken, error));
  } else if (!take_sizes(inliner->model)) {
    CLEAVE_TRY_CLEANUP(refuse(&round, error));
  }
cleanup:
  cleave_graph_destroy(round.trial);
  cleave_free(round.conditions);
  cleave_free((void *)round.taken);
  return status;
}

cleave_status_t cleave_onnx_take_branches(cleave_onnx_inliner_t *inliner, cleave_error_t *error) {
  size_t work = 0;
  bool found = false;
  CLEAVE_TRY(find_if(inliner->model, &found, error));
  while (found) {
    work += inliner->model->nodes.count;
    if (work > MAX_WORK) {
      return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "too many conditions of If depend on each other");
    }
    CLEAVE_TRY(run_round(inliner, error));
    CLEAVE_TRY(find_if(inliner->model, &found, error));
  }
  return CLEAVE_OK;
}

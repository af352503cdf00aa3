// SPDX-License-Identifier: Apache-2.0
// Adds what is repeated: set by set, those that backward needs first before the others, so that also the
// indices of nodes are in the order in which they are to run.
#include <stdio.h>

#include "ops/ops.h"
#include "partition/gradient/recompute_state.h"

enum { LABEL_SIZE = 160, NAME_SIZE = 200 };

typedef struct repeated {
  uint32_t first; /* reader in backward of its set */
  uint32_t position;
} repeated_t;

typedef struct applying {
  recompute_t *state;
  cleave_editor_t editor;
  cleave_value_t *again; /* by value: what stands for it in backward; NONE: itself */
  cleave_value_t *late;  /* by value: itself, but not before the node at position `waits_for` */
  uint32_t *waits_for;
  CLEAVE_ARRAY(repeated_t) repeated;
  CLEAVE_ARRAY(cleave_value_t) inputs;
} applying_t;

static int compare(const void *a, const void *b) {
  const repeated_t *x = a;
  const repeated_t *y = b;
  return x->first != y->first ? (x->first > y->first) - (x->first < y->first)
                              : (x->position > y->position) - (x->position < y->position);
}

static cleave_status_t list_repeated(applying_t *applying, cleave_error_t *error) {
  recompute_t *state = applying->state;
  for (uint32_t p = 0; p < state->forward_count; p++) {
    uint32_t node = state->order[p].index;
    if (state->nodes[node].is_repeated) {
      repeated_t entry = {.first = state->nodes[cleave_recompute_set(state, node)].set_first, .position = p};
      CLEAVE_ARRAY_PUSH(&applying->repeated, entry, error);
    }
  }
  cleave_array_sort(&applying->repeated, compare);
  return CLEAVE_OK;
}

/* The value, once backward has come to the node at position `before`. */
static cleave_status_t wait_for(applying_t *applying, cleave_value_t value, uint32_t before,
                                cleave_value_t *out_value, cleave_error_t *error) {
  recompute_t *state = applying->state;
  cleave_graph_t *graph = state->graph;
  if (applying->waits_for[value.index] != before) {
    const cleave_value_t inputs[] = {value, cleave_node_output(graph, state->order[before], 0)};
    const cleave_edit_t edit = {.name = "", .inputs = inputs, .input_count = 2, .output_count = 1};
    cleave_node_t node = CLEAVE_NODE_NONE;
    CLEAVE_TRY(
        cleave_editor_add_node(&applying->editor, cleave_op_get(CLEAVE_OP_After), &edit, &node, error));
    applying->late[value.index] = cleave_node_output(graph, node, 0);
    applying->waits_for[value.index] = before;
  }
  *out_value = applying->late[value.index];
  return CLEAVE_OK;
}

static bool is_computed(const cleave_graph_t *graph, cleave_value_t value) {
  return cleave_node_exists(cleave_value_producer(graph, value)) &&
         !cleave_dtype_is_integer((cleave_dtype_t)cleave_graph_value(graph, value)->dtype);
}

/* The inputs of a repeated node. Integers, which may be sizes, and inputs of the graph wait only if nothing
 * else makes the node wait. */
static cleave_status_t find_inputs(applying_t *applying, cleave_node_t node, cleave_error_t *error) {
  recompute_t *state = applying->state;
  const cleave_graph_t *graph = state->graph;
  uint32_t before = state->late[state->nodes[cleave_recompute_set(state, node.index)].set_first];
  bool waits = false;
  applying->inputs.count = 0;
  for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
    cleave_value_t value = cleave_node_input(graph, node, k);
    if (cleave_value_exists(value) && cleave_value_exists(applying->again[value.index])) {
      value = applying->again[value.index];
      waits = true;
    } else if (cleave_value_exists(value) && is_computed(graph, value)) {
      CLEAVE_TRY(wait_for(applying, value, before, &value, error));
      waits = true;
    }
    CLEAVE_ARRAY_PUSH(&applying->inputs, value, error);
  }
  for (size_t k = 0; !waits && k < applying->inputs.count; k++) {
    cleave_value_t value = applying->inputs.items[k];
    if (cleave_value_exists(value) && !cleave_value_is_constant(graph, value)) {
      CLEAVE_TRY(wait_for(applying, value, before, &applying->inputs.items[k], error));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t repeat(applying_t *applying, cleave_node_t node, cleave_error_t *error) {
  recompute_t *state = applying->state;
  cleave_graph_t *graph = state->graph;
  char label[LABEL_SIZE];
  char base[NAME_SIZE];
  char name[NAME_SIZE + 16];
  cleave_node_t made = CLEAVE_NODE_NONE;
  CLEAVE_TRY(find_inputs(applying, node, error));
  (void)snprintf(base, sizeof base, "again(%.150s)", cleave_node_label(graph, node, label, sizeof label));
  const cleave_node_record_t *record = cleave_graph_node(graph, node);
  const cleave_edit_t edit = {.name = cleave_editor_unique_name(&applying->editor, base, name, sizeof name),
                              .inputs = applying->inputs.items,
                              .input_count = (uint32_t)applying->inputs.count,
                              .output_count = record->output_count,
                              .attributes = record->attributes,
                              .attribute_count = record->attribute_count};
  CLEAVE_TRY(cleave_editor_add_node(&applying->editor, record->op, &edit, &made, error));
  cleave_editor_forget_facts(&applying->editor);
  for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
    cleave_value_t value = cleave_node_output(graph, node, k);
    const cleave_value_record_t *type = cleave_graph_value(graph, value);
    CLEAVE_TRY(cleave_graph_set_type(graph, cleave_node_output(graph, made, k), (cleave_dtype_t)type->dtype,
                                     type->rank, type->dims, error));
    if (state->nodes[node.index].is_view || state->values[value.index].may_drop) {
      applying->again[value.index] = cleave_node_output(graph, made, k);
    }
  }
  return CLEAVE_OK;
}

/* Backward, as it was before, reads the repeated value. */
static void redirect(applying_t *applying, cleave_node_t node, uint32_t bound) {
  recompute_t *state = applying->state;
  cleave_graph_t *graph = state->graph;
  for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
    cleave_value_t value = cleave_node_output(graph, node, k);
    cleave_use_t use = cleave_value_first_use(graph, value);
    while (cleave_value_exists(applying->again[value.index]) && cleave_use_exists(use)) {
      cleave_use_t next = cleave_use_next(graph, use);
      cleave_node_t reader = cleave_use_node(graph, use);
      if (cleave_node_exists(reader) && reader.index >= state->first_backward && reader.index < bound &&
          cleave_recompute_reads_elements(graph, reader)) {
        cleave_graph_set_use(graph, use, applying->again[value.index]);
      }
      use = next;
    }
  }
}

/* Nodes of backward that could run as soon as forward has come to what they read (the derivative of an
 * activation) wait, too: what they make would live from then on. */
static cleave_status_t delay(applying_t *applying, uint32_t position, cleave_error_t *error) {
  const recompute_t *state = applying->state;
  cleave_graph_t *graph = state->graph;
  cleave_node_t node = state->order[position];
  uint32_t before = state->late[position];
  if (before == CLEAVE_INDEX_NONE || !cleave_recompute_reads_elements(graph, node) ||
      state->depth[node.index] >= state->depth[state->order[before].index]) {
    return CLEAVE_OK;
  }
  for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
    cleave_value_t value = cleave_node_input(graph, node, k);
    if (cleave_value_exists(value) && is_computed(graph, value) &&
        cleave_recompute_is_forward(state, cleave_value_producer(graph, value))) {
      CLEAVE_TRY(wait_for(applying, value, before, &value, error));
      cleave_graph_set_input(graph, node, k, value);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t apply(applying_t *applying, cleave_error_t *error) {
  recompute_t *state = applying->state;
  uint32_t bound = cleave_graph_node_bound(state->graph);
  CLEAVE_TRY(list_repeated(applying, error));
  for (size_t k = 0; k < applying->repeated.count; k++) {
    CLEAVE_TRY(repeat(applying, state->order[applying->repeated.items[k].position], error));
  }
  for (size_t k = 0; k < applying->repeated.count; k++) {
    redirect(applying, state->order[applying->repeated.items[k].position], bound);
  }
  for (uint32_t p = state->forward_count; p < state->node_count; p++) {
    CLEAVE_TRY(delay(applying, p, error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_recompute_apply(recompute_t *state, cleave_error_t *error) {
  size_t values = (size_t)cleave_graph_value_bound(state->graph) + 1;
  applying_t applying = {.state = state};
  applying.again = cleave_allocate(values, sizeof *applying.again);
  applying.late = cleave_allocate(values, sizeof *applying.late);
  applying.waits_for = cleave_allocate(values, sizeof *applying.waits_for);
  cleave_status_t status = CLEAVE_OK;
  if (applying.again == NULL || applying.late == NULL || applying.waits_for == NULL) {
    status = cleave_error_out_of_memory(error);
  } else {
    for (size_t k = 0; k < values; k++) {
      applying.again[k] = CLEAVE_VALUE_NONE;
      applying.waits_for[k] = CLEAVE_INDEX_NONE;
    }
    cleave_editor_init(&applying.editor, state->graph, NULL);
    applying.editor.rule = "recompute";
    status = apply(&applying, error);
    cleave_editor_deinit(&applying.editor);
  }
  cleave_free(applying.again);
  cleave_free(applying.late);
  cleave_free(applying.waits_for);
  cleave_array_free(&applying.repeated);
  cleave_array_free(&applying.inputs);
  return status;
}

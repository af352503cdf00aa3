// SPDX-License-Identifier: Apache-2.0
#include "distributed/cut.h"

#include "graph/extract.h"
#include "graph/order.h"

typedef struct cutting {
  const cleave_graph_t *graph;
  const cleave_cut_request_t *request;
  cleave_cut_part_t *parts;
  cleave_node_t *order; /* by part, and in it producers first */
  uint32_t *first;      /* by part: its first node in `order`; one more at the end */
  uint32_t *read_by;    /* by value: 1 + the last part that lists it as an input; 0: none yet */
  bool *is_output;      /* by value: of the part that makes it */
  uint32_t last;        /* part that has nodes */
} cutting_t;

static bool is_part(uint32_t part) {
  return part < CLEAVE_CUT_GIVEN;
}

cleave_status_t cleave_cut_assign(const cleave_graph_t *graph, uint32_t *parts, cleave_error_t *error) {
  cleave_node_t *order = cleave_allocate(graph->live_node_count + 1, sizeof *order);
  cleave_status_t status = order == NULL ? cleave_error_out_of_memory(error)
                                         : cleave_graph_topological_order(graph, order, NULL, error);
  for (size_t k = graph->live_node_count; k > 0 && status == CLEAVE_OK; k--) {
    cleave_node_t node = order[k - 1];
    uint32_t part = parts[node.index];
    for (uint32_t i = 0; is_part(part) && i < cleave_graph_node(graph, node)->input_count; i++) {
      cleave_value_t value = cleave_node_input(graph, node, i);
      cleave_node_t from =
          cleave_value_exists(value) ? cleave_value_producer(graph, value) : CLEAVE_NODE_NONE;
      if (cleave_node_exists(from) && parts[from.index] != CLEAVE_CUT_GIVEN && parts[from.index] > part) {
        parts[from.index] = part;
      }
    }
  }
  cleave_free(order);
  return status;
}

// ---- nodes by part ----

static cleave_status_t sort_nodes(cutting_t *cutting, cleave_error_t *error) {
  const cleave_graph_t *graph = cutting->graph;
  const uint32_t *parts = cutting->request->parts;
  uint32_t count = cutting->request->part_count;
  cleave_node_t *all = cleave_allocate(graph->live_node_count + 1, sizeof *all);
  cleave_status_t status = all == NULL ? cleave_error_out_of_memory(error)
                                       : cleave_graph_topological_order(graph, all, NULL, error);
  if (status == CLEAVE_OK) {
    for (size_t k = 0; k < graph->live_node_count; k++) {
      if (is_part(parts[all[k].index])) {
        cutting->first[parts[all[k].index] + 1]++;
      }
    }
    for (uint32_t p = 0; p < count; p++) {
      cutting->last = cutting->first[p + 1] > 0 ? p : cutting->last;
      cutting->first[p + 1] += cutting->first[p];
    }
    for (size_t k = 0; k < graph->live_node_count; k++) {
      uint32_t part = parts[all[k].index];
      if (is_part(part)) { /* `first` moves to the end of the part, which is the start of the next */
        cutting->order[cutting->first[part]++] = all[k];
      }
    }
    for (uint32_t p = count; p > 0; p--) {
      cutting->first[p] = cutting->first[p - 1];
    }
    cutting->first[0] = 0;
  }
  cleave_free(all);
  return status;
}

// ---- inputs and outputs ----

static cleave_status_t add_output(cutting_t *cutting, uint32_t part, cleave_value_t value, uint32_t number,
                                  cleave_error_t *error) {
  CLEAVE_ARRAY_PUSH(&cutting->parts[part].outputs, value, error);
  CLEAVE_ARRAY_PUSH(&cutting->parts[part].numbers, number, error);
  return CLEAVE_OK;
}

static uint32_t part_of(const cutting_t *cutting, cleave_value_t value) {
  cleave_node_t node = cleave_value_producer(cutting->graph, value);
  return cleave_node_exists(node) ? cutting->request->parts[node.index] : CLEAVE_CUT_NONE;
}

/* Value `value` is read in `part`, and not made there. */
static cleave_status_t add_input(cutting_t *cutting, uint32_t part, cleave_value_t value,
                                 cleave_error_t *error) {
  const cleave_graph_t *graph = cutting->graph;
  uint32_t from = part_of(cutting, value);
  if (cleave_graph_value(graph, value)->tensor != NULL || cutting->read_by[value.index] == part + 1) {
    return CLEAVE_OK;
  }
  if (is_part(from) && from > part) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "value '%.100s' is made in part %u, and read in part %u, which comes before it",
                            cleave_value_name(graph, value), (unsigned)from, (unsigned)part);
  }
  cutting->read_by[value.index] = part + 1;
  CLEAVE_ARRAY_PUSH(&cutting->parts[part].inputs, value, error);
  return CLEAVE_OK;
}

static cleave_status_t find_inputs(cutting_t *cutting, uint32_t part, cleave_error_t *error) {
  for (uint32_t k = cutting->first[part]; k < cutting->first[part + 1]; k++) {
    cleave_node_t node = cutting->order[k];
    for (uint32_t i = 0; i < cleave_graph_node(cutting->graph, node)->input_count; i++) {
      cleave_value_t value = cleave_node_input(cutting->graph, node, i);
      if (cleave_value_exists(value) && part_of(cutting, value) != part) {
        CLEAVE_TRY(add_input(cutting, part, value, error));
      }
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t list_wanted(cutting_t *cutting, cleave_error_t *error) {
  for (uint32_t k = 0; k < cutting->request->output_count; k++) {
    cleave_value_t value = cutting->request->outputs[k];
    uint32_t part = part_of(cutting, value);
    if (is_part(part)) {
      cutting->is_output[value.index] = true;
    } else {
      part = cutting->last;
      CLEAVE_TRY(add_input(cutting, part, value, error));
    }
    CLEAVE_TRY(add_output(cutting, part, value, k, error));
  }
  return CLEAVE_OK;
}

/* Is it read outside of the part that makes it? */
static bool is_read_later(const cutting_t *cutting, uint32_t part, cleave_value_t value) {
  const cleave_graph_t *graph = cutting->graph;
  for (cleave_use_t use = cleave_value_first_use(graph, value); cleave_use_exists(use);
       use = cleave_use_next(graph, use)) {
    cleave_node_t reader = cleave_use_node(graph, use);
    if (cleave_node_exists(reader) && cutting->request->parts[reader.index] != part &&
        cutting->request->parts[reader.index] != CLEAVE_CUT_NONE) {
      return true;
    }
  }
  return false;
}

static cleave_status_t find_outputs(cutting_t *cutting, uint32_t part, cleave_error_t *error) {
  for (uint32_t k = cutting->first[part]; k < cutting->first[part + 1]; k++) {
    cleave_node_t node = cutting->order[k];
    for (uint32_t i = 0; i < cleave_graph_node(cutting->graph, node)->output_count; i++) {
      cleave_value_t value = cleave_node_output(cutting->graph, node, i);
      if (!cutting->is_output[value.index] && is_read_later(cutting, part, value)) {
        CLEAVE_TRY(add_output(cutting, part, value, CLEAVE_INDEX_NONE, error));
      }
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t make_part(cutting_t *cutting, uint32_t part, cleave_error_t *error) {
  cleave_cut_part_t *made = &cutting->parts[part];
  const cleave_extract_request_t request = {.nodes = cutting->order + cutting->first[part],
                                            .node_count = cutting->first[part + 1] - cutting->first[part],
                                            .inputs = made->inputs.items,
                                            .input_count = (uint32_t)made->inputs.count,
                                            .outputs = made->outputs.items,
                                            .output_count = (uint32_t)made->outputs.count};
  return request.node_count == 0 ? CLEAVE_OK
                                 : cleave_graph_extract(cutting->graph, &request, &made->graph, error);
}

static cleave_status_t cut(cutting_t *cutting, cleave_error_t *error) {
  CLEAVE_TRY(sort_nodes(cutting, error));
  for (uint32_t p = 0; p < cutting->request->part_count; p++) {
    CLEAVE_TRY(find_inputs(cutting, p, error));
  }
  CLEAVE_TRY(list_wanted(cutting, error));
  for (uint32_t p = 0; p < cutting->request->part_count; p++) {
    CLEAVE_TRY(find_outputs(cutting, p, error));
    CLEAVE_TRY(make_part(cutting, p, error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_cut(const cleave_graph_t *graph, const cleave_cut_request_t *request,
                           cleave_cut_part_t *parts, cleave_error_t *error) {
  size_t values = (size_t)cleave_graph_value_bound(graph) + 1;
  cutting_t cutting = {.graph = graph, .request = request, .parts = parts};
  cutting.order = cleave_allocate(graph->live_node_count + 1, sizeof *cutting.order);
  cutting.first = cleave_allocate_zeroed((size_t)request->part_count + 2, sizeof *cutting.first);
  cutting.read_by = cleave_allocate_zeroed(values, sizeof *cutting.read_by);
  cutting.is_output = cleave_allocate_zeroed(values, sizeof *cutting.is_output);
  bool good =
      cutting.order != NULL && cutting.first != NULL && cutting.read_by != NULL && cutting.is_output != NULL;
  cleave_status_t status = good ? cut(&cutting, error) : cleave_error_out_of_memory(error);
  cleave_free(cutting.order);
  cleave_free(cutting.first);
  cleave_free(cutting.read_by);
  cleave_free(cutting.is_output);
  return status;
}

void cleave_cut_part_deinit(cleave_cut_part_t *part) {
  cleave_graph_destroy(part->graph);
  part->graph = NULL;
  cleave_array_free(&part->inputs);
  cleave_array_free(&part->outputs);
  cleave_array_free(&part->numbers);
}

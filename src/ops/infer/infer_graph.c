// SPDX-License-Identifier: Apache-2.0
// Inference over a graph: a queue of nodes to visit, at first all of them in topological order; a node whose
// visit makes a fact more precise puts the producer and the users of that value back. A value changes a few
// times at most, so the work is linear. The graph is written only after all facts agree.

#include "ops/infer.h"

#include <string.h>

#include "graph/order.h"
#include "ops/context/infer_context.h"
#include "ops/infer/op_functions.h"

/* ---- fold ---- */

/* Constants from what inference found out. Integers and bools fold whatever made them: they are shapes and
 * indices. Floats fold only as the few numbers that shape arithmetic needs (scales of a Resize, a size's
 * square root), so that weights stay tensors of their own, with versions. */
enum { FLOAT_FOLD_LIMIT = 8 };

/* The content as a tensor, or NULL in *out_tensor if it is not all known. */
static cleave_status_t tensor_of_fact(const cleave_fact_t *fact, cleave_tensor_t **out_tensor,
                                      cleave_error_t *error) {
  int64_t count = cleave_fact_count(fact);
  bool is_float = cleave_dtype_is_float((cleave_dtype_t)fact->dtype);
  *out_tensor = NULL;
  if (fact->elements == NULL || count < 0 || count > (is_float ? FLOAT_FOLD_LIMIT : CLEAVE_ELEMENT_LIMIT)) {
    return CLEAVE_OK;
  }
  for (int64_t k = 0; k < count; k++) {
    if (fact->elements[k].kind != CLEAVE_ELEMENT_INT && fact->elements[k].kind != CLEAVE_ELEMENT_FLOAT) {
      return CLEAVE_OK;
    }
  }
  CLEAVE_TRY(cleave_tensor_create((cleave_dtype_t)fact->dtype, fact->rank, fact->dims, out_tensor, error));
  for (int64_t k = 0; k < count; k++) {
    const cleave_element_t *element = &fact->elements[k];
    if (fact->dtype == CLEAVE_DTYPE_I64) { /* a double would not hold them all */
      ((int64_t *)(*out_tensor)->data)[k] = element->i;
    } else {
      cleave_tensor_set_float(*out_tensor, k,
                              element->kind == CLEAVE_ELEMENT_INT ? (double)element->i : element->f);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t fold_value(cleave_graph_t *graph, cleave_value_t value, const cleave_fact_t *fact,
                                  uint32_t *count, cleave_error_t *error) {
  cleave_tensor_t *tensor = NULL;
  if (cleave_graph_value(graph, value)->use_count == 0) {
    return CLEAVE_OK;
  }
  if (fact->tensor != NULL) { /* a Constant node */
    tensor = cleave_tensor_retain((cleave_tensor_t *)(uintptr_t)fact->tensor);
  } else {
    CLEAVE_TRY(tensor_of_fact(fact, &tensor, error));
  }
  if (tensor == NULL) {
    return CLEAVE_OK;
  }
  cleave_status_t status = cleave_graph_replace_with_constant(graph, value, tensor, error);
  cleave_tensor_release(tensor);
  *count += status == CLEAVE_OK ? 1 : 0;
  return status;
}

/* Replaces values that nodes make and whose elements are all known by constants, then removes the nodes that
 * nothing needs any more. `order` ends in CLEAVE_NODE_NONE; `facts` are by value. Counts the values. */
static cleave_status_t fold_facts(cleave_graph_t *graph, const cleave_node_t *order,
                                  const cleave_fact_t *facts, uint32_t *out_count, cleave_error_t *error) {
  *out_count = 0;
  for (size_t k = 0; cleave_node_exists(order[k]); k++) {
    cleave_node_t node = order[k];
    for (uint32_t o = 0; o < cleave_node_output_count(graph, node); o++) {
      cleave_value_t value = cleave_node_output(graph, node, o);
      CLEAVE_TRY(fold_value(graph, value, &facts[value.index], out_count, error));
    }
  }
  return *out_count > 0 ? cleave_graph_remove_dead(graph, NULL, error) : CLEAVE_OK;
}

typedef struct queue {
  uint32_t *items; /* ring of `capacity` node indices */
  uint8_t *is_in;  /* by node */
  uint32_t capacity;
  uint32_t first;
  uint32_t count;
} queue_t;

typedef struct driver {
  cleave_graph_t *graph;
  cleave_arena_t arena;
  cleave_fact_t *facts; /* by value */
  cleave_node_t *order;
  queue_t ready;
  queue_t assumable; /* nodes that only an assumption could bring further */
  cleave_fact_t **ports;
  size_t port_capacity;
  bool assumes;
} driver_t;

static void push(queue_t *queue, uint32_t node) {
  if (!queue->is_in[node]) {
    uint32_t place = queue->first + queue->count; /* both below 2^31: checked in create_queue */
    queue->items[place < queue->capacity ? place : place - queue->capacity] = node;
    queue->is_in[node] = 1;
    queue->count++;
  }
}

static uint32_t pop(queue_t *queue) {
  uint32_t node = queue->items[queue->first];
  queue->first = queue->first + 1 < queue->capacity ? queue->first + 1 : 0;
  queue->is_in[node] = 0;
  queue->count--;
  return node;
}

static cleave_status_t create_queue(queue_t *queue, uint32_t live_count, uint32_t bound,
                                    cleave_error_t *error) {
  queue->capacity = live_count + 1;
  queue->items = cleave_allocate(queue->capacity, sizeof *queue->items);
  queue->is_in = cleave_allocate_zeroed((size_t)bound + 1, sizeof *queue->is_in);
  if (live_count >= INT32_MAX) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "%u nodes are too many", live_count);
  }
  return queue->items != NULL && queue->is_in != NULL ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

static void destroy_queue(queue_t *queue) {
  cleave_free(queue->items);
  cleave_free(queue->is_in);
}

/* Takes over what the graph says of a value, except for symbolic dims of values that nodes make: names that
 * an exporter made up for them would stand in the way of expressions in the names of the inputs. */
static cleave_status_t load_fact(driver_t *driver, uint32_t index, cleave_error_t *error) {
  const cleave_value_record_t *record = &driver->graph->values.items[index];
  cleave_fact_t *fact = &driver->facts[index];
  fact->rank = record->rank;
  fact->dtype = record->dtype;
  fact->tensor = record->tensor;
  if (record->rank <= 0) {
    return CLEAVE_OK;
  }
  fact->dims = cleave_arena_copy(&driver->arena, record->dims, (size_t)record->rank * sizeof *fact->dims);
  CLEAVE_TRY_MEMORY(fact->dims, error);
  for (int32_t d = 0; record->producer != CLEAVE_INDEX_NONE && d < record->rank; d++) {
    if (cleave_dim_is_symbolic(fact->dims[d])) {
      fact->dims[d] = CLEAVE_DIM_UNKNOWN;
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t create(driver_t *driver, cleave_graph_t *graph, cleave_error_t *error) {
  uint32_t node_bound = cleave_graph_node_bound(graph);
  uint32_t value_bound = cleave_graph_value_bound(graph);
  uint32_t live_count = (uint32_t)graph->live_node_count;
  memset(driver, 0, sizeof *driver);
  driver->graph = graph;
  driver->facts = cleave_allocate_zeroed((size_t)value_bound + 1, sizeof *driver->facts);
  driver->order = cleave_allocate((size_t)live_count + 1, sizeof *driver->order);
  CLEAVE_TRY_MEMORY(driver->facts != NULL && driver->order != NULL, error);
  CLEAVE_TRY(create_queue(&driver->ready, live_count, node_bound, error));
  CLEAVE_TRY(create_queue(&driver->assumable, live_count, node_bound, error));
  CLEAVE_TRY(cleave_graph_topological_order(graph, driver->order, NULL, error));
  for (uint32_t v = 0; v < value_bound; v++) {
    driver->facts[v].rank = -1;
    if (!graph->values.items[v].is_removed) {
      CLEAVE_TRY(load_fact(driver, v, error));
    }
  }
  for (uint32_t k = 0; k < live_count; k++) {
    push(&driver->ready, driver->order[k].index);
  }
  return CLEAVE_OK;
}

static void destroy(driver_t *driver) {
  destroy_queue(&driver->ready);
  destroy_queue(&driver->assumable);
  cleave_free(driver->facts);
  cleave_free(driver->order);
  cleave_free(driver->ports);
  cleave_arena_deinit(&driver->arena);
}

/* Queues the nodes that a more precise value may bring further; the visited node itself if the news came
 * backwards. */
static void spread(driver_t *driver, cleave_value_t value, cleave_node_t visited, bool is_input) {
  const cleave_graph_t *graph = driver->graph;
  cleave_node_t producer = cleave_value_producer(graph, value);
  if (cleave_node_exists(producer) && (is_input || producer.index != visited.index)) {
    push(&driver->ready, producer.index);
  }
  for (cleave_use_t use = cleave_value_first_use(graph, value); cleave_use_exists(use);
       use = cleave_use_next(graph, use)) {
    cleave_node_t user = cleave_use_node(graph, use);
    if (cleave_node_exists(user)) {
      push(&driver->ready, user.index);
    }
  }
}

static void spread_changes(driver_t *driver, cleave_node_t node) {
  const cleave_graph_t *graph = driver->graph;
  uint32_t input_count = cleave_node_input_count(graph, node);
  uint32_t output_count = cleave_node_output_count(graph, node);
  for (uint32_t k = 0; k < input_count + output_count; k++) {
    bool is_input = k < input_count;
    cleave_value_t value =
        is_input ? cleave_node_input(graph, node, k) : cleave_node_output(graph, node, k - input_count);
    if (cleave_value_exists(value) && driver->facts[value.index].changed) {
      driver->facts[value.index].changed = false;
      spread(driver, value, node, is_input);
    }
  }
}

static cleave_status_t reserve_ports(driver_t *driver, size_t count, cleave_error_t *error) {
  if (count > driver->port_capacity) {
    cleave_fact_t **ports = cleave_reallocate(driver->ports, count * 2, sizeof *ports);
    CLEAVE_TRY_MEMORY(ports, error);
    driver->ports = ports;
    driver->port_capacity = count * 2;
  }
  return CLEAVE_OK;
}

static cleave_status_t visit(driver_t *driver, cleave_node_t node, bool assume, cleave_error_t *error) {
  const cleave_graph_t *graph = driver->graph;
  const cleave_op_t *op = cleave_node_op(graph, node);
  uint32_t input_count = cleave_node_input_count(graph, node);
  uint32_t output_count = cleave_node_output_count(graph, node);
  cleave_status_t (*infer_op)(cleave_infer_t *, cleave_error_t *) = cleave_op_functions(op)->infer;
  if (infer_op == NULL) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(reserve_ports(driver, (size_t)input_count + output_count + 1, error));
  for (uint32_t k = 0; k < input_count; k++) {
    cleave_value_t input = cleave_node_input(graph, node, k);
    driver->ports[k] = cleave_value_exists(input) ? &driver->facts[input.index] : NULL;
  }
  for (uint32_t k = 0; k < output_count; k++) {
    driver->ports[input_count + k] = &driver->facts[cleave_node_output(graph, node, k).index];
  }
  cleave_infer_t infer = {.graph = graph,
                          .node = node,
                          .op = op,
                          .inputs = driver->ports,
                          .outputs = driver->ports + input_count,
                          .input_count = input_count,
                          .output_count = output_count,
                          .dims = graph->dims,
                          .arena = &driver->arena,
                          .assume_equal = assume};
  CLEAVE_TRY(infer_op(&infer, error));
  if (driver->assumes && infer.wants_assumption && !assume) {
    push(&driver->assumable, node.index);
  }
  spread_changes(driver, node);
  return CLEAVE_OK;
}

static cleave_status_t run(driver_t *driver, cleave_error_t *error) {
  for (size_t k = 0; k < driver->graph->live_node_count; k++) {
    CLEAVE_TRY(cleave_op_check(driver->graph, driver->order[k], CLEAVE_ERROR_FORMAT, error));
  }
  while (driver->ready.count > 0 || driver->assumable.count > 0) {
    bool assume = driver->ready.count == 0;
    cleave_node_t node = {pop(assume ? &driver->assumable : &driver->ready)};
    CLEAVE_TRY(visit(driver, node, assume, error));
  }
  return CLEAVE_OK;
}

/* ---- results ---- */

/* A dim that came out unknown keeps the name that the graph had for it. */
static cleave_status_t store_fact(driver_t *driver, uint32_t index, cleave_error_t *error) {
  const cleave_value_record_t *record = &driver->graph->values.items[index];
  cleave_fact_t *fact = &driver->facts[index];
  for (int32_t d = 0; record->rank == fact->rank && d < fact->rank; d++) {
    if (fact->dims[d] == CLEAVE_DIM_UNKNOWN) {
      fact->dims[d] = record->dims[d];
    }
  }
  return cleave_graph_set_type(driver->graph, (cleave_value_t){index}, (cleave_dtype_t)fact->dtype,
                               fact->rank, fact->dims, error);
}

static void count_unknown(const cleave_graph_t *graph, cleave_value_t value, cleave_infer_result_t *result) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  bool is_known = record->dtype != CLEAVE_DTYPE_UNKNOWN && record->rank >= 0;
  for (int32_t d = 0; is_known && d < record->rank; d++) {
    is_known = record->dims[d] != CLEAVE_DIM_UNKNOWN;
  }
  if (!is_known) {
    if (result->unknown_count < sizeof result->unknown / sizeof *result->unknown) {
      result->unknown[result->unknown_count] = value;
    }
    result->unknown_count++;
  }
}

static void list_unknown(const driver_t *driver, cleave_infer_result_t *result) {
  const cleave_graph_t *graph = driver->graph;
  for (size_t k = 0; k < graph->inputs.count; k++) {
    count_unknown(graph, graph->inputs.items[k], result);
  }
  for (size_t k = 0; cleave_node_exists(driver->order[k]); k++) {
    cleave_node_t node = driver->order[k];
    for (uint32_t o = 0; cleave_node_is_live(graph, node) && o < cleave_node_output_count(graph, node); o++) {
      count_unknown(graph, cleave_node_output(graph, node, o), result);
    }
  }
}

cleave_status_t cleave_graph_infer(cleave_graph_t *graph, const cleave_infer_options_t *options,
                                   cleave_infer_result_t *out_result, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  cleave_infer_result_t result = {0};
  driver_t driver;
  CLEAVE_TRY_CLEANUP(create(&driver, graph, error));
  driver.assumes = options != NULL && options->assume_equal;
  CLEAVE_TRY_CLEANUP(run(&driver, error));
  for (uint32_t v = 0; v < cleave_graph_value_bound(graph); v++) {
    if (!graph->values.items[v].is_removed) {
      CLEAVE_TRY_CLEANUP(store_fact(&driver, v, error));
    }
  }
  driver.order[graph->live_node_count] = CLEAVE_NODE_NONE;
  if (options != NULL && options->fold) {
    CLEAVE_TRY_CLEANUP(fold_facts(graph, driver.order, driver.facts, &result.folded_count, error));
  }
  list_unknown(&driver, &result);
cleanup:
  destroy(&driver);
  if (status == CLEAVE_OK && out_result != NULL) {
    *out_result = result;
  }
  return status;
}

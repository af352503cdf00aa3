// SPDX-License-Identifier: Apache-2.0
// Inference of one node at run time: the same functions as for a graph, over facts of its own. Symbols are
// not used: the graph is only read, so that several sessions can ask at once.

#include <string.h>

#include "ops/context/infer_context.h"
#include "ops/infer/op_functions.h"

enum { PORTS_ON_STACK = 16 };

static void load_input(const cleave_node_type_t *type, cleave_fact_t *fact, cleave_dim_t *dims) {
  fact->rank = (int8_t)(type->rank < 0 ? -1 : type->rank);
  fact->dtype = (uint8_t)type->dtype;
  fact->tensor = type->tensor;
  fact->dims = dims;
  for (int32_t d = 0; d < type->rank; d++) {
    dims[d] = type->dims[d] < 0 ? CLEAVE_DIM_UNKNOWN : type->dims[d];
  }
}

/* The ports of a node, inputs before outputs: types of the caller, and facts to infer with. */
typedef struct ports {
  const cleave_node_type_t *const *inputs;
  uint32_t input_count;
  cleave_node_type_t *outputs;
  uint32_t output_count;
  cleave_fact_t *facts;
  cleave_fact_t **pointers;
  cleave_dim_t (*dims)[CLEAVE_MAX_RANK];
} ports_t;

static bool has_open_output(const cleave_infer_t *infer) {
  for (uint32_t k = 0; k < infer->output_count; k++) {
    const cleave_fact_t *output = infer->outputs[k];
    if (output->dtype == CLEAVE_DTYPE_UNKNOWN || cleave_fact_count(output) < 0) {
      return true;
    }
  }
  return false;
}

static cleave_status_t infer_ports(const cleave_graph_t *graph, cleave_node_t node, const ports_t *ports,
                                   cleave_error_t *error) {
  const cleave_op_t *op = cleave_node_op(graph, node);
  uint32_t input_count = ports->input_count;
  uint32_t output_count = ports->output_count;
  cleave_node_type_t *outputs = ports->outputs;
  cleave_arena_t arena = {0};
  for (uint32_t k = 0; k < input_count; k++) {
    ports->pointers[k] = NULL;
    if (ports->inputs[k] != NULL) {
      load_input(ports->inputs[k], &ports->facts[k], ports->dims[k]);
      ports->pointers[k] = &ports->facts[k];
    }
  }
  for (uint32_t k = 0; k < output_count; k++) {
    uint32_t port = input_count + k;
    ports->facts[port] = (cleave_fact_t){.rank = -1, .dims = outputs[k].dims};
    ports->pointers[port] = &ports->facts[port];
  }
  cleave_infer_t infer = {.graph = graph,
                          .node = node,
                          .op = op,
                          .inputs = ports->pointers,
                          .outputs = ports->pointers + input_count,
                          .input_count = input_count,
                          .output_count = output_count,
                          .arena = &arena};
  cleave_status_t (*infer_op)(cleave_infer_t *, cleave_error_t *) = cleave_op_functions(op)->infer;
  cleave_status_t status = infer_op(&infer, error);
  if (status == CLEAVE_OK && has_open_output(&infer)) { /* what was stated last may bring more */
    status = infer_op(&infer, error);
  }
  for (uint32_t k = 0; k < output_count; k++) {
    outputs[k].dtype = (cleave_dtype_t)ports->facts[input_count + k].dtype;
    outputs[k].rank = ports->facts[input_count + k].rank;
    outputs[k].tensor = NULL;
  }
  cleave_arena_deinit(&arena);
  return status;
}

cleave_status_t cleave_node_infer(const cleave_graph_t *graph, cleave_node_t node,
                                  const cleave_node_type_t *const *inputs, uint32_t input_count,
                                  cleave_node_type_t *outputs, uint32_t output_count, cleave_error_t *error) {
  cleave_fact_t facts[PORTS_ON_STACK];
  cleave_fact_t *pointers[PORTS_ON_STACK];
  cleave_dim_t dims[PORTS_ON_STACK][CLEAVE_MAX_RANK];
  if (cleave_op_functions(cleave_node_op(graph, node))->infer == NULL) {
    for (uint32_t k = 0; k < output_count; k++) {
      outputs[k] = (cleave_node_type_t){.rank = -1};
    }
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_op_check(graph, node, CLEAVE_ERROR_FORMAT, error));
  size_t count = (size_t)input_count + output_count;
  if (count <= PORTS_ON_STACK) {
    memset(facts, 0, sizeof facts);
    ports_t ports = {inputs, input_count, outputs, output_count, facts, pointers, dims};
    return infer_ports(graph, node, &ports, error);
  }
  ports_t ports = {inputs,
                   input_count,
                   outputs,
                   output_count,
                   cleave_allocate_zeroed(count, sizeof *ports.facts),
                   cleave_allocate_zeroed(count, sizeof *ports.pointers),
                   cleave_allocate_zeroed(count, sizeof *ports.dims)};
  cleave_status_t status = CLEAVE_OK;
  if (ports.facts != NULL && ports.pointers != NULL && ports.dims != NULL) {
    status = infer_ports(graph, node, &ports, error);
  } else {
    status = cleave_error_out_of_memory(error);
  }
  cleave_free(ports.facts);
  cleave_free(ports.pointers);
  cleave_free(ports.dims);
  return status;
}

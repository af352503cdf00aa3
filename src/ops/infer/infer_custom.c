// SPDX-License-Identifier: Apache-2.0
// Inference through a library: the node and what is known of its inputs as a region of one node, and the
// answer taken apart. Open sizes are shown as the negative numbers that cleave has for them, so that a size
// which the library copies from an input keeps its name. Answers are checked before anything is stated.

#include "ops/attribute_view.h"
#include "ops/context/infer_context.h"
#include "ops/custom.h"

typedef struct asking {
  cleave_infer_t *infer;
  cleave_arena_t arena;
  cleave_region_view_t region;
  cleave_node_view_t node;
  cleave_value_view_t *values;
  uint32_t *ports; /* inputs, then outputs */
  uint32_t *inputs;
  uint32_t *outputs;
  cleave_tensor_view_t *answers;
  int64_t (*dims)[CLEAVE_MAX_RANK];
} asking_t;

static uint32_t add_value(asking_t *asking, cleave_value_t value) {
  uint32_t index = asking->region.value_count++;
  asking->values[index] = (cleave_value_view_t){.size = sizeof *asking->values,
                                                .name = cleave_value_name(asking->infer->graph, value),
                                                .producer = CLEAVE_INDEX_NONE};
  return index;
}

static cleave_tensor_view_t view_fact(const cleave_fact_t *fact) {
  cleave_tensor_view_t view = {
      .size = sizeof view, .dtype = (cleave_dtype_t)fact->dtype, .rank = fact->rank, .dims = fact->dims};
  if (fact->tensor != NULL) {
    view = cleave_tensor_view(fact->tensor);
    view.is_weight = true;
  }
  return view;
}

static void view_inputs(asking_t *asking) {
  const cleave_infer_t *infer = asking->infer;
  for (uint32_t k = 0; k < infer->input_count; k++) {
    asking->ports[k] = CLEAVE_INDEX_NONE;
    for (uint32_t n = 0; infer->inputs[k] != NULL && n < k; n++) {
      asking->ports[k] = infer->inputs[n] == infer->inputs[k] ? asking->ports[n] : asking->ports[k];
    }
    if (infer->inputs[k] != NULL && asking->ports[k] == CLEAVE_INDEX_NONE) {
      asking->ports[k] = add_value(asking, cleave_node_input(infer->graph, infer->node, k));
      asking->values[asking->ports[k]].tensor = view_fact(infer->inputs[k]);
      asking->inputs[asking->region.input_count++] = asking->ports[k];
    }
  }
}

static void view_outputs(asking_t *asking) {
  const cleave_infer_t *infer = asking->infer;
  for (uint32_t k = 0; k < infer->output_count; k++) {
    uint32_t index = add_value(asking, cleave_node_output(infer->graph, infer->node, k));
    asking->ports[infer->input_count + k] = index;
    asking->outputs[asking->region.output_count++] = index;
    asking->values[index].producer = 0;
    asking->values[index].is_output = true;
    asking->values[index].tensor = (cleave_tensor_view_t){.size = sizeof(cleave_tensor_view_t), .rank = -1};
    asking->answers[k] =
        (cleave_tensor_view_t){.size = sizeof *asking->answers, .rank = -1, .dims = asking->dims[k]};
    for (int32_t d = 0; d < CLEAVE_MAX_RANK; d++) {
      asking->dims[k][d] = CLEAVE_DIM_UNKNOWN;
    }
  }
}

static cleave_status_t make_view(asking_t *asking, cleave_error_t *error) {
  const cleave_infer_t *infer = asking->infer;
  cleave_arena_t *arena = &asking->arena;
  uint32_t port_count = infer->input_count + infer->output_count;
  asking->values = cleave_arena_allocate(arena, port_count, sizeof *asking->values);
  asking->ports = cleave_arena_allocate(arena, port_count, sizeof *asking->ports);
  asking->inputs = cleave_arena_allocate(arena, infer->input_count, sizeof *asking->inputs);
  asking->outputs = cleave_arena_allocate(arena, infer->output_count, sizeof *asking->outputs);
  asking->answers = cleave_arena_allocate(arena, infer->output_count, sizeof *asking->answers);
  asking->dims = cleave_arena_allocate(arena, infer->output_count, sizeof *asking->dims);
  CLEAVE_TRY_MEMORY(asking->values != NULL && asking->ports != NULL && asking->inputs != NULL &&
                        asking->outputs != NULL && asking->answers != NULL && asking->dims != NULL,
                    error);
  view_inputs(asking);
  view_outputs(asking);
  asking->node = (cleave_node_view_t){.size = sizeof asking->node,
                                      .op = infer->op->name,
                                      .domain = infer->op->domain,
                                      .name = cleave_node_name(infer->graph, infer->node),
                                      .opset_version = infer->op->since_version,
                                      .input_count = infer->input_count,
                                      .output_count = infer->output_count,
                                      .inputs = asking->ports,
                                      .outputs = asking->ports + infer->input_count,
                                      .fusion = CLEAVE_INDEX_NONE};
  asking->region.size = sizeof asking->region;
  asking->region.name = asking->node.name;
  asking->region.rule = "";
  asking->region.node_count = 1;
  asking->region.values = asking->values;
  asking->region.nodes = &asking->node;
  asking->region.inputs = asking->inputs;
  asking->region.outputs = asking->outputs;
  cleave_attribute_view_t *attributes = NULL;
  CLEAVE_TRY(cleave_attribute_views(infer->graph, infer->node, arena, &attributes,
                                    &asking->node.attribute_count, error));
  asking->node.attributes = attributes;
  return CLEAVE_OK;
}

/* A negative size is a name if an input has it, and otherwise not known. */
static cleave_dim_t read_dim(const cleave_infer_t *infer, int64_t dim) {
  if (dim >= 0) {
    return dim;
  }
  for (uint32_t k = 0; k < infer->input_count; k++) {
    for (int32_t d = 0; d < cleave_fact_rank(infer->inputs[k]); d++) {
      if (infer->inputs[k]->dims[d] == dim) {
        return dim;
      }
    }
  }
  return CLEAVE_DIM_UNKNOWN;
}

static cleave_status_t state_output(const asking_t *asking, uint32_t index, cleave_error_t *error) {
  cleave_infer_t *infer = asking->infer;
  const cleave_tensor_view_t *answer = &asking->answers[index];
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  uint32_t last = infer->op->output_count - 1;
  const char *name = infer->op->outputs[index < last ? index : last].name;
  if (answer->dtype != CLEAVE_DTYPE_UNKNOWN && !cleave_dtype_is_valid((int)answer->dtype)) {
    return cleave_infer_fail(infer, error, "the library gave output '%s' the dtype %d, which does not exist",
                             name, (int)answer->dtype);
  }
  if (answer->rank < -1 || answer->rank > CLEAVE_MAX_RANK) {
    return cleave_infer_fail(infer, error, "the library gave output '%s' the rank %d, expected at most %d",
                             name, (int)answer->rank, CLEAVE_MAX_RANK);
  }
  for (int32_t d = 0; d < answer->rank; d++) {
    dims[d] = read_dim(infer, asking->dims[index][d]);
  }
  CLEAVE_TRY(cleave_infer_set_dtype(infer, infer->outputs[index], answer->dtype, error));
  return cleave_infer_set_shape(infer, infer->outputs[index], answer->rank, dims, error);
}

static cleave_status_t ask(asking_t *asking, const cleave_custom_operator_t *definition,
                           cleave_error_t *error) {
  cleave_infer_t *infer = asking->infer;
  cleave_message_t message = {.text = ""};
  CLEAVE_TRY(make_view(asking, error));
  cleave_status_t status =
      definition->infer(definition->self, &asking->region, asking->answers, asking->dims, &message);
  message.text[sizeof message.text - 1] = '\0';
  if (status == CLEAVE_ERROR_OUT_OF_MEMORY) {
    return cleave_error_set(error, status, "library '%s': 'infer' of operator '%s.%s': %s",
                            cleave_custom_op_library(infer->op), infer->op->domain, infer->op->name,
                            message.text[0] != '\0' ? message.text : cleave_status_text(status));
  }
  if (status != CLEAVE_OK) {
    return cleave_infer_fail(infer, error, "%s", message.text[0] != '\0' ? message.text : "no reason given");
  }
  for (uint32_t k = 0; k < infer->output_count; k++) {
    CLEAVE_TRY(state_output(asking, k, error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_custom(cleave_infer_t *infer, cleave_error_t *error) {
  const cleave_custom_operator_t *definition =
      cleave_custom_op_definition(infer->op, infer->graph->context, NULL);
  if (definition == NULL) {
    return cleave_custom_op_fail(infer->op, error);
  }
  asking_t asking = {.infer = infer};
  cleave_status_t status = ask(&asking, definition, error);
  cleave_arena_deinit(&asking.arena);
  return status;
}

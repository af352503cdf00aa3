// SPDX-License-Identifier: Apache-2.0
/*
 * From parsed records to a graph. A node is added once all its inputs are defined, in the order of the file
 * if that is topological; nodes that come too early wait at the first name they lack.
 * Long file: one pass over the records, in the order in which it runs.
 */
#include <string.h>

#include "formats/onnx/read/onnx_build.h"
#include "formats/onnx/read/onnx_maker.h"
#include "ops/custom.h"
#include "ops/infer/op_functions.h"
#include "ops/ops.h"

/* A node that waits for a value; a list per name. */
typedef struct waiter {
  uint32_t node;
  uint32_t next;
} waiter_t;

typedef struct reader {
  cleave_onnx_builder_t builder;
  cleave_onnx_call_t call; /* of the node at hand; its arrays are used again */
  uint32_t *infos;         /* by string id: index in value_infos, or NONE */
  bool *is_symbol;         /* by string id: names a dimension of an input */
  uint32_t *waiting;       /* by string id: first waiter, or NONE */
  CLEAVE_ARRAY(waiter_t) waiters;
  CLEAVE_ARRAY(uint32_t) ready; /* nodes whose last missing value came; a queue */
  size_t ready_head;
  cleave_value_t *conditions; /* by node: see cleave_onnx_build_partly; NULL: the whole model */
} reader_t;

static const char *name_of(const reader_t *reader, cleave_string_t name) {
  return cleave_strings_text(&reader->builder.graph->strings, name);
}

static cleave_status_t define(reader_t *reader, cleave_string_t name, cleave_value_t value,
                              cleave_error_t *error) {
  if (cleave_value_exists(reader->builder.values[name.index])) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "value '%s' is defined twice", name_of(reader, name));
  }
  reader->builder.values[name.index] = value;
  return CLEAVE_OK;
}

/* The type that the file declares for a value. Symbols are taken if `all_symbols`, or if an input has
 * them: exporters give fresh symbols to what they could not infer. */
static cleave_status_t set_declared_type(reader_t *reader, cleave_value_t value,
                                         const cleave_onnx_value_info_t *info, bool all_symbols,
                                         cleave_error_t *error) {
  cleave_graph_t *graph = reader->builder.graph;
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  for (int32_t d = 0; d < info->rank; d++) {
    const cleave_onnx_dim_t *dim = &info->dims[d];
    dims[d] = dim->size;
    if (dim->size < 0 && dim->symbol.index != 0 && (all_symbols || reader->is_symbol[dim->symbol.index])) {
      const char *symbol = name_of(reader, dim->symbol);
      dims[d] = cleave_dims_symbol(graph->dims, symbol, strlen(symbol));
    }
  }
  return cleave_graph_set_type(graph, value, (cleave_dtype_t)info->element_type, info->rank, dims, error);
}

static cleave_status_t check_info(const reader_t *reader, const char *what,
                                  const cleave_onnx_value_info_t *info, cleave_error_t *error) {
  const char *name = name_of(reader, info->name);
  if (info->kind != NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "%s '%s' is %s: not supported", what, name,
                            info->kind);
  }
  if (info->element_type != 0 && !cleave_dtype_is_valid(info->element_type)) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                            "%s '%s' has element type %lld (%s): not supported", what, name,
                            (long long)info->element_type, cleave_onnx_element_type_name(info->element_type));
  }
  if (info->rank > CLEAVE_MAX_RANK) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "%s '%s' has more than %d dimensions", what,
                            name, CLEAVE_MAX_RANK);
  }
  return CLEAVE_OK;
}

static bool is_listed(const reader_t *reader, const char *name) {
  const cleave_onnx_model_t *model = reader->builder.model;
  for (size_t k = 0; k < model->inputs.count; k++) {
    if (strcmp(name_of(reader, model->inputs.items[k].name), name) == 0) {
      return true;
    }
  }
  return false;
}

/* Is it an input, in spite of its initializer: was it asked to stay one, or to have another value? */
static bool is_opened(const reader_t *reader, cleave_string_t name) {
  const cleave_onnx_read_options_t *options = reader->builder.model->options;
  const char *text = name_of(reader, name);
  for (size_t k = 0; k < options->open_input_count; k++) {
    if (strcmp(options->open_inputs[k], text) == 0) {
      return true;
    }
  }
  for (size_t k = 0; k < options->fixed_input_count; k++) {
    if (strcmp(options->fixed_inputs[k].name, text) == 0) {
      return is_listed(reader, text);
    }
  }
  return false;
}

/* Only what the file lists as an input may be one. */
static cleave_status_t check_opened(const reader_t *reader, cleave_error_t *error) {
  const cleave_onnx_read_options_t *options = reader->builder.model->options;
  for (size_t k = 0; k < options->open_input_count; k++) {
    if (!is_listed(reader, options->open_inputs[k])) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "the file has no input '%s'",
                              options->open_inputs[k]);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t add_constants(reader_t *reader, cleave_error_t *error) {
  const cleave_onnx_model_t *model = reader->builder.model;
  for (size_t k = 0; k < model->initializers.count; k++) {
    const cleave_onnx_initializer_t *initializer = &model->initializers.items[k];
    cleave_value_t value;
    if (initializer->name.index == 0) {
      return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "initializer %zu has no name", k);
    }
    if (is_opened(reader, initializer->name)) {
      continue;
    }
    CLEAVE_TRY(cleave_graph_add_constant(reader->builder.graph, name_of(reader, initializer->name),
                                         initializer->tensor, &value, error));
    CLEAVE_TRY(define(reader, initializer->name, value, error));
  }
  return CLEAVE_OK;
}

static cleave_status_t add_inputs(reader_t *reader, cleave_error_t *error) {
  const cleave_onnx_model_t *model = reader->builder.model;
  cleave_graph_t *graph = reader->builder.graph;
  graph->default_inputs =
      cleave_arena_allocate(&graph->arena, model->initializers.count + 1, sizeof *graph->default_inputs);
  CLEAVE_TRY_MEMORY(graph->default_inputs, error);
  for (size_t k = 0; k < model->inputs.count; k++) {
    const cleave_onnx_value_info_t *info = &model->inputs.items[k];
    cleave_value_t known = reader->builder.values[info->name.index];
    cleave_value_t value;
    if (info->name.index == 0) {
      return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "input %zu has no name", k);
    }
    if (cleave_value_exists(known) && cleave_value_is_constant(graph, known)) {
      if (graph->default_input_count < model->initializers.count) { /* else one is listed twice */
        graph->default_inputs[graph->default_input_count++] = info->name;
      }
      continue;
    }
    CLEAVE_TRY(check_info(reader, "input", info, error));
    CLEAVE_TRY(cleave_graph_add_input(graph, name_of(reader, info->name), CLEAVE_DTYPE_UNKNOWN, -1, NULL,
                                      &value, error));
    CLEAVE_TRY(define(reader, info->name, value, error));
    CLEAVE_TRY(set_declared_type(reader, value, info, true, error));
    for (int32_t d = 0; d < info->rank; d++) {
      reader->is_symbol[info->dims[d].symbol.index] = true;
    }
  }
  return CLEAVE_OK;
}

/* Takes over the declared type of an output if its operator cannot infer it, because nothing else is known.
 * Of others it takes the dtype alone: their shapes are judged once inference has its own. */
static cleave_status_t set_output_type(reader_t *reader, cleave_value_t value,
                                       const cleave_onnx_value_info_t *info, cleave_error_t *error) {
  cleave_graph_t *graph = reader->builder.graph;
  if (cleave_op_functions(cleave_node_op(graph, cleave_value_producer(graph, value)))->infer == NULL) {
    return set_declared_type(reader, value, info, false, error);
  }
  return cleave_graph_set_type(graph, value, (cleave_dtype_t)info->element_type, -1, NULL, error);
}

/* Keeps the declared shape of output `index`, its sizes alone. */
static cleave_status_t keep_declared(reader_t *reader, size_t index, const cleave_onnx_value_info_t *info,
                                     cleave_error_t *error) {
  cleave_declared_shape_t *shape = &reader->builder.graph->declared[index];
  shape->rank = info->rank;
  shape->dims =
      cleave_arena_allocate(&reader->builder.graph->arena, (size_t)info->rank + 1, sizeof *shape->dims);
  CLEAVE_TRY_MEMORY(shape->dims, error);
  for (int32_t d = 0; d < info->rank; d++) {
    shape->dims[d] = info->dims[d].size >= 0 ? info->dims[d].size : CLEAVE_DIM_UNKNOWN;
  }
  return CLEAVE_OK;
}

static cleave_status_t add_outputs(reader_t *reader, cleave_error_t *error) {
  const cleave_onnx_model_t *model = reader->builder.model;
  cleave_graph_t *graph = reader->builder.graph;
  if (!model->options->lenient) {
    graph->declared = cleave_arena_allocate(&graph->arena, model->outputs.count + 1, sizeof *graph->declared);
    CLEAVE_TRY_MEMORY(graph->declared, error);
  }
  for (size_t k = 0; k < model->outputs.count; k++) {
    const cleave_onnx_value_info_t *info = &model->outputs.items[k];
    cleave_value_t value = reader->builder.values[info->name.index];
    if (info->name.index == 0 || !cleave_value_exists(value)) {
      return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "output '%s' is not defined",
                              name_of(reader, info->name));
    }
    CLEAVE_TRY(check_info(reader, "output", info, error));
    const cleave_value_record_t *record = cleave_graph_value(graph, value);
    if (!record->is_input && record->tensor == NULL && record->rank < 0) {
      CLEAVE_TRY(set_output_type(reader, value, info, error));
    }
    if (graph->declared != NULL) {
      CLEAVE_TRY(keep_declared(reader, k, info, error));
    }
    CLEAVE_TRY(cleave_graph_add_output(graph, name_of(reader, info->name), value, error));
  }
  return CLEAVE_OK;
}

/* ---- nodes ---- */

const cleave_onnx_attribute_t *cleave_onnx_find_graph(const cleave_onnx_node_t *node) {
  for (uint32_t k = 0; k < node->attribute_count; k++) {
    if (node->attributes[k].is_graph) {
      return &node->attributes[k];
    }
  }
  return NULL;
}

static cleave_status_t start_call(reader_t *reader, const cleave_onnx_node_t *node, cleave_error_t *error) {
  cleave_onnx_call_t *call = &reader->call;
  call->builder = &reader->builder;
  call->node = node;
  call->op_type = node->op_type;
  call->version = node->version;
  call->is_done = false;
  call->output_count = node->output_count;
  call->inputs.count = 0;
  call->attributes.count = 0;
  for (uint32_t k = 0; k < node->input_count; k++) {
    uint32_t name = node->inputs[k].index;
    CLEAVE_ARRAY_PUSH(&call->inputs, name == 0 ? CLEAVE_VALUE_NONE : reader->builder.values[name], error);
  }
  for (uint32_t k = 0; k < node->attribute_count; k++) {
    const cleave_onnx_attribute_t *attribute = &node->attributes[k];
    if (attribute->reference != NULL) {
      return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                              "node '%s': attribute '%s' refers to an attribute outside of a function",
                              node->label, attribute->value.name);
    }
    if (!attribute->is_empty) {
      CLEAVE_ARRAY_PUSH(&call->attributes, attribute->value, error);
    }
  }
  return CLEAVE_OK;
}

/* Newer operator sets than ours: an attribute that our schema lacks may change the meaning. */
static cleave_status_t check_newer(const cleave_onnx_call_t *call, const cleave_op_t *op,
                                   cleave_error_t *error) {
  for (size_t k = 0; k < call->attributes.count; k++) {
    const char *name = call->attributes.items[k].name;
    if (cleave_op_find_attribute(op, name) == NULL) {
      return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                              "node '%s': operator '%s' of opset %d: attribute '%s' is not known (opsets up "
                              "to %d are)",
                              call->node->label, call->node->op_type, (int)call->version, name,
                              (int)CLEAVE_ONNX_CANONICAL_OPSET);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t name_outputs(reader_t *reader, cleave_node_t node, cleave_error_t *error) {
  cleave_graph_t *graph = reader->builder.graph;
  const cleave_onnx_node_t *source = reader->call.node;
  bool is_opaque = cleave_op_functions(cleave_node_op(graph, node))->infer == NULL;
  uint32_t count = cleave_node_output_count(graph, node);
  for (uint32_t k = 0; k < count && k < source->output_count; k++) {
    cleave_string_t name = source->outputs[k];
    if (name.index == 0) {
      continue;
    }
    cleave_value_t value = cleave_node_output(graph, node, k);
    CLEAVE_TRY(define(reader, name, value, error));
    CLEAVE_TRY(cleave_graph_set_value_name(graph, value, name_of(reader, name), error));
    uint32_t info = is_opaque ? reader->infos[name.index] : CLEAVE_INDEX_NONE;
    if (info != CLEAVE_INDEX_NONE) {
      CLEAVE_TRY(
          set_declared_type(reader, value, &reader->builder.model->value_infos.items[info], false, error));
    }
  }
  return CLEAVE_OK;
}

/* Outputs left out at the end are not made, unless their number means something (Split). */
static uint32_t count_outputs(const cleave_onnx_call_t *call, const cleave_op_t *op) {
  uint32_t count = call->output_count;
  bool is_variadic =
      op->output_count > 0 && op->outputs[op->output_count - 1].kind == CLEAVE_OP_INPUT_VARIADIC;
  if (cleave_op_has_schema(op) && !is_variadic) {
    while (count > 1 && call->node->outputs[count - 1].index == 0) {
      count--;
    }
  }
  return count;
}

static cleave_status_t add_call(reader_t *reader, cleave_error_t *error) {
  cleave_onnx_call_t *call = &reader->call;
  cleave_graph_t *graph = reader->builder.graph;
  const cleave_op_t *op = cleave_op_find(call->node->domain, call->op_type);
  if (op == NULL) {
    CLEAVE_TRY(cleave_graph_custom_op(graph, call->node->domain, call->op_type,
                                      call->version > 0 ? call->version : 1, &op, error));
  } else if (op->domain[0] == '\0' && call->version > CLEAVE_ONNX_CANONICAL_OPSET) {
    CLEAVE_TRY(check_newer(call, op, error));
  } else if (call->version > 0) {
    cleave_error_t reason = CLEAVE_ERROR_INIT;
    cleave_status_t status = cleave_custom_op_check_version(op, call->version, &reason);
    if (status != CLEAVE_OK) {
      return cleave_error_set(error, status, "node '%s': %s", call->node->label, reason.message);
    }
  }
  while (call->inputs.count > 0 && !cleave_value_exists(call->inputs.items[call->inputs.count - 1])) {
    call->inputs.count--;
  }
  cleave_node_t node;
  CLEAVE_TRY(cleave_graph_add_node(graph, op, call->node->name, call->inputs.items, call->inputs.count,
                                   count_outputs(call, op), &node, error));
  for (size_t k = 0; k < call->attributes.count; k++) {
    CLEAVE_TRY(cleave_graph_set_attribute(graph, node, &call->attributes.items[k], error));
  }
  CLEAVE_TRY(cleave_op_check(graph, node, CLEAVE_ERROR_FORMAT, error));
  CLEAVE_TRY(name_outputs(reader, node, error));
  return cleave_onnx_builder_infer(&reader->builder, node, error);
}

/* Nodes that waited for a name become ready when it was the last one they lacked. */
static cleave_status_t wake(reader_t *reader, cleave_string_t name, uint32_t *missing,
                            cleave_error_t *error) {
  uint32_t waiter = reader->waiting[name.index];
  reader->waiting[name.index] = CLEAVE_INDEX_NONE;
  for (; waiter != CLEAVE_INDEX_NONE; waiter = reader->waiters.items[waiter].next) {
    uint32_t node = reader->waiters.items[waiter].node;
    if (--missing[node] == 0) {
      CLEAVE_ARRAY_PUSH(&reader->ready, node, error);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t add_node(reader_t *reader, uint32_t index, uint32_t *missing, cleave_error_t *error) {
  const cleave_onnx_node_t *node = &reader->builder.model->nodes.items[index];
  if (node->domain[0] == '\0' && node->version == 0) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                            "node '%s': the model imports no operator set for operator '%s'", node->label,
                            node->op_type);
  }
  for (uint32_t k = 0; k < node->output_count; k++) {
    if (node->outputs[k].index != 0 && cleave_value_exists(reader->builder.values[node->outputs[k].index])) {
      return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "node '%s': value '%s' is defined twice",
                              node->label, name_of(reader, node->outputs[k]));
    }
  }
  if (reader->conditions != NULL && cleave_onnx_find_graph(node) != NULL) {
    cleave_value_t *condition = &reader->conditions[index];
    *condition = node->input_count > 0 ? reader->builder.values[node->inputs[0].index] : CLEAVE_VALUE_NONE;
    return CLEAVE_OK;
  }
  CLEAVE_TRY(start_call(reader, node, error));
  CLEAVE_TRY(cleave_onnx_canonicalise(&reader->call, error));
  if (!reader->call.is_done) {
    CLEAVE_TRY(add_call(reader, error));
  }
  for (uint32_t k = 0; k < node->output_count; k++) {
    CLEAVE_TRY(wake(reader, node->outputs[k], missing, error));
  }
  return CLEAVE_OK;
}

/* Registers the node with every name it lacks; returns how many. */
static cleave_status_t wait_for_inputs(reader_t *reader, uint32_t index, uint32_t *out_missing,
                                       cleave_error_t *error) {
  const cleave_onnx_node_t *node = &reader->builder.model->nodes.items[index];
  *out_missing = 0;
  for (uint32_t k = 0; k < node->input_count; k++) {
    uint32_t name = node->inputs[k].index;
    if (name != 0 && !cleave_value_exists(reader->builder.values[name])) {
      waiter_t waiter = {.node = index, .next = reader->waiting[name]};
      CLEAVE_ARRAY_PUSH(&reader->waiters, waiter, error);
      reader->waiting[name] = (uint32_t)reader->waiters.count - 1;
      ++*out_missing;
    }
  }
  return CLEAVE_OK;
}

/* Some nodes never became ready: says which value nothing defines, or that there is a cycle. */
static cleave_status_t explain_missing(const reader_t *reader, const uint32_t *missing, bool *is_produced,
                                       cleave_error_t *error) {
  const cleave_onnx_model_t *model = reader->builder.model;
  const cleave_onnx_node_t *stuck = NULL;
  for (size_t k = 0; k < model->nodes.count; k++) {
    for (uint32_t o = 0; missing[k] > 0 && o < model->nodes.items[k].output_count; o++) {
      is_produced[model->nodes.items[k].outputs[o].index] = true;
    }
  }
  for (size_t k = 0; k < model->nodes.count; k++) {
    const cleave_onnx_node_t *node = &model->nodes.items[k];
    for (uint32_t i = 0; missing[k] > 0 && i < node->input_count; i++) {
      uint32_t name = node->inputs[i].index;
      if (name != 0 && !cleave_value_exists(reader->builder.values[name]) && !is_produced[name]) {
        return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                                "node '%s': operator '%s' reads value '%s', which is not defined",
                                node->label, node->op_type, name_of(reader, node->inputs[i]));
      }
    }
    stuck = stuck == NULL && missing[k] > 0 ? node : stuck;
  }
  return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "node '%s': operator '%s' depends on its own output",
                          stuck != NULL ? stuck->label : "", stuck != NULL ? stuck->op_type : "");
}

static cleave_status_t add_nodes(reader_t *reader, cleave_error_t *error) {
  size_t count = reader->builder.model->nodes.count;
  if (count > UINT32_MAX - 1) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "the model has too many nodes (2^32)");
  }
  uint32_t *missing = cleave_allocate_zeroed(count, sizeof *missing);
  bool *is_produced = cleave_allocate_zeroed(reader->builder.name_count, sizeof *is_produced);
  cleave_status_t status = CLEAVE_OK;
  size_t added = 0;
  CLEAVE_TRY_MEMORY_CLEANUP(missing != NULL && is_produced != NULL, error);
  for (uint32_t k = 0; k < count; k++) {
    CLEAVE_TRY_CLEANUP(wait_for_inputs(reader, k, &missing[k], error));
    if (missing[k] == 0) {
      CLEAVE_TRY_CLEANUP(add_node(reader, k, missing, error));
      added++;
    }
    while (reader->ready_head < reader->ready.count) {
      CLEAVE_TRY_CLEANUP(add_node(reader, reader->ready.items[reader->ready_head++], missing, error));
      added++;
    }
  }
  if (added < count && reader->conditions == NULL) {
    status = explain_missing(reader, missing, is_produced, error);
  }
cleanup:
  cleave_free(missing);
  cleave_free(is_produced);
  return status;
}

/* Old forms, and operators of other sets, depend on ranks and dtypes. */
static bool needs_types(const cleave_onnx_node_t *node) {
  return (node->domain[0] == '\0' && (node->version < 13 || strcmp(node->op_type, "RotaryEmbedding") == 0)) ||
         cleave_onnx_find_microsoft(node) != NULL;
}

static void mark_used(reader_t *reader) {
  const cleave_onnx_model_t *model = reader->builder.model;
  for (size_t k = 0; k < model->nodes.count; k++) {
    const cleave_onnx_node_t *node = &model->nodes.items[k];
    for (uint32_t i = 0; i < node->input_count; i++) {
      reader->builder.is_used[node->inputs[i].index] = true;
    }
    reader->builder.wants_types |= needs_types(node);
  }
  for (size_t k = 0; k < model->outputs.count; k++) {
    reader->builder.is_used[model->outputs.items[k].name.index] = true;
  }
  for (size_t k = 0; k < model->value_infos.count; k++) {
    const cleave_onnx_value_info_t *info = &model->value_infos.items[k];
    if (info->kind == NULL && cleave_dtype_is_valid(info->element_type) && info->rank <= CLEAVE_MAX_RANK) {
      reader->infos[info->name.index] = (uint32_t)k;
    }
  }
}

static cleave_status_t build(reader_t *reader, cleave_error_t *error) {
  cleave_graph_t *graph = reader->builder.graph;
  const cleave_onnx_model_t *model = reader->builder.model;
  mark_used(reader);
  CLEAVE_TRY(check_opened(reader, error));
  CLEAVE_TRY(add_constants(reader, error));
  CLEAVE_TRY(add_inputs(reader, error));
  CLEAVE_TRY(
      cleave_graph_fix_inputs(graph, model->options->fixed_inputs, model->options->fixed_input_count, error));
  CLEAVE_TRY(add_nodes(reader, error));
  if (reader->conditions != NULL) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(add_outputs(reader, error));
  int32_t version = cleave_onnx_opset_version(&model->opsets, "");
  graph->opset_version = version > 0 ? version : graph->opset_version;
  graph->ir_version = model->ir_version;
  graph->newer_version = model->newer_version;
  return cleave_strings_add(&graph->strings, model->graph_name, strlen(model->graph_name), &graph->name,
                            error);
}

/* Names that come later are of no interest: all names of the file are interned by now. */
static cleave_status_t read_model(cleave_onnx_model_t *model, cleave_value_t *conditions,
                                  cleave_error_t *error) {
  size_t count = (size_t)model->graph->strings.count + 1;
  reader_t reader = {.builder = {.model = model, .graph = model->graph, .name_count = count},
                     .conditions = conditions};
  cleave_status_t status = CLEAVE_OK;
  reader.builder.values = cleave_allocate(count, sizeof *reader.builder.values);
  reader.builder.is_used = cleave_allocate_zeroed(count, sizeof *reader.builder.is_used);
  reader.infos = cleave_allocate(count, sizeof *reader.infos);
  reader.waiting = cleave_allocate(count, sizeof *reader.waiting);
  reader.is_symbol = cleave_allocate_zeroed(count, sizeof *reader.is_symbol);
  CLEAVE_TRY_MEMORY_CLEANUP(reader.builder.values != NULL && reader.builder.is_used != NULL &&
                                reader.infos != NULL && reader.waiting != NULL && reader.is_symbol != NULL,
                            error);
  memset(reader.builder.values, 0xff, count * sizeof *reader.builder.values);
  memset(reader.infos, 0xff, count * sizeof *reader.infos);
  memset(reader.waiting, 0xff, count * sizeof *reader.waiting);
  status = build(&reader, error);
cleanup:
  cleave_free(reader.builder.values);
  cleave_free(reader.builder.is_used);
  cleave_free(reader.infos);
  cleave_free(reader.waiting);
  cleave_free(reader.is_symbol);
  cleave_array_free(&reader.waiters);
  cleave_array_free(&reader.ready);
  cleave_array_free(&reader.call.inputs);
  cleave_array_free(&reader.call.attributes);
  return status;
}

cleave_status_t cleave_onnx_build(cleave_onnx_model_t *model, cleave_error_t *error) {
  return read_model(model, NULL, error);
}

cleave_status_t cleave_onnx_build_partly(cleave_onnx_model_t *model, cleave_value_t *conditions,
                                         cleave_error_t *error) {
  return read_model(model, conditions, error);
}

// SPDX-License-Identifier: Apache-2.0
#include "imperative/compile.h"

#include <stdio.h>
#include <string.h>

#include "backend/registry/context.h"
#include "ops/infer.h"
#include "runtime/model/model.h"

void imperative_operator_release(imperative_operator_t *compiled) {
  if (compiled == NULL || atomic_fetch_sub_explicit(&compiled->references, 1, memory_order_acq_rel) != 1) {
    return;
  }
  cleave_session_destroy(compiled->session);
  cleave_plan_destroy(compiled->plan);
  cleave_model_release(compiled->model);
  pthread_mutex_destroy(&compiled->running);
  cleave_free(compiled->outputs);
  cleave_free(compiled->is_constant);
  cleave_free(compiled->key);
  cleave_free(compiled);
}

/* Inputs with more elements say nothing about shapes. */
enum { MAX_CONTENT = 4096 };

bool imperative_may_tell(const imperative_request_t *request, uint32_t input) {
  return request->inputs[input] != NULL && request->inputs[input]->count <= MAX_CONTENT;
}

static cleave_status_t add_constant(cleave_graph_t *graph, const char *name, const cleave_array_t *array,
                                    cleave_value_t *out_value, cleave_error_t *error) {
  cleave_tensor_t *tensor = NULL;
  CLEAVE_TRY(cleave_tensor_create(array->dtype, array->rank, array->dims, &tensor, error));
  if (array->bytes > 0) {
    memcpy(tensor->data, array->data, array->bytes);
  }
  cleave_tensor_touch(tensor);
  cleave_status_t status = cleave_graph_add_constant(graph, name, tensor, out_value, error);
  cleave_tensor_release(tensor);
  return status;
}

static cleave_status_t add_inputs(cleave_graph_t *graph, const imperative_request_t *request,
                                  const bool *is_constant, cleave_value_t *values, cleave_error_t *error) {
  for (uint32_t k = 0; k < request->input_count; k++) {
    const cleave_array_t *array = request->inputs[k];
    char name[32];
    (void)snprintf(name, sizeof name, "input_%u", (unsigned)k);
    values[k] = CLEAVE_VALUE_NONE;
    if (array != NULL && is_constant[k]) {
      CLEAVE_TRY(add_constant(graph, name, array, &values[k], error));
    } else if (array != NULL) {
      CLEAVE_TRY(
          cleave_graph_add_input(graph, name, array->dtype, array->rank, array->dims, &values[k], error));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t add_node(cleave_graph_t *graph, const imperative_request_t *request,
                                const cleave_value_t *values, cleave_node_t *out_node,
                                cleave_error_t *error) {
  CLEAVE_TRY(cleave_graph_add_node(graph, request->op, request->op->name, values, request->input_count,
                                   request->output_count, out_node, error));
  for (uint32_t k = 0; k < request->attribute_count; k++) {
    CLEAVE_TRY(cleave_graph_set_attribute(graph, *out_node, &request->attributes[k], error));
  }
  CLEAVE_TRY(cleave_op_check(graph, *out_node, CLEAVE_ERROR_INVALID_ARGUMENT, error));
  for (uint32_t k = 0; k < request->output_count; k++) {
    char name[32];
    (void)snprintf(name, sizeof name, "output_%u", (unsigned)k);
    cleave_value_t value = cleave_node_output(graph, *out_node, k);
    CLEAVE_TRY(cleave_graph_set_value_name(graph, value, name, error));
    CLEAVE_TRY(cleave_graph_add_output(graph, name, value, error));
  }
  return CLEAVE_OK;
}

/* The graph of the call, with types. */
static cleave_status_t build(cleave_imperative_t *imperative, const imperative_request_t *request,
                             const bool *is_constant, cleave_graph_t **out_graph, cleave_node_t *out_node,
                             cleave_error_t *error) {
  cleave_graph_t *graph = NULL;
  CLEAVE_TRY(cleave_graph_create(&graph, error));
  graph->context = imperative->context;
  cleave_value_t *values = cleave_allocate(request->input_count, sizeof *values);
  cleave_status_t status = values == NULL ? cleave_error_out_of_memory(error)
                                          : add_inputs(graph, request, is_constant, values, error);
  CLEAVE_THEN(status, add_node(graph, request, values, out_node, error));
  CLEAVE_THEN(status, cleave_graph_infer(graph, &(cleave_infer_options_t){0}, NULL, error));
  cleave_free(values);
  CLEAVE_TRY_OR(status, cleave_graph_destroy(graph));
  *out_graph = graph;
  return CLEAVE_OK;
}

/* Does the graph tell the type? */
static bool read_type(const cleave_graph_t *graph, cleave_value_t value, imperative_type_t *out_type) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  int64_t count = 0;
  bool is_known = record->rank >= 0 && cleave_shape_element_count(record->rank, record->dims, &count);
  *out_type =
      (imperative_type_t){.dtype = (cleave_dtype_t)record->dtype, .rank = is_known ? record->rank : -1};
  if (is_known && record->rank > 0) {
    memcpy(out_type->dims, record->dims, (size_t)record->rank * sizeof out_type->dims[0]);
  }
  return is_known && record->dtype != CLEAVE_DTYPE_UNKNOWN;
}

cleave_status_t imperative_infer(cleave_imperative_t *imperative, const imperative_request_t *request,
                                 const bool *is_constant, imperative_type_t *outputs, bool *out_known,
                                 cleave_error_t *error) {
  cleave_graph_t *graph = NULL;
  cleave_node_t node;
  CLEAVE_TRY(build(imperative, request, is_constant, &graph, &node, error));
  *out_known = true;
  for (uint32_t k = 0; k < request->output_count; k++) {
    bool is_known = read_type(graph, cleave_node_output(graph, node, k), &outputs[k]);
    *out_known = *out_known && is_known;
  }
  cleave_graph_destroy(graph);
  return CLEAVE_OK;
}

cleave_status_t imperative_find_constants(cleave_imperative_t *imperative,
                                          const imperative_request_t *request, bool *is_constant,
                                          imperative_type_t *outputs, cleave_error_t *error) {
  bool is_known = false;
  for (uint32_t k = 0; k < request->input_count; k++) {
    is_constant[k] = imperative_may_tell(request, k);
  }
  CLEAVE_TRY(imperative_infer(imperative, request, is_constant, outputs, &is_known, error));
  for (uint32_t k = 0; k < request->input_count; k++) {
    if (!is_known) {
      is_constant[k] = false; /* content does not help */
    } else if (is_constant[k]) {
      bool is_known_without = false;
      is_constant[k] = false;
      CLEAVE_TRY(imperative_infer(imperative, request, is_constant, outputs, &is_known_without, error));
      is_constant[k] = !is_known_without;
    }
  }
  return imperative_infer(imperative, request, is_constant, outputs, &is_known, error);
}

/* Plan and session of compiled->model. */
static cleave_status_t make_session(const cleave_imperative_t *imperative, const cleave_rule_source_t *rules,
                                    size_t rule_count, imperative_operator_t *compiled,
                                    cleave_error_t *error) {
  if (rule_count > 0 || strcmp(imperative->backend, "cpu") != 0) {
    cleave_partition_request_t request = {
        .size = sizeof request, .sources = rules, .source_count = rule_count, .backend = imperative->backend};
    CLEAVE_TRY(cleave_model_partition(compiled->model, &request, &compiled->plan, error));
  }
  return cleave_session_create(compiled->model, compiled->plan, NULL, 0, &imperative->options,
                               &compiled->session, error);
}

cleave_status_t imperative_compile(cleave_imperative_t *imperative, const imperative_request_t *request,
                                   imperative_operator_t *compiled, cleave_error_t *error) {
  cleave_graph_t *graph = NULL;
  cleave_node_t node;
  CLEAVE_TRY(build(imperative, request, compiled->is_constant, &graph, &node, error));
  CLEAVE_TRY(cleave_model_create_take(graph, &compiled->model, error));
  return make_session(imperative, NULL, 0, compiled, error);
}

/* Takes the place of compiled->model: with gradients of the first output by the inputs. */
static cleave_status_t add_gradients(imperative_operator_t *compiled, cleave_error_t *error) {
  const cleave_graph_t *graph = cleave_model_graph(compiled->model);
  const char **names = cleave_allocate(graph->inputs.count, sizeof *names);
  if (names == NULL) {
    return cleave_error_out_of_memory(error);
  }
  size_t count = 0;
  for (size_t k = 0; k < graph->inputs.count; k++) {
    cleave_value_t value = graph->inputs.items[k];
    if (cleave_dtype_is_float((cleave_dtype_t)cleave_graph_value(graph, value)->dtype)) {
      names[count++] = cleave_value_name(graph, value);
    }
  }
  cleave_model_t *model = NULL;
  cleave_status_t status =
      count == 0 ? cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                    "gradients: expected an argument of floating-point numbers, found none")
                 : cleave_model_gradient(compiled->model, "output_0", names, count, NULL, &model, error);
  cleave_free(names);
  if (status == CLEAVE_OK) {
    cleave_model_release(compiled->model);
    compiled->model = model;
  }
  return status;
}

static cleave_status_t compile_graph(cleave_imperative_t *imperative,
                                     const imperative_graph_options_t *options,
                                     imperative_operator_t *compiled, cleave_error_t *error) {
  if (options->has_gradients) {
    CLEAVE_TRY(add_gradients(compiled, error));
  }
  const cleave_graph_t *graph = cleave_model_graph(compiled->model);
  compiled->input_count = (uint32_t)graph->inputs.count;
  compiled->output_count = (uint32_t)graph->outputs.count;
  compiled->is_constant = cleave_allocate_zeroed(compiled->input_count, sizeof(bool));
  compiled->outputs = cleave_allocate_zeroed(compiled->output_count, sizeof *compiled->outputs);
  if (compiled->is_constant == NULL || compiled->outputs == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (uint32_t k = 0; k < compiled->output_count; k++) {
    (void)read_type(graph, cleave_graph_output(graph, k), &compiled->outputs[k]);
  }
  return make_session(imperative, options->rules, options->rule_count, compiled, error);
}

cleave_status_t imperative_compile_graph_take(cleave_imperative_t *imperative, cleave_graph_t *graph,
                                              const imperative_graph_options_t *options,
                                              imperative_operator_t **out_compiled, cleave_error_t *error) {
  imperative_operator_t *compiled = cleave_allocate_zeroed(1, sizeof *compiled);
  if (compiled == NULL) {
    cleave_graph_destroy(graph);
    return cleave_error_out_of_memory(error);
  }
  pthread_mutex_init(&compiled->running, NULL);
  atomic_init(&compiled->references, 1);
  cleave_status_t status = cleave_model_create_take(graph, &compiled->model, error);
  CLEAVE_THEN(status, compile_graph(imperative, options, compiled, error));
  CLEAVE_TRY_OR(status, imperative_operator_release(compiled));
  *out_compiled = compiled;
  return CLEAVE_OK;
}

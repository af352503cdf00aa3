// SPDX-License-Identifier: Apache-2.0
// From noted calls to a graph of their gradients. The graphs of all calls are put together and
// differentiated; then what the calls computed takes the place of what computes it, so that only the way back
// is left.
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "graph/extract.h"
#include "imperative/compile.h"
#include "imperative/record.h"
#include "ops/infer.h"
#include "runtime/model/model_gradient.h"

/* Forms that are kept; at the next one all are dropped, so that a program whose calls differ each time does
 * not fill the memory. */
enum { MAX_KEPT = 64 };

void record_form_release(record_form_t *form) {
  if (form == NULL || atomic_fetch_sub_explicit(&form->references, 1, memory_order_acq_rel) != 1) {
    return;
  }
  imperative_operator_release(form->compiled);
  for (size_t k = 0; k < form->part_count; k++) {
    imperative_operator_release(form->parts[k]);
  }
  cleave_free((void *)form->parts);
  cleave_free(form->key);
  cleave_free(form->inputs);
  cleave_free(form->has_gradient);
  cleave_free(form);
}

void record_forms_clear(cleave_imperative_t *imperative) {
  for (size_t k = 0; k < imperative->forms.count; k++) {
    record_form_release(imperative->forms.items[k]);
  }
  cleave_array_free(&imperative->forms);
}

// ---- the key: equal keys, equal graphs ----

typedef CLEAVE_ARRAY(unsigned char) record_key_t;

static cleave_status_t add_bytes(record_key_t *key, const void *bytes, size_t count, cleave_error_t *error) {
  CLEAVE_TRY(cleave_array_reserve(key, count, error));
  if (count > 0) {
    memcpy(key->items + key->count, bytes, count);
  }
  key->count += count;
  return CLEAVE_OK;
}

static cleave_status_t add_array(record_key_t *key, cleave_array_t *array, cleave_error_t *error) {
  const int64_t facts[3] = {array->dtype, array->rank, array->is_literal};
  CLEAVE_TRY(add_bytes(key, facts, sizeof facts, error));
  CLEAVE_TRY(add_bytes(key, array->dims, (size_t)array->rank * sizeof array->dims[0], error));
  return array->is_literal ? add_bytes(key, array->data, array->bytes, error) : CLEAVE_OK;
}

static cleave_status_t make_key(const record_way_t *way, record_key_t *key, cleave_error_t *error) {
  const cleave_record_request_t *request = way->request;
  CLEAVE_TRY(add_bytes(key, &way->parameter_count, sizeof way->parameter_count, error));
  for (size_t k = 0; k < way->calls.count; k++) {
    CLEAVE_TRY(add_bytes(key, &way->calls.items[k]->compiled, sizeof way->calls.items[k]->compiled, error));
  }
  CLEAVE_TRY(add_bytes(key, way->numbers.items, way->numbers.count * sizeof *way->numbers.items, error));
  CLEAVE_TRY(add_bytes(key, way->ends.items, way->ends.count * sizeof *way->ends.items, error));
  for (size_t k = 0; k < way->arrays.count; k++) {
    CLEAVE_TRY(add_array(key, way->arrays.items[k], error));
  }
  for (size_t k = 0; k < request->rule_count; k++) {
    const char *path = request->rules[k].path != NULL ? request->rules[k].path : "";
    CLEAVE_TRY(add_bytes(key, path, strlen(path) + 1, error));
  }
  return CLEAVE_OK;
}

static record_form_t *find_kept(cleave_imperative_t *imperative, const record_key_t *key) {
  record_form_t *found = NULL;
  pthread_mutex_lock(&imperative->lock);
  for (size_t k = 0; k < imperative->forms.count && found == NULL; k++) {
    record_form_t *form = imperative->forms.items[k];
    if (form->key_bytes == key->count && memcmp(form->key, key->items, key->count) == 0) {
      atomic_fetch_add(&form->references, 1);
      found = form;
    }
  }
  pthread_mutex_unlock(&imperative->lock);
  return found;
}

static cleave_status_t keep(cleave_imperative_t *imperative, record_form_t *form, cleave_error_t *error) {
  pthread_mutex_lock(&imperative->lock);
  if (imperative->forms.count >= MAX_KEPT) {
    record_forms_clear(imperative);
  }
  cleave_status_t status = cleave_array_reserve(&imperative->forms, 1, error);
  if (status == CLEAVE_OK) {
    atomic_fetch_add(&form->references, 1);
    cleave_array_push_reserved(&imperative->forms, form);
  }
  pthread_mutex_unlock(&imperative->lock);
  return status;
}

// ---- the graph ----

typedef struct building {
  const record_way_t *way;
  cleave_graph_t *graph;
  cleave_value_t *values; /* by number of an array; NONE: not there yet */
  CLEAVE_ARRAY(cleave_value_t) operands;
  CLEAVE_ARRAY(cleave_value_t) results;
  CLEAVE_ARRAY(uint32_t) inputs; /* arrays by number, as the inputs of the graph */
  bool has_gradient;             /* by one parameter or more */
} building_t;

static cleave_status_t add_input(building_t *building, uint32_t number, cleave_value_t *out_value,
                                 cleave_error_t *error) {
  const cleave_array_t *array = building->way->arrays.items[number];
  char name[32];
  (void)snprintf(name, sizeof name, "array_%zu", building->inputs.count);
  CLEAVE_ARRAY_PUSH(&building->inputs, number, error);
  return cleave_graph_add_input(building->graph, name, array->dtype, array->rank, array->dims, out_value,
                                error);
}

/* The value for an array: of a call before, else an input, or a constant. */
static cleave_status_t value_of(building_t *building, uint32_t number, cleave_value_t *out_value,
                                cleave_error_t *error) {
  cleave_value_t *value = &building->values[number];
  cleave_array_t *array = building->way->arrays.items[number];
  if (!cleave_value_exists(*value) && array->is_literal && number >= building->way->parameter_count) {
    cleave_tensor_t *tensor = NULL;
    CLEAVE_TRY(cleave_tensor_create(array->dtype, array->rank, array->dims, &tensor, error));
    if (array->bytes > 0) {
      memcpy(tensor->data, array->data, array->bytes);
    }
    cleave_tensor_touch(tensor);
    cleave_status_t status = cleave_graph_add_constant(building->graph, "", tensor, value, error);
    cleave_tensor_release(tensor);
    CLEAVE_TRY(status);
  } else if (!cleave_value_exists(*value)) {
    CLEAVE_TRY(add_input(building, number, value, error));
  }
  *out_value = *value;
  return CLEAVE_OK;
}

/* `numbers`: of the inputs of the call, then of its outputs. */
static cleave_status_t add_call(building_t *building, const imperative_operator_t *compiled,
                                const uint32_t *numbers, cleave_error_t *error) {
  cleave_graph_t *source = NULL;
  cleave_value_t value = CLEAVE_VALUE_NONE;
  building->operands.count = 0;
  building->results.count = 0;
  for (uint32_t k = 0; k < compiled->input_count; k++) {
    if (numbers[k] != RECORD_NONE && !compiled->is_constant[k]) {
      CLEAVE_TRY(value_of(building, numbers[k], &value, error));
      CLEAVE_ARRAY_PUSH(&building->operands, value, error);
    }
  }
  CLEAVE_TRY(cleave_array_reserve(&building->results, compiled->output_count, error));
  CLEAVE_TRY(cleave_model_copy_source(compiled->model, &source, error));
  cleave_status_t status =
      cleave_graph_insert(source, building->operands.items, building->graph, building->results.items, error);
  cleave_graph_destroy(source);
  for (uint32_t k = 0; status == CLEAVE_OK && k < compiled->output_count; k++) {
    building->values[numbers[compiled->input_count + k]] = building->results.items[k];
  }
  return status;
}

static cleave_status_t add_op(cleave_graph_t *graph, const char *op, const cleave_value_t *inputs,
                              size_t count, cleave_value_t *out_value, cleave_error_t *error) {
  cleave_node_t node = CLEAVE_NODE_NONE;
  CLEAVE_TRY(cleave_graph_add_node(graph, cleave_op_find("", op), "", inputs, count, 1, &node, error));
  *out_value = cleave_node_output(graph, node, 0);
  return strcmp(op, "ReduceSum") == 0 ? cleave_graph_set_int(graph, node, "keepdims", 0, error) : CLEAVE_OK;
}

/* The sum of the results, each times its head. Those of other dtypes than the first are summed in its. */
static cleave_status_t add_loss(building_t *building, cleave_value_t *out_loss, cleave_error_t *error) {
  const record_way_t *way = building->way;
  cleave_graph_t *graph = building->graph;
  uint32_t count = way->request->result_count;
  cleave_dtype_t dtype = CLEAVE_DTYPE_UNKNOWN;
  *out_loss = CLEAVE_VALUE_NONE;
  for (uint32_t k = 0; k < count; k++) {
    cleave_value_t pair[2] = {CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE};
    if (way->ends.items[k] == RECORD_NONE) {
      continue;
    }
    CLEAVE_TRY(value_of(building, way->ends.items[k], &pair[0], error));
    if (way->ends.items[count + k] != RECORD_NONE) {
      /* A value of its own: no gradient passes a head, also if it is an array on the way. */
      CLEAVE_TRY(add_input(building, way->ends.items[count + k], &pair[1], error));
      CLEAVE_TRY(add_op(graph, "Mul", pair, 2, &pair[0], error));
    }
    CLEAVE_TRY(add_op(graph, "ReduceSum", pair, 1, &pair[0], error));
    cleave_dtype_t own = way->request->results[k]->dtype;
    if (cleave_value_exists(*out_loss)) {
      pair[1] = *out_loss;
      if (own != dtype) {
        cleave_node_t node = CLEAVE_NODE_NONE;
        CLEAVE_TRY(cleave_graph_add_node(graph, cleave_op_find("", "Cast"), "", pair, 1, 1, &node, error));
        CLEAVE_TRY(cleave_graph_set_int(graph, node, "to", (int64_t)dtype, error));
        pair[0] = cleave_node_output(graph, node, 0);
      }
      CLEAVE_TRY(add_op(graph, "Add", pair, 2, out_loss, error));
    } else {
      dtype = own;
      *out_loss = pair[0];
    }
  }
  return CLEAVE_OK;
}

/* Results of the calls that the backward graph reads become its inputs. */
static cleave_status_t cut(building_t *building, cleave_error_t *error) {
  const record_way_t *way = building->way;
  cleave_graph_t *graph = building->graph;
  const uint32_t *numbers = way->numbers.items;
  for (size_t k = 0; k < way->calls.count; k++) {
    const imperative_operator_t *compiled = way->calls.items[k]->compiled;
    for (uint32_t o = 0; o < compiled->output_count; o++) {
      uint32_t number = numbers[compiled->input_count + o];
      cleave_value_t value = building->values[number];
      cleave_value_t input = CLEAVE_VALUE_NONE;
      if (!graph->values.items[value.index].is_removed &&
          cleave_node_exists(cleave_value_producer(graph, value)) &&
          cleave_use_exists(cleave_value_first_use(graph, value))) {
        CLEAVE_TRY(add_input(building, number, &input, error));
        cleave_graph_replace_uses(graph, value, input);
      }
    }
    numbers += compiled->input_count + compiled->output_count;
  }
  return CLEAVE_OK;
}

/* The outputs of the graph are the gradients that there are; the first takes the place of the loss. */
static cleave_status_t add_outputs(building_t *building, const cleave_value_t *gradients, record_form_t *form,
                                   cleave_error_t *error) {
  cleave_graph_t *graph = building->graph;
  size_t removed = 0;
  for (uint32_t k = 0; k < building->way->parameter_count; k++) {
    char name[32];
    (void)snprintf(name, sizeof name, "gradient_%u", (unsigned)k);
    form->has_gradient[k] = cleave_value_exists(gradients[k]);
    if (form->has_gradient[k] && !building->has_gradient) {
      cleave_graph_set_use(graph, graph->outputs.items[0], gradients[k]);
      building->has_gradient = true;
    } else if (form->has_gradient[k]) {
      CLEAVE_TRY(cleave_graph_add_output(graph, name, gradients[k], error));
    }
  }
  return cleave_graph_remove_dead(graph, &removed, error);
}

static cleave_status_t add_gradients(building_t *building, record_form_t *form, cleave_error_t *error) {
  uint32_t count = building->way->parameter_count;
  cleave_graph_t *graph = building->graph;
  cleave_infer_options_t infer = {.fold = true};
  cleave_value_t loss = CLEAVE_VALUE_NONE;
  cleave_value_t *gradients = cleave_allocate_zeroed(count + 1, sizeof *gradients);
  cleave_value_t *wrt = cleave_allocate_zeroed(count + 1, sizeof *wrt);
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(gradients != NULL && wrt != NULL ? CLEAVE_OK : cleave_error_out_of_memory(error));
  CLEAVE_TRY_CLEANUP(add_loss(building, &loss, error));
  for (uint32_t k = 0; k < count; k++) {
    CLEAVE_TRY_CLEANUP(value_of(building, k, &wrt[k], error));
  }
  /* Nodes that no output needs do not outlive that constants are computed. */
  CLEAVE_TRY_CLEANUP(cleave_graph_add_output(graph, "gradient", loss, error));
  CLEAVE_TRY_CLEANUP(cleave_graph_infer(graph, &infer, NULL, error));
  loss = cleave_graph_output(graph, 0);
  CLEAVE_TRY_CLEANUP(cleave_graph_add_gradients(graph, loss, wrt, count, gradients, error));
  CLEAVE_TRY_CLEANUP(add_outputs(building, gradients, form, error));
  if (building->has_gradient) {
    CLEAVE_TRY_CLEANUP(cut(building, error));
  }
cleanup:
  cleave_free(gradients);
  cleave_free(wrt);
  return status;
}

static cleave_status_t build(building_t *building, record_form_t *form, cleave_error_t *error) {
  const record_way_t *way = building->way;
  CLEAVE_TRY(cleave_graph_create(&building->graph, error));
  building->graph->context = way->record->imperative->context;
  building->values = cleave_allocate(way->arrays.count + 1, sizeof *building->values);
  if (building->values == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (size_t k = 0; k < way->arrays.count; k++) {
    building->values[k] = CLEAVE_VALUE_NONE;
  }
  const uint32_t *numbers = way->numbers.items;
  for (size_t k = 0; k < way->calls.count; k++) {
    const imperative_operator_t *compiled = way->calls.items[k]->compiled;
    CLEAVE_TRY(add_call(building, compiled, numbers, error));
    numbers += compiled->input_count + compiled->output_count;
  }
  return add_gradients(building, form, error);
}

static cleave_status_t compile(const record_way_t *way, record_form_t *form, cleave_error_t *error) {
  building_t building = {.way = way};
  cleave_status_t status = build(&building, form, error);
  if (status == CLEAVE_OK && building.has_gradient) {
    const imperative_graph_options_t options = {.rules = way->request->rules,
                                                .rule_count = way->request->rule_count};
    status = imperative_compile_graph_take(way->record->imperative, building.graph, &options, &form->compiled,
                                           error);
    building.graph = NULL;
  }
  form->inputs = building.inputs.items;
  form->input_count = building.inputs.count;
  cleave_graph_destroy(building.graph);
  cleave_free(building.values);
  cleave_array_free(&building.operands);
  cleave_array_free(&building.results);
  return status;
}

static cleave_status_t make_form(const record_way_t *way, record_key_t *key, record_form_t **out_form,
                                 cleave_error_t *error) {
  record_form_t *form = cleave_allocate_zeroed(1, sizeof *form);
  if (form == NULL) {
    return cleave_error_out_of_memory(error);
  }
  *out_form = form;
  atomic_init(&form->references, 1);
  form->key = key->items;
  form->key_bytes = key->count;
  *key = (record_key_t){0};
  form->parts = cleave_allocate(way->calls.count + 1, sizeof(imperative_operator_t *));
  form->has_gradient = cleave_allocate_zeroed((size_t)way->parameter_count + 1, sizeof(bool));
  if (form->parts == NULL || form->has_gradient == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (size_t k = 0; k < way->calls.count; k++) {
    form->parts[k] = way->calls.items[k]->compiled;
    atomic_fetch_add(&form->parts[k]->references, 1);
    form->part_count++;
  }
  CLEAVE_TRY(compile(way, form, error));
  return keep(way->record->imperative, form, error);
}

cleave_status_t record_form_get(const record_way_t *way, record_form_t **out_form, cleave_error_t *error) {
  record_key_t key = {0};
  cleave_status_t status = make_key(way, &key, error);
  *out_form = status == CLEAVE_OK ? find_kept(way->record->imperative, &key) : NULL;
  if (status == CLEAVE_OK && *out_form == NULL) {
    status = make_form(way, &key, out_form, error);
  }
  cleave_array_free(&key);
  return status;
}

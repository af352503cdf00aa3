// SPDX-License-Identifier: Apache-2.0
// A gradient is made of the calls on the ways from its parameters to its results, and of no others.
#include <string.h>

#include "base/hash.h"
#include "base/sized.h"
#include "imperative/record.h"
#include "runtime/model/model.h"

/* ---- arrays of a record by address ---- */

typedef struct array_index {
  cleave_array_t **slots; /* a power of two of them; NULL: free */
  struct {
    bool depends;    /* on a parameter */
    bool leads;      /* to a result */
    uint32_t number; /* in the way; RECORD_NONE: none yet */
  } * facts;         /* by slot */
  size_t slot_count;
} array_index_t;

static cleave_status_t index_init(array_index_t *index, size_t most, cleave_error_t *error) {
  *index = (array_index_t){.slot_count = 16};
  while (index->slot_count < 2 * most) {
    index->slot_count *= 2;
  }
  index->slots = cleave_allocate_zeroed(index->slot_count, sizeof(cleave_array_t *));
  index->facts = cleave_allocate_zeroed(index->slot_count, sizeof *index->facts);
  for (size_t k = 0; index->facts != NULL && k < index->slot_count; k++) {
    index->facts[k].number = RECORD_NONE;
  }
  return index->slots != NULL && index->facts != NULL ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

static size_t find(array_index_t *index, cleave_array_t *array) {
  size_t slot = (size_t)cleave_hash_combine(CLEAVE_HASH_SEED, (uint64_t)(uintptr_t)array);
  for (slot &= index->slot_count - 1; index->slots[slot] != NULL && index->slots[slot] != array;) {
    slot = (slot + 1) & (index->slot_count - 1);
  }
  index->slots[slot] = array;
  return slot;
}

/* ---- the ways ---- */

/* Does a node draw random numbers? Not Dropout, which nothing computes but in inference. */
static bool draws(const imperative_operator_t *compiled, bool *out_alone) {
  const cleave_graph_t *graph = cleave_model_graph(compiled->model);
  *out_alone = graph->live_node_count <= 1;
  for (uint32_t n = 0; n < cleave_graph_node_bound(graph); n++) {
    if (cleave_node_is_live(graph, (cleave_node_t){n}) &&
        (cleave_node_op(graph, (cleave_node_t){n})->flags & (CLEAVE_OP_RANDOM | CLEAVE_OP_POINTWISE)) ==
            CLEAVE_OP_RANDOM) {
      return true;
    }
  }
  return false;
}

/* Marks what depends on parameters. A call that draws is like an array from elsewhere. */
static cleave_status_t reach_forward(record_way_t *way, array_index_t *index, cleave_error_t *error) {
  const cleave_record_t *record = way->record;
  for (size_t k = 0; k < record->calls.count; k++) {
    const recorded_call_t *call = &record->calls.items[k];
    cleave_array_t **arrays = record->arrays.items + call->first;
    bool is_reached = false;
    bool is_alone = false;
    for (uint32_t a = 0; a < call->compiled->input_count; a++) {
      is_reached = is_reached || (arrays[a] != NULL && index->facts[find(index, arrays[a])].depends);
    }
    if (is_reached && draws(call->compiled, &is_alone)) {
      if (!is_alone) {
        return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                                "gradient: a compiled function on the way draws random numbers");
      }
      is_reached = false;
    }
    if (is_reached) {
      CLEAVE_ARRAY_PUSH(&way->calls, call, error);
      for (uint32_t a = 0; a < call->compiled->output_count; a++) {
        index->facts[find(index, arrays[call->compiled->input_count + a])].depends = true;
      }
    }
  }
  return CLEAVE_OK;
}

/* Keeps the calls that lead to results. */
static void reach_backward(record_way_t *way, array_index_t *index) {
  size_t kept = way->calls.count;
  for (size_t k = way->calls.count; k-- > 0;) {
    const recorded_call_t *call = way->calls.items[k];
    cleave_array_t **arrays = way->record->arrays.items + call->first;
    uint32_t input_count = call->compiled->input_count;
    bool is_needed = false;
    for (uint32_t a = 0; a < call->compiled->output_count; a++) {
      is_needed = is_needed || index->facts[find(index, arrays[input_count + a])].leads;
    }
    for (uint32_t a = 0; is_needed && a < input_count; a++) {
      if (arrays[a] != NULL) {
        index->facts[find(index, arrays[a])].leads = true;
      }
    }
    if (is_needed) {
      way->calls.items[--kept] = call;
    }
  }
  way->calls.count -= kept;
  if (way->calls.count > 0) {
    memmove(way->calls.items, way->calls.items + kept, way->calls.count * sizeof *way->calls.items);
  }
}

static cleave_status_t number(record_way_t *way, array_index_t *index, cleave_array_t *array,
                              uint32_t *out_number, cleave_error_t *error) {
  *out_number = RECORD_NONE;
  if (array == NULL) {
    return CLEAVE_OK;
  }
  uint32_t *known = &index->facts[find(index, array)].number;
  if (*known == RECORD_NONE) {
    *known = (uint32_t)way->arrays.count;
    CLEAVE_ARRAY_PUSH(&way->arrays, array, error);
  }
  *out_number = *known;
  return CLEAVE_OK;
}

static cleave_status_t number_all(record_way_t *way, array_index_t *index, cleave_error_t *error) {
  const cleave_record_request_t *request = way->request;
  uint32_t found = 0;
  for (uint32_t k = 0; k < request->parameter_count; k++) {
    bool leads = index->facts[find(index, request->parameters[k])].leads;
    CLEAVE_TRY(number(way, index, leads ? request->parameters[k] : NULL, &found, error));
    CLEAVE_ARRAY_PUSH(&way->places, found, error);
  }
  way->parameter_count = (uint32_t)way->arrays.count;
  for (size_t k = 0; k < way->calls.count; k++) {
    const recorded_call_t *call = way->calls.items[k];
    uint32_t count = call->compiled->input_count + call->compiled->output_count;
    for (uint32_t a = 0; a < count; a++) {
      CLEAVE_TRY(number(way, index, way->record->arrays.items[call->first + a], &found, error));
      CLEAVE_ARRAY_PUSH(&way->numbers, found, error);
    }
  }
  for (uint32_t k = 0; k < request->result_count; k++) {
    bool depends = index->facts[find(index, request->results[k])].depends;
    CLEAVE_TRY(number(way, index, depends ? request->results[k] : NULL, &found, error));
    CLEAVE_ARRAY_PUSH(&way->ends, found, error);
  }
  for (uint32_t k = 0; k < request->result_count; k++) {
    cleave_array_t *head = request->heads != NULL ? request->heads[k] : NULL;
    CLEAVE_TRY(number(way, index, head, &found, error));
    CLEAVE_ARRAY_PUSH(&way->ends, found, error);
  }
  return CLEAVE_OK;
}

static cleave_status_t find_way(record_way_t *way, array_index_t *index, cleave_error_t *error) {
  const cleave_record_request_t *request = way->request;
  CLEAVE_TRY(index_init(
      index, way->record->arrays.count + 2 * (size_t)request->result_count + request->parameter_count,
      error));
  for (uint32_t k = 0; k < request->parameter_count; k++) {
    index->facts[find(index, request->parameters[k])].depends = true;
  }
  CLEAVE_TRY(reach_forward(way, index, error));
  for (uint32_t k = 0; k < request->result_count; k++) {
    index->facts[find(index, request->results[k])].leads = true;
  }
  reach_backward(way, index);
  return number_all(way, index, error);
}

/* ---- running ---- */

static cleave_status_t check_array(const char *what, uint32_t k, const cleave_array_t *array,
                                   cleave_error_t *error) {
  if (array == NULL || array->rank < 0 || !cleave_dtype_is_float(array->dtype)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "gradient: %s %u: expected an array of floating-point numbers, found %s", what,
                            (unsigned)k + 1,
                            array == NULL     ? "none"
                            : array->rank < 0 ? "one that was not computed"
                                              : cleave_dtype_name(array->dtype));
  }
  return CLEAVE_OK;
}

static cleave_status_t check(const cleave_record_request_t *request, cleave_error_t *error) {
  CLEAVE_TRY(cleave_list_check("results", request->results, request->result_count, error));
  CLEAVE_TRY(cleave_list_check("rules", request->rules, request->rule_count, error));
  CLEAVE_TRY(cleave_list_check("parameters", request->parameters, request->parameter_count, error));
  for (uint32_t k = 0; k < request->parameter_count; k++) {
    CLEAVE_TRY(check_array("parameter", k, request->parameters[k], error));
  }
  for (uint32_t k = 0; k < request->result_count; k++) {
    const cleave_array_t *result = request->results[k];
    const cleave_array_t *head = request->heads != NULL ? request->heads[k] : NULL;
    CLEAVE_TRY(check_array("result", k, result, error));
    bool is_like = head == NULL || (head->dtype == result->dtype && head->rank == result->rank);
    for (int32_t d = 0; head != NULL && is_like && d < head->rank; d++) {
      is_like = head->dims[d] == result->dims[d];
    }
    if (!is_like) {
      return cleave_error_set(error, CLEAVE_ERROR_SHAPE,
                              "gradient: head %u: expected an array of the dtype and shape of its result",
                              (unsigned)k + 1);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t run(const record_way_t *way, const record_form_t *form, cleave_array_t **found,
                           cleave_error_t *error) {
  if (form->compiled == NULL) {
    return CLEAVE_OK;
  }
  cleave_array_t **inputs = cleave_allocate(form->input_count + 1, sizeof(cleave_array_t *));
  cleave_array_t **outputs =
      cleave_allocate_zeroed((size_t)form->compiled->output_count + 1, sizeof *outputs);
  cleave_status_t status = CLEAVE_OK;
  if (inputs == NULL || outputs == NULL) {
    status = cleave_error_out_of_memory(error);
  }
  for (size_t k = 0; status == CLEAVE_OK && k < form->input_count; k++) {
    inputs[k] = way->arrays.items[form->inputs[k]];
  }
  CLEAVE_THEN(status, imperative_operator_run(way->record->imperative, form->compiled, "a gradient", NULL,
                                              inputs, outputs, error));
  for (uint32_t k = 0, next = 0; status == CLEAVE_OK && k < way->parameter_count; k++) {
    found[k] = form->has_gradient[k] ? outputs[next++] : NULL;
  }
  cleave_free((void *)inputs);
  cleave_free((void *)outputs);
  return status;
}

/* `found`: by distinct parameter, its gradient, owned; NULL: zeros. */
static cleave_status_t hand_out(const record_way_t *way, cleave_array_t *const *found,
                                cleave_array_t **gradients, cleave_error_t *error) {
  for (uint32_t k = 0; k < way->request->parameter_count; k++) {
    const cleave_array_t *parameter = way->request->parameters[k];
    uint32_t place = way->places.items[k];
    if (place != RECORD_NONE && found[place] != NULL) {
      gradients[k] = cleave_array_retain(found[place]);
    } else {
      CLEAVE_TRY(cleave_array_create(way->record->imperative, parameter->dtype, parameter->rank,
                                     parameter->dims, NULL, &gradients[k], error));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t differentiate(record_way_t *way, cleave_array_t **gradients, cleave_error_t *error) {
  record_form_t *form = NULL;
  cleave_array_t **found = cleave_allocate_zeroed((size_t)way->parameter_count + 1, sizeof(cleave_array_t *));
  cleave_status_t status = found == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
  if (status == CLEAVE_OK && way->parameter_count > 0) {
    status = record_form_get(way, &form, error);
  }
  if (status == CLEAVE_OK && form != NULL) {
    status = run(way, form, found, error);
  }
  CLEAVE_THEN(status, hand_out(way, found, gradients, error));
  for (uint32_t k = 0; found != NULL && k < way->parameter_count; k++) {
    cleave_array_release(found[k]);
  }
  cleave_free((void *)found);
  record_form_release(form);
  return status;
}

cleave_status_t cleave_record_gradient(cleave_record_t *record, const cleave_record_request_t *given,
                                       cleave_array_t **gradients, cleave_error_t *error) {
  cleave_record_request_t own = {.size = sizeof own};
  record_way_t way = {.record = record, .request = &own};
  array_index_t index = {0};
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_record_request_t, given, &own, error));
  const cleave_record_request_t *request = &own;
  for (uint32_t k = 0; k < request->parameter_count; k++) {
    gradients[k] = NULL;
  }
  cleave_status_t status = check(request, error);
  CLEAVE_THEN(status, find_way(&way, &index, error));
  CLEAVE_THEN(status, differentiate(&way, gradients, error));
  for (uint32_t k = 0; status != CLEAVE_OK && k < request->parameter_count; k++) {
    cleave_array_release(gradients[k]);
    gradients[k] = NULL;
  }
  cleave_free((void *)index.slots);
  cleave_free(index.facts);
  cleave_array_free(&way.calls);
  cleave_array_free(&way.arrays);
  cleave_array_free(&way.numbers);
  cleave_array_free(&way.ends);
  cleave_array_free(&way.places);
  return status;
}

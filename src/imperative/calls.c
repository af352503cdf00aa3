// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/sized.h"
#include "base/text.h"
#include "imperative/operators.h"
#include "imperative/record.h"
#include "ops/custom.h"

/* A program that never waits is held up when it is MAX_AHEAD calls ahead, so that it does not fill the memory
 * with arrays, and goes on when it is half as far. */
enum { SMALL_CALL = 16, MAX_AHEAD = 512 };

/* A call at work. Its arrays live until it has run. */
struct imperative_call {
  imperative_call_t *next; /* of the free ones */
  cleave_imperative_t *owner;
  imperative_operator_t *compiled;
  uint32_t capacity;        /* of arrays */
  char name[96];            /* of the operator, and where it is called */
  cleave_array_t *arrays[]; /* inputs, then outputs */
};

static void give_call(cleave_imperative_t *imperative, imperative_call_t *call) {
  bool is_kept = call != NULL && call->capacity == SMALL_CALL;
  pthread_mutex_lock(&imperative->lock);
  if (is_kept) {
    call->next = imperative->free_calls;
    imperative->free_calls = call;
  }
  if (--imperative->ahead == MAX_AHEAD / 2) {
    pthread_cond_broadcast(&imperative->caught_up);
  }
  pthread_mutex_unlock(&imperative->lock);
  if (!is_kept) {
    cleave_free(call);
  }
}

static imperative_call_t *take_call(cleave_imperative_t *imperative, uint32_t count) {
  imperative_call_t *call = NULL;
  pthread_mutex_lock(&imperative->lock);
  if (imperative->ahead >= MAX_AHEAD) {
    pthread_mutex_unlock(&imperative->lock);
    cleave_engine_flush(imperative->engine); /* some may be in a bulk of this thread */
    pthread_mutex_lock(&imperative->lock);
    while (imperative->ahead > MAX_AHEAD / 2) {
      pthread_cond_wait(&imperative->caught_up, &imperative->lock);
    }
  }
  imperative->ahead++;
  if (count <= SMALL_CALL && imperative->free_calls != NULL) {
    call = imperative->free_calls;
    imperative->free_calls = call->next;
  }
  imperative->call_count++;
  pthread_mutex_unlock(&imperative->lock);
  if (call == NULL) {
    uint32_t capacity = count <= SMALL_CALL ? SMALL_CALL : count;
    call = cleave_allocate(1, sizeof *call + capacity * sizeof call->arrays[0]);
    if (call == NULL) {
      give_call(imperative, NULL);
      return NULL;
    }
    call->capacity = capacity;
  }
  return call;
}

void imperative_calls_free(cleave_imperative_t *imperative) {
  while (imperative->free_calls != NULL) {
    imperative_call_t *call = imperative->free_calls;
    imperative->free_calls = call->next;
    cleave_free(call);
  }
}

/* ---- on a worker ---- */

/* Output of a shape that the run has told. */
static cleave_status_t copy_output(const cleave_session_t *session, uint32_t index, cleave_array_t *array,
                                   cleave_error_t *error) {
  cleave_tensor_view_t view;
  CLEAVE_TRY(cleave_session_output(session, index, &view, error));
  if (view.dtype != array->dtype) {
    return cleave_error_set(error, CLEAVE_ERROR_INTERNAL, "output %u: expected %s, found %s", (unsigned)index,
                            cleave_dtype_name(array->dtype), cleave_dtype_name(view.dtype));
  }
  CLEAVE_TRY(cleave_array_set_shape(array, view.rank, view.dims, error));
  if (array->bytes > 0) {
    memcpy(array->data, view.data, array->bytes);
  }
  return CLEAVE_OK;
}

static cleave_status_t run_session(const imperative_call_t *call, cleave_error_t *error) {
  const imperative_operator_t *compiled = call->compiled;
  cleave_array_t *const *outputs = call->arrays + compiled->input_count;
  uint32_t input = 0;
  for (uint32_t k = 0; k < compiled->input_count; k++) {
    if (call->arrays[k] != NULL && !compiled->is_constant[k]) {
      cleave_tensor_view_t view = cleave_array_view(call->arrays[k]);
      CLEAVE_TRY(cleave_session_set_input(compiled->session, input++, &view, error));
    }
  }
  for (uint32_t k = 0; k < compiled->output_count; k++) {
    if (compiled->outputs[k].rank >= 0) {
      cleave_tensor_view_t view = cleave_array_view(outputs[k]);
      CLEAVE_TRY(cleave_session_set_output(compiled->session, k, &view, CLEAVE_REQUEST_WRITE, error));
    }
  }
  CLEAVE_TRY(cleave_session_run(compiled->session, error));
  for (uint32_t k = 0; k < compiled->output_count; k++) {
    if (compiled->outputs[k].rank < 0) {
      CLEAVE_TRY(copy_output(compiled->session, k, outputs[k], error));
    }
    outputs[k]->is_computed = true;
  }
  return CLEAVE_OK;
}

static cleave_status_t run_call(void *self, const cleave_engine_run_t *run, cleave_error_t *error) {
  (void)run;
  const imperative_call_t *call = self;
  for (uint32_t k = 0; k < call->compiled->input_count; k++) {
    if (call->arrays[k] != NULL && !call->arrays[k]->is_computed) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "input %u was not computed: a call before it failed", (unsigned)k);
    }
  }
  pthread_mutex_lock(&call->compiled->running);
  cleave_status_t status = run_session(call, error);
  pthread_mutex_unlock(&call->compiled->running);
  return status;
}

static void end_call(void *self) {
  imperative_call_t *call = self;
  imperative_operator_release(call->compiled);
  give_call(call->owner, call);
}

/* ---- on the caller's thread ---- */

static cleave_status_t check_inputs(const char *name, cleave_array_t *const *inputs, uint32_t count,
                                    cleave_error_t *error) {
  for (uint32_t k = 0; k < count; k++) {
    if (inputs[k] != NULL && inputs[k]->rank < 0) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "%s: input %u was not computed: a call before it failed", name, (unsigned)k);
    }
  }
  return CLEAVE_OK;
}

static void release_all(cleave_array_t **outputs, uint32_t count) {
  for (uint32_t k = 0; k < count; k++) {
    cleave_array_release(outputs[k]);
    outputs[k] = NULL;
  }
}

/* *out_waits: the shape of an output is told by the run. */
static cleave_status_t allocate_outputs(cleave_imperative_t *imperative,
                                        const imperative_operator_t *compiled, cleave_array_t **outputs,
                                        bool *out_waits, cleave_error_t *error) {
  *out_waits = false;
  for (uint32_t k = 0; k < compiled->output_count; k++) {
    const imperative_type_t *type = &compiled->outputs[k];
    *out_waits = *out_waits || type->rank < 0;
    CLEAVE_TRY(cleave_array_allocate(imperative, type->dtype, type->rank, type->dims, &outputs[k], error));
  }
  return CLEAVE_OK;
}

/* The variables of the call: of its inputs, then of its outputs. Returns the number of the first. */
static uint32_t list_variables(const imperative_call_t *call, cleave_variable_t **variables) {
  const imperative_operator_t *compiled = call->compiled;
  uint32_t reads = 0;
  for (uint32_t k = 0; k < compiled->input_count; k++) {
    if (call->arrays[k] != NULL) {
      variables[reads++] = call->arrays[k]->variable;
    }
  }
  for (uint32_t k = 0; k < compiled->output_count; k++) {
    variables[reads + k] = call->arrays[compiled->input_count + k]->variable;
  }
  return reads;
}

static cleave_status_t push(cleave_imperative_t *imperative, imperative_operator_t *compiled,
                            const char *name, const char *place, cleave_array_t *const *inputs,
                            cleave_array_t *const *outputs, cleave_error_t *error) {
  enum { FEW = 2 * SMALL_CALL };
  uint32_t count = compiled->input_count + compiled->output_count;
  cleave_variable_t *few[FEW];
  cleave_variable_t **variables = count <= FEW ? few : cleave_allocate(count, sizeof(cleave_variable_t *));
  imperative_call_t *call = variables != NULL ? take_call(imperative, count) : NULL;
  cleave_status_t status = call != NULL ? CLEAVE_OK : cleave_error_out_of_memory(error);
  if (status == CLEAVE_OK) {
    call->owner = imperative;
    call->compiled = compiled;
    if (place != NULL) {
      (void)snprintf(call->name, sizeof call->name, "%.31s at %.60s", name, place);
      name = call->name;
    }
    atomic_fetch_add(&compiled->references, 1);
    for (uint32_t k = 0; k < count; k++) {
      call->arrays[k] = k < compiled->input_count ? inputs[k] : outputs[k - compiled->input_count];
    }
    uint32_t reads = list_variables(call, variables);
    const cleave_operation_info_t info = {.size = sizeof info,
                                          .name = name,
                                          .run = run_call,
                                          .end = end_call,
                                          .self = call,
                                          .reads = variables,
                                          .read_count = reads,
                                          .writes = variables + reads,
                                          .write_count = compiled->output_count};
    status = cleave_engine_push(imperative->engine, &info, error);
    if (status != CLEAVE_OK) {
      end_call(call);
    }
  }
  if (variables != few) {
    cleave_free(variables);
  }
  return status;
}

cleave_status_t imperative_operator_run(cleave_imperative_t *imperative, imperative_operator_t *compiled,
                                        const char *name, const char *place, cleave_array_t *const *inputs,
                                        cleave_array_t **outputs, cleave_error_t *error) {
  bool waits = false;
  for (uint32_t k = 0; k < compiled->output_count; k++) {
    outputs[k] = NULL;
  }
  cleave_status_t status = allocate_outputs(imperative, compiled, outputs, &waits, error);
  CLEAVE_THEN(status, push(imperative, compiled, name, place, inputs, outputs, error));
  if (status == CLEAVE_OK && waits) {
    const void *data = NULL;
    status = cleave_array_data(outputs[0], &data, error);
  }
  CLEAVE_THEN(status, record_note(imperative, compiled, inputs, outputs, error));
  if (status != CLEAVE_OK) {
    release_all(outputs, compiled->output_count);
  }
  return status;
}

cleave_status_t cleave_imperative_call(cleave_imperative_t *imperative, const imperative_request_t *request,
                                       const char *place, cleave_array_t **outputs, cleave_error_t *error) {
  const char *name = request->op->name;
  imperative_operator_t *compiled = NULL;
  for (uint32_t k = 0; k < request->output_count; k++) {
    outputs[k] = NULL;
  }
  CLEAVE_TRY(check_inputs(name, request->inputs, request->input_count, error));
  CLEAVE_TRY(imperative_operator_get(imperative, request, &compiled, error));
  cleave_status_t status =
      imperative_operator_run(imperative, compiled, name, place, request->inputs, outputs, error);
  imperative_operator_release(compiled);
  return status;
}

static cleave_status_t find_op(const char *name, const cleave_op_t **out_op, cleave_error_t *error) {
  char hint[128];
  *out_op = cleave_op_find_full(name);
  return *out_op != NULL ? CLEAVE_OK
                         : cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "there is no operator '%s'%s",
                                            name, cleave_op_hint(name, hint, sizeof hint));
}

static cleave_status_t read_attributes(const cleave_attribute_view_t *views, uint32_t count,
                                       const cleave_op_t *op, cleave_attribute_t *attributes,
                                       cleave_error_t *error) {
  for (uint32_t k = 0; k < count; k++) {
    attributes[k] = views[k];
    attributes[k].tensor = NULL;
    attributes[k].held = NULL;
    if (views[k].kind == CLEAVE_ATTRIBUTE_TENSOR) {
      const cleave_tensor_view_t *view = views[k].tensor;
      CLEAVE_TRY(cleave_tensor_create(view->dtype, view->rank, view->dims, &attributes[k].held, error));
      memcpy(attributes[k].held->data, view->data, attributes[k].held->bytes);
      cleave_tensor_touch(attributes[k].held);
    }
    if (cleave_op_find_attribute(op, attributes[k].name) == NULL) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "%s has no attribute '%s'", op->name,
                              attributes[k].name);
    }
  }
  return CLEAVE_OK;
}

// Wide: what an operator is called with, and what it gives.
cleave_status_t cleave_array_call(cleave_imperative_t *imperative, const char *op,
                                  cleave_array_t *const *inputs, uint32_t input_count,
                                  const cleave_attribute_view_t *attributes, uint32_t attribute_count,
                                  cleave_array_t **outputs, uint32_t output_count, cleave_error_t *error) {
  enum { FEW = 16 };
  const cleave_op_t *found = NULL;
  cleave_attribute_t few[FEW];
  memset(few, 0, sizeof few);
  CLEAVE_TRY(cleave_list_check("inputs", inputs, input_count, error));
  CLEAVE_TRY(cleave_list_check("attributes", attributes, attribute_count, error));
  CLEAVE_TRY(cleave_list_check("outputs", outputs, output_count, error));
  for (uint32_t k = 0; k < output_count; k++) {
    outputs[k] = NULL;
  }
  CLEAVE_TRY(find_op(op, &found, error));
  cleave_attribute_t *own =
      attribute_count <= FEW ? few : cleave_allocate_zeroed(attribute_count, sizeof *own);
  if (own == NULL) {
    return cleave_error_out_of_memory(error);
  }
  cleave_status_t status = read_attributes(attributes, attribute_count, found, own, error);
  if (status == CLEAVE_OK) {
    const imperative_request_t request = {.op = found,
                                          .inputs = inputs,
                                          .input_count = input_count,
                                          .attributes = own,
                                          .attribute_count = attribute_count,
                                          .output_count = output_count};
    status = cleave_imperative_call(imperative, &request, NULL, outputs, error);
  }
  for (uint32_t k = 0; k < attribute_count; k++) {
    if (own[k].kind == CLEAVE_ATTRIBUTE_TENSOR) {
      cleave_tensor_release(own[k].held);
    }
  }
  if (own != few) {
    cleave_free(own);
  }
  return status;
}

// SPDX-License-Identifier: Apache-2.0
// Records of a thread are a list, the innermost first; what is called is noted by each.
#include "imperative/record.h"

static _Thread_local cleave_record_t *innermost;
static _Thread_local uint32_t pauses;

bool record_is_on(void) {
  return innermost != NULL && pauses == 0;
}

cleave_status_t cleave_record_begin(cleave_imperative_t *imperative, cleave_record_t **out_record,
                                    cleave_error_t *error) {
  *out_record = NULL;
  cleave_record_t *record = cleave_allocate_zeroed(1, sizeof *record);
  if (record == NULL) {
    return cleave_error_out_of_memory(error);
  }
  record->imperative = imperative;
  record->outer = innermost;
  record->is_open = true;
  innermost = record;
  *out_record = record;
  return CLEAVE_OK;
}

void cleave_record_end(cleave_record_t *record) {
  cleave_record_t **link = &innermost;
  while (*link != NULL && *link != record) {
    link = &(*link)->outer;
  }
  if (*link == record && record->is_open) {
    *link = record->outer;
    record->is_open = false;
  }
}

void cleave_record_destroy(cleave_record_t *record) {
  if (record == NULL) {
    return;
  }
  cleave_record_end(record);
  for (size_t k = 0; k < record->calls.count; k++) {
    imperative_operator_release(record->calls.items[k].compiled);
  }
  for (size_t k = 0; k < record->arrays.count; k++) {
    cleave_array_release(record->arrays.items[k]);
  }
  cleave_array_free(&record->calls);
  cleave_array_free(&record->arrays);
  cleave_free(record);
}

void cleave_record_pause(void) {
  pauses++;
}

void cleave_record_resume(void) {
  pauses -= pauses > 0 ? 1 : 0;
}

static cleave_status_t note(cleave_record_t *record, imperative_operator_t *compiled,
                            cleave_array_t *const *inputs, cleave_array_t *const *outputs,
                            cleave_error_t *error) {
  uint32_t count = compiled->input_count + compiled->output_count;
  const recorded_call_t call = {.compiled = compiled, .first = record->arrays.count};
  CLEAVE_TRY(cleave_array_reserve(&record->calls, 1, error));
  CLEAVE_TRY(cleave_array_reserve(&record->arrays, count, error));
  for (uint32_t k = 0; k < count; k++) {
    cleave_array_t *array = k < compiled->input_count ? inputs[k] : outputs[k - compiled->input_count];
    cleave_array_push_reserved(&record->arrays, array != NULL ? cleave_array_retain(array) : NULL);
  }
  atomic_fetch_add(&compiled->references, 1);
  cleave_array_push_reserved(&record->calls, call);
  return CLEAVE_OK;
}

cleave_status_t record_note(cleave_imperative_t *imperative, imperative_operator_t *compiled,
                            cleave_array_t *const *inputs, cleave_array_t *const *outputs,
                            cleave_error_t *error) {
  for (cleave_record_t *record = innermost; pauses == 0 && record != NULL; record = record->outer) {
    if (record->imperative == imperative) {
      CLEAVE_TRY(note(record, compiled, inputs, outputs, error));
    }
  }
  return CLEAVE_OK;
}

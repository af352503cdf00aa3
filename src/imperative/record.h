// SPDX-License-Identifier: Apache-2.0
/* Records of calls (cleave/array.h): what is noted, and what gradients are compiled for. */
#ifndef CLEAVE_IMPERATIVE_RECORD_H
#define CLEAVE_IMPERATIVE_RECORD_H

#include "imperative/operators.h"

typedef struct recorded_call {
  imperative_operator_t *compiled; /* retained */
  size_t first;                    /* of its inputs, then its outputs, among the arrays of the record */
} recorded_call_t;

struct cleave_record {
  cleave_imperative_t *imperative;
  cleave_record_t *outer; /* of the same thread, while it is open */
  bool is_open;
  CLEAVE_ARRAY(recorded_call_t) calls;
  CLEAVE_ARRAY(cleave_array_t *) arrays; /* retained; NULL: an input that is left out */
};

/* Adds a call to all open records of this thread, unless they pause. */
CLEAVE_STATUS record_note(cleave_imperative_t *imperative, imperative_operator_t *compiled,
                          cleave_array_t *const *inputs, cleave_array_t *const *outputs,
                          cleave_error_t *error);
/* Is a record of this thread open, and not paused? */
bool record_is_on(void);

/* The graph of some noted calls with gradients, compiled. */
struct record_form {
  _Atomic uint32_t references;
  unsigned char *key; /* calls by their compiled operators, which `parts` retains; owned */
  size_t key_bytes;
  imperative_operator_t **parts;
  size_t part_count;
  uint32_t *inputs; /* arrays that it reads, by their numbers in the way */
  size_t input_count;
  bool *has_gradient; /* by distinct parameter; the outputs of `compiled` are those that have one */
  imperative_operator_t *compiled; /* NULL: no parameter has one */
};

/* NULL is a no-op. */
void record_form_release(record_form_t *form);
/* Gives up all that are kept (record_form.c). */
void record_forms_clear(cleave_imperative_t *imperative);

/* The calls on the ways from parameters to results, with numbers for their arrays. */
typedef struct record_way {
  const cleave_record_t *record;
  const cleave_record_request_t *request;
  CLEAVE_ARRAY(const recorded_call_t *) calls; /* in order */
  CLEAVE_ARRAY(cleave_array_t *) arrays;       /* by number: distinct parameters first; borrowed */
  CLEAVE_ARRAY(uint32_t) numbers;              /* of the arrays of the calls, one call after the other */
  CLEAVE_ARRAY(uint32_t) ends;                 /* numbers of the results, then of their heads */
  CLEAVE_ARRAY(uint32_t) places;               /* by parameter: its number, NONE if no result depends on it */
  uint32_t parameter_count;                    /* distinct ones on which a result depends */
} record_way_t;

/* Number of an array that is left out, and of a head of ones. */
#define RECORD_NONE UINT32_MAX

/* The form for the way: one that is kept, or a new one; with a reference. */
CLEAVE_STATUS record_form_get(const record_way_t *way, record_form_t **out_form, cleave_error_t *error);

#endif /* CLEAVE_IMPERATIVE_RECORD_H */

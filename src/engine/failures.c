// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_types.h"

#include <string.h>

/* Forgets the failures at the front that were reported, so that the list does not grow with a program that
 * waits for variables only. */
static void forget_reported(cleave_engine_t *engine) {
  while (engine->failures != NULL && !engine_failure_holds(engine->failures)) {
    engine_failure_t *failure = engine->failures;
    engine->failures = failure->next;
    engine->failure_count--;
    engine_failure_release(failure);
  }
  if (engine->failures == NULL) {
    engine->last_failure = NULL;
  }
}

engine_failure_t *engine_failure_create(cleave_engine_t *engine, const char *name,
                                        const cleave_error_t *error) {
  engine_failure_t *failure = cleave_allocate(1, sizeof *failure);
  if (failure == NULL) {
    engine->spare_failure->references++;
    atomic_store_explicit(&engine->spare_failure->number, ++engine->failure_number, memory_order_relaxed);
    atomic_store(&engine->spare_failure->is_reported, false);
    return engine->spare_failure;
  }
  failure->engine = engine;
  failure->next = NULL;
  failure->references = 1;
  atomic_init(&failure->number, ++engine->failure_number);
  atomic_init(&failure->is_reported, false);
  cleave_error_clear(&failure->error);
  if (name == NULL) {
    (void)cleave_error_take(&failure->error, error);
  } else {
    (void)cleave_error_set(&failure->error, error->status, "operation '%s': %s", name, error->message);
    memcpy(failure->error.file, error->file, sizeof failure->error.file);
    memcpy(failure->error.rule, error->rule, sizeof failure->error.rule);
    failure->error.line = error->line;
    failure->error.hint = error->hint;
  }
  forget_reported(engine);
  if (engine->failure_count < ENGINE_MAX_FAILURES) {
    failure->references++;
    engine->failure_count++;
    *(engine->last_failure != NULL ? &engine->last_failure->next : &engine->failures) = failure;
    engine->last_failure = failure;
  }
  return failure;
}

void engine_failure_release(engine_failure_t *failure) {
  if (failure != NULL && --failure->references == 0) {
    cleave_free(failure);
  }
}

void engine_failure_set(engine_failure_t **slot, engine_failure_t *failure) {
  if (*slot != failure) {
    if (failure != NULL) {
      failure->references++;
    }
    engine_failure_release(*slot);
    *slot = failure;
  }
}

cleave_status_t engine_failure_report(engine_failure_t *failure, cleave_error_t *error) {
  if (!engine_failure_holds(failure)) {
    return CLEAVE_OK;
  }
  atomic_store_explicit(&failure->is_reported, true, memory_order_relaxed);
  (void)cleave_error_take(error, &failure->error);
  return failure->error.status;
}

cleave_status_t engine_failures_report(cleave_engine_t *engine, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  while (engine->failures != NULL) {
    CLEAVE_THEN(status, engine_failure_report(engine->failures, error));
    atomic_store_explicit(&engine->failures->is_reported, true, memory_order_relaxed);
    forget_reported(engine);
  }
  CLEAVE_THEN(status, engine_failure_report(engine->spare_failure, error));
  atomic_store_explicit(&engine->reported, engine->failure_number, memory_order_relaxed);
  return status;
}

cleave_status_t engine_failures_start(cleave_engine_t *engine, cleave_error_t *error) {
  engine->spare_failure = cleave_allocate_zeroed(1, sizeof *engine->spare_failure);
  CLEAVE_TRY_MEMORY(engine->spare_failure, error);
  engine->spare_failure->engine = engine;
  engine->spare_failure->references = 1;
  atomic_init(&engine->spare_failure->is_reported, true);
  atomic_init(&engine->spare_failure->number, 0);
  (void)cleave_error_set(&engine->spare_failure->error, CLEAVE_ERROR_OUT_OF_MEMORY,
                         "an operation failed, and there is no memory to say why");
  return CLEAVE_OK;
}

void engine_failures_end(cleave_engine_t *engine) {
  while (engine->failures != NULL) {
    engine_failure_t *failure = engine->failures;
    engine->failures = failure->next;
    engine_failure_release(failure);
  }
  engine_failure_release(engine->spare_failure);
}

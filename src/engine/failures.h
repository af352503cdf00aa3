// SPDX-License-Identifier: Apache-2.0
/* Errors of operations, on their way to those who wait. With the lock held, unless said otherwise. */
#ifndef CLEAVE_ENGINE_FAILURES_H
#define CLEAVE_ENGINE_FAILURES_H

#include "engine/engine_types.h"

CLEAVE_MUST_USE cleave_status_t engine_failures_start(cleave_engine_t *engine, cleave_error_t *error);
void engine_failures_end(cleave_engine_t *engine);

/* A failure of the operation `name` (NULL: of none), with one reference. The engine remembers the oldest ones
 * for who waits for all. If there is no memory, it is the engine's spare one, which says so. */
engine_failure_t *engine_failure_create(cleave_engine_t *engine, const char *name,
                                        const cleave_error_t *error);
void engine_failure_release(engine_failure_t *failure);

/* Takes the place of `*slot`. `failure` may be NULL. */
void engine_failure_set(engine_failure_t **slot, engine_failure_t *failure);

/* Does it still hold up operations? NULL does not. Without the lock. */
static inline bool engine_failure_holds(const engine_failure_t *failure) {
  return failure != NULL && !atomic_load_explicit(&failure->is_reported, memory_order_relaxed) &&
         atomic_load_explicit(&failure->number, memory_order_relaxed) >
             atomic_load_explicit(&failure->engine->reported, memory_order_relaxed);
}

/* Hands the error out and counts it as reported. Returns its status; CLEAVE_OK if it does not hold. */
cleave_status_t engine_failure_report(engine_failure_t *failure, cleave_error_t *error);

/* Reports the oldest failure that nobody was told of; all others count as reported, too. */
cleave_status_t engine_failures_report(cleave_engine_t *engine, cleave_error_t *error);

#endif /* CLEAVE_ENGINE_FAILURES_H */

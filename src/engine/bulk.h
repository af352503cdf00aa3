// SPDX-License-Identifier: Apache-2.0
/* Bulks: what a thread pushes, joined into one task. */
#ifndef CLEAVE_ENGINE_BULK_H
#define CLEAVE_ENGINE_BULK_H

#include "engine/engine_types.h"

/* The bulk that this thread joins operations into; NULL: none. */
engine_bulk_t *engine_bulk_here(const cleave_engine_t *engine);

/* Does the operation, which was checked, fit into the thread's bulks? */
bool engine_bulk_takes(const engine_bulk_t *bulk, const cleave_operation_info_t *info);
CLEAVE_MUST_USE cleave_status_t engine_bulk_add(engine_bulk_t *bulk, const cleave_operation_info_t *info,
                                                cleave_error_t *error);
/* Pushes what the thread has joined; NULL and nothing joined are a no-op. */
void engine_bulk_flush(engine_bulk_t *bulk);

CLEAVE_MUST_USE cleave_status_t engine_bulks_start(cleave_engine_t *engine, cleave_error_t *error);
/* Nobody pushes any more. */
void engine_bulks_end(cleave_engine_t *engine);

#endif /* CLEAVE_ENGINE_BULK_H */

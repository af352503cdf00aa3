// SPDX-License-Identifier: Apache-2.0
/* Operations: checked, made into tasks, pushed. */
#ifndef CLEAVE_ENGINE_OPERATIONS_H
#define CLEAVE_ENGINE_OPERATIONS_H

#include "engine/engine_types.h"

/* CLEAVE_ERROR_INVALID_ARGUMENT with what is wrong, or that the process was forked. */
CLEAVE_MUST_USE cleave_status_t engine_operation_check(const cleave_engine_t *engine,
                                                       const cleave_operation_info_t *info,
                                                       cleave_error_t *error);

/* Pushes what was checked, by itself. `operation` (or NULL) is what it is a run of. */
CLEAVE_MUST_USE cleave_status_t engine_operation_push(cleave_engine_t *engine,
                                                      const cleave_operation_info_t *info,
                                                      cleave_operation_t *operation, cleave_error_t *error);

/* With the lock held: where tasks for the device go. */
void engine_task_place(engine_task_t *task, uint32_t device, uint32_t flags, int32_t priority);

/* With the lock held, after engine_task_submit: gives the lock back; a serial engine runs it. */
void engine_push_end(cleave_engine_t *engine);

/* How often this process is a fork of another. */
uint64_t engine_fork_count(void);

#endif /* CLEAVE_ENGINE_OPERATIONS_H */

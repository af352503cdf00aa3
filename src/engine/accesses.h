// SPDX-License-Identifier: Apache-2.0
/* Who has a variable, and who waits for it. With the lock held. */
#ifndef CLEAVE_ENGINE_ACCESSES_H
#define CLEAVE_ENGINE_ACCESSES_H

#include "engine/engine_types.h"

/* The task is in the order of pushes now; engine_access_add gives it variables, engine_task_submit lets it
 * run. */
void engine_task_begin(engine_task_t *task);
/* It will need the variable, unless it has been asked for by this task already: writes come first. The task
 * has room for it. */
void engine_access_add(engine_task_t *task, cleave_variable_t *variable, bool is_write);
void engine_task_submit(engine_task_t *task);

/* The failure for which the task is skipped, or NULL. */
engine_failure_t *engine_task_inherited(const engine_task_t *task);

/* The task has ended: its variables go to those that wait for them, with its failure if it wrote them. */
void engine_task_finish(engine_task_t *task);

void engine_variable_free(cleave_variable_t *variable);

#endif /* CLEAVE_ENGINE_ACCESSES_H */

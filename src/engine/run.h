// SPDX-License-Identifier: Apache-2.0
/* Runs tasks: workers, the thread that waits for streams, and serial engines. */
#ifndef CLEAVE_ENGINE_RUN_H
#define CLEAVE_ENGINE_RUN_H

#include "engine/engine_types.h"

/* Does the calling thread run an operation of this engine? */
bool engine_runs_here(const cleave_engine_t *engine);

/* Bodies of threads: of a worker, and of the one that waits for streams on behalf of host tasks (an engine).
 */
void *engine_worker_main(void *worker);
void *engine_watcher_main(void *engine);

/* With the lock held, of a serial engine: runs what is ready, unless a thread does already. */
void engine_drain(cleave_engine_t *engine);

/* See cleave_operation_complete. */
void engine_complete(engine_task_t *task, cleave_status_t status, const char *message);

#endif /* CLEAVE_ENGINE_RUN_H */

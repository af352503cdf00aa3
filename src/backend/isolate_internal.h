/* SPDX-License-Identifier: Apache-2.0 */
/* What isolate.c and isolate_program.c share: an isolated library, and the worker at a moment. */
#ifndef CLEAVE_BACKEND_ISOLATE_INTERNAL_H
#define CLEAVE_BACKEND_ISOLATE_INTERNAL_H

#include "backend/isolate.h"
#include "backend/worker_process.h"
#include "base/arena.h"

enum { CLEAVE_ISOLATE_RULE_FILES = 64 };

typedef struct cleave_isolate_device {
  char name[64];
  uint64_t memory_bytes;
} cleave_isolate_device_t;

struct cleave_isolate {
  char name[64];
  char *path; /* for messages */
  char *absolute;
  cleave_log_t *log;
  cleave_isolation_options_t options; /* without zeros */
  pthread_mutex_t lock;               /* around `worker`, and the answers of `configure` */
  cleave_worker_t *worker;            /* never NULL once opened */
  uint32_t functions;                 /* CLEAVE_HAS_... */
  bool is_initialised;
  bool lacks_memory; /* while the table was read */
  cleave_backend_t table;
  cleave_backend_extensions_t extensions; /* the rule files */
  const char *rule_files[CLEAVE_ISOLATE_RULE_FILES];
  cleave_isolate_device_t devices[CLEAVE_MOST_DEVICES]; /* as they were when it started */
  uint32_t device_count;
  cleave_arena_t arena;   /* texts of the table */
  cleave_arena_t answers; /* of `configure` */
  atomic_uint last_program;
};

/* The worker now; the caller releases it. */
cleave_worker_t *cleave_isolate_worker(cleave_isolate_t *isolate);

/* Appends the region to the request. A failure is in `message`. */
CLEAVE_MUST_USE cleave_status_t cleave_isolate_put_region(cleave_worker_t *worker,
                                                          const cleave_region_view_t *region,
                                                          cleave_message_t *message);

/* For the table. */
extern const cleave_backend_devices_t cleave_isolate_devices;
/* Reads what the reply to INITIALISE says of devices. */
void cleave_isolate_read_devices(cleave_isolate_t *isolate, cleave_wire_in_t *reply);
cleave_status_t cleave_isolate_compile(void *state, const cleave_region_view_t *region,
                                       const cleave_compile_options_t *options, void **out_program,
                                       cleave_message_t *message);
void cleave_isolate_unload(void *program);
const cleave_program_info_t *cleave_isolate_info(const void *program);
cleave_status_t cleave_isolate_run(void *program, const cleave_run_args_t *args, cleave_message_t *message);
uint32_t cleave_isolate_profile(const void *program, const cleave_step_time_t **out_steps);

#endif /* CLEAVE_BACKEND_ISOLATE_INTERNAL_H */

// SPDX-License-Identifier: Apache-2.0
/*
 * The library's state, and what its files share. Everything hangs on `mirror_t`: nothing is static, so that
 * the library can be loaded under several names at once.
 *
 * Every function that fails writes one line into `message` and returns the status.
 */
#ifndef MIRROR_H
#define MIRROR_H

#include <stdatomic.h>

#include "cleave/backend.h"
#include "pool.h"

#define MIRROR_VERSION "1.0"

enum { MIRROR_DEVICES = 2, MIRROR_MAX_ANSWERS = 24 };

/* What `configure` sets. Read while programs run, so each is atomic. */
typedef struct mirror_settings {
  atomic_bool guards; /* device memory is inaccessible outside of the library's own calls */
  atomic_bool stages; /* tensors in host memory are copied to the device and back; otherwise refused */
  atomic_uint_least64_t latency_ns; /* that every launch takes before its work starts */
} mirror_settings_t;

/* What `configure` answers. */
#define MIRROR_COUNTERS(X)                                       \
  X(bytes_copied_to)   /* by copy_to */                          \
  X(bytes_copied_from) /* by copy_from */                        \
  X(bytes_staged)      /* between host and device within runs */ \
  X(compiled)          /* programs, those from blobs too */      \
  X(loaded)            /* programs from blobs */                 \
  X(runs)              /* of programs */                         \
  X(executors)         /* made */                                \
  X(executions)        /* of executors */                        \
  X(launches_queued)   /* runs and executions put on a stream */ \
  X(misuses)           /* calls that were refused or ignored for what they asked */

typedef struct mirror_counters {
#define MIRROR_COUNTER(name) atomic_uint_least64_t name;
  MIRROR_COUNTERS(MIRROR_COUNTER)
#undef MIRROR_COUNTER
} mirror_counters_t;

typedef struct mirror {
  const cleave_host_t *host;
  const cleave_backend_t *cpu; /* the table of our cpu kernels inside of this library */
  void *cpu_state;
  mirror_pool_t pools[MIRROR_DEVICES];
  mirror_settings_t settings;
  mirror_counters_t counters;
  cleave_key_value_t answers[MIRROR_MAX_ANSWERS];
  char answer_texts[MIRROR_MAX_ANSWERS][32];
} mirror_t;

/* Writes the line of a refusal or failure, and returns `status`. */
CLEAVE_MUST_USE cleave_status_t mirror_fail(cleave_message_t *message, cleave_status_t status,
                                            cleave_reason_code_t code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same, counted as a misuse of the library by its host. */
CLEAVE_MUST_USE cleave_status_t mirror_misuse(mirror_t *mirror, cleave_message_t *message, const char *format,
                                              ...) __attribute__((format(printf, 3, 4)));

static inline void mirror_count(atomic_uint_least64_t *counter, uint64_t amount) {
  (void)atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

CLEAVE_MUST_USE cleave_status_t mirror_check_device(mirror_t *mirror, uint32_t device,
                                                    cleave_message_t *message);

/* Bytes of a tensor; false where it is not dense, its type is not known, or they are too many. */
bool mirror_tensor_bytes(const cleave_tensor_view_t *tensor, size_t *out_bytes);

/* Lets `nanoseconds` pass. */
void mirror_sleep(uint64_t nanoseconds);

/* Decimal digits only; false for anything else. */
bool mirror_parse_number(const char *text, uint64_t *out_number);

/* ---- groups of the header, a file each ---- */

extern const cleave_backend_devices_t mirror_devices;       /* device.c */
extern const cleave_backend_imperative_t mirror_imperative; /* executor.c */
extern const cleave_backend_blobs_t mirror_blobs;           /* blob.c */

/* settings.c */
cleave_status_t mirror_configure(void *state, const cleave_key_value_t *settings, uint32_t setting_count,
                                 const cleave_key_value_t **out_answers, uint32_t *out_answer_count,
                                 cleave_message_t *message);

#endif /* MIRROR_H */

// SPDX-License-Identifier: Apache-2.0
/*
 * Sessions over tests/accelerators/device.c: models as Lua text with one float32 input 'x' of 8 elements,
 * nodes named by where they run: 'd0...' and 'd1...' on the library's devices, all others on cpu. Any failure
 * fails the test.
 */
#ifndef CLEAVE_TESTS_DEVICE_CASE_H
#define CLEAVE_TESTS_DEVICE_CASE_H

#include "rule_case.h"
#include "runtime/session/session.h"

enum { DEVICE_CASE_SIZE = 8 };

typedef struct device_case {
  rule_case_t rule;
  cleave_session_t *session;
  float x[DEVICE_CASE_SIZE];
  cleave_tensor_view_t view; /* of x */
} device_case_t;

/* Loads the library, twice, with what it is to have ("streams executors"); once per test. */
void device_case_load(const char *has);
/* What the library is told, and asked, as 'device'. */
void device_case_set(const char *key, long value);
long device_case_ask(const char *key);

/* Rules that put nodes of 'device' where their names say, as few regions as possible; attributes as Lua text
 * ("refuse = 1") are attached to all of them. NULL: none. */
const char *device_case_rules(const char *attributes);

/* Builds and partitions. `rules` NULL: by the names of nodes. */
device_case_t device_case_create(const char *model, const char *rules);
/* The session over it, with x as its input; options may be NULL. */
void device_case_compile(device_case_t *c, const cleave_session_options_t *options);
/* The same where it fails: the message. */
const char *device_case_compile_failure(device_case_t *c, const cleave_session_options_t *options);
void device_case_deinit(device_case_t *c);

/* x[k] = base + k, every second one negative; then a run. */
void device_case_run(device_case_t *c, float base);
float device_case_value(const device_case_t *c, uint32_t output, uint32_t index);
/* Every element of every output equals that of a run on cpu alone. */
void device_case_check(const device_case_t *c);
/* Steps in order: "copy to device:0 x|d0a on device:0|copy from device:0 a|Exp on cpu". */
const char *device_case_steps(const device_case_t *c);

/* Loads the library, and runs random graphs over the host and both devices three times each: all of them
 * compute what cpu computes. */
void device_case_run_random(const char *has, const cleave_session_options_t *options, uint32_t graphs,
                            long latency_us);

#endif /* CLEAVE_TESTS_DEVICE_CASE_H */

// SPDX-License-Identifier: Apache-2.0
/*
 * Sessions on the CUDA backend over the stand-ins of tests/cuda. A test sets what is to fail before its first
 * call: each has a process of its own, in which the backend starts once.
 */
#ifndef CLEAVE_TESTS_GPU_CASE_H
#define CLEAVE_TESTS_GPU_CASE_H

#include "session_case.h"
#include "unit.h"

/* The stand-ins are found; `fail` as in tests/cuda/stand_in.h, or NULL. */
void gpu_case_stand_ins(const char *fail);
void gpu_case_fail(const char *fail);

/* Why the backend does not start. */
cleave_error_t gpu_case_refusal(void);

/* What the backend answers to a key. */
const char *gpu_case_ask(const char *key);

/* y = Tanh(Relu(x * w + b) + x), x of 8 x 16: a product with its epilogue and one kernel. */
session_case_t gpu_case_graph(void);
/* The status of making the session. */
cleave_status_t gpu_case_compile(session_case_t *c, bool fallback, const char *device, cleave_error_t *error);
/* `option` may be NULL. */
cleave_status_t gpu_case_compile_with(session_case_t *c, bool fallback, const cleave_backend_option_t *option,
                                      cleave_error_t *error);
/* Runs, and compares with what cpu computes. */
void gpu_case_expect(session_case_t *c);
/* Runs; the error. */
cleave_error_t gpu_case_failed_run(session_case_t *c);

#endif /* CLEAVE_TESTS_GPU_CASE_H */

// SPDX-License-Identifier: Apache-2.0
/*
 * Libraries here and in processes of their own: loading them either way, what they log, and that nothing of
 * their processes is left. Any failure fails the test.
 */
#ifndef CLEAVE_TESTS_ISOLATE_CASE_H
#define CLEAVE_TESTS_ISOLATE_CASE_H

#include "session_case.h"

#define ISOLATE_HOSTILE(name) CLEAVE_BINARY_DIR "/tests/hostile/lib" name ".so"
#define ISOLATE_ACCELERATOR(name) CLEAVE_BINARY_DIR "/accelerators/lib" name ".so"

typedef enum isolate_way {
  ISOLATE_HERE,    /* in this process */
  ISOLATE_APART,   /* in one of its own */
  ISOLATE_FALLING, /* and `cpu` takes over */
  ISOLATE_SHORT    /* in one of its own, which has 0.8 s for everything */
} isolate_way_t;

/* Loads a library; `misdeed` goes into CLEAVE_TEST_MISDEED, NULL: none. */
void isolate_case_load(const char *path, isolate_way_t way, const char *misdeed);
void isolate_case_unload(const char *name);
/* Starts a new process where that of the library is lost. */
void isolate_case_revive(const char *path, const char *name);

cleave_isolation_t isolate_case_isolation(const char *name);

enum { ISOLATE_COUNT = 6 };
extern const float isolate_case_data[ISOLATE_COUNT];
extern const int64_t isolate_case_dims[2];
/* x -> Relu -> Neg -> Relu (0 everywhere), the first Relu as a second output: planned for a backend, x fed.
 */
session_case_t isolate_case_graph(const char *backend);
session_case_t isolate_case_compiled(const char *backend);
/* The outputs are right; the same after a run. */
void isolate_case_check(const session_case_t *c);
void isolate_case_run(session_case_t *c);

/* Every process was waited for. */
void isolate_case_check_no_children(void);

/* Lines of the log from now on, each ended by '\n'; levels up to information. */
void isolate_case_listen(void);
const char *isolate_case_lines(void);

/* Memory of this process that is resident, in pages, and its descriptors: for growth. */
long isolate_case_pages(void);
size_t isolate_case_descriptors(void);

/* Models of the operators of tests/hostile/answers/bad_operators.c. */
#define ISOLATE_TWICE(does)                       \
  "local x = g.input('x', 'float32', { 2, 3 })\n" \
  "g.output('y', g['bad.op.Twice'](x, { does = '" does "', name = 'n' }))"
#define ISOLATE_PLACES(does)                   \
  "local x = g.input('x', 'float32', { 6 })\n" \
  "g.output('y', g['bad.op.Places'](x, { does = '" does "', name = 'n' }))"

/* The message of the first failure, or "" after two runs with { -1, 2, -3, 4, 0, 0.5 }. */
const char *isolate_case_operate(const char *text, int32_t rank, const int64_t *dims, const float *expected,
                                 int64_t count);
/* `part` is in `found`; "": nothing is. */
void isolate_case_expect(const char *found, const char *part);

#endif /* CLEAVE_TESTS_ISOLATE_CASE_H */

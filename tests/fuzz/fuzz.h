// SPDX-License-Identifier: Apache-2.0
/*
 * Kinds of input that come from outside: how an input of a kind comes about, how it is damaged, and what
 * cleave makes of it. Both the tests of replay_*.c, with a fixed seed, and the libFuzzer targets (target.c)
 * use them. Random numbers are those of damage_random.
 */
#ifndef CLEAVE_TESTS_FUZZ_H
#define CLEAVE_TESTS_FUZZ_H

#include "base/text.h"
#include "cleave/cleave.h"
#include "graph/graph.h"

typedef enum fuzz_outcome {
  FUZZ_REFUSED, /* with one line that says why */
  FUZZ_READ,    /* it is well-formed, and refused later */
  FUZZ_USED,
  FUZZ_OUTCOMES
} fuzz_outcome_t;

typedef struct fuzz_kind {
  /* Appends an input that nobody has damaged. */
  void (*draw)(cleave_text_t *out);
  /* Changes one thing in a buffer with room for `room` bytes; returns the new size. */
  size_t (*damage)(char *data, size_t size, size_t room);
  /* Gives the bytes to cleave. Ends the process if cleave does what it must never do. */
  fuzz_outcome_t (*run)(const void *data, size_t size);
} fuzz_kind_t;

extern const fuzz_kind_t fuzz_onnx;    /* ONNX models: read, written, loaded, run */
extern const fuzz_kind_t fuzz_plans;   /* plans as JSON, for the sample: rebuilt, compared, run */
extern const fuzz_kind_t fuzz_regions; /* regions as JSON: printed, loaded as models, run */
extern const fuzz_kind_t fuzz_wire;    /* regions and edits as messages between processes */
extern const fuzz_kind_t fuzz_rules;   /* rule files, over the sample and over the graphs of their tests */
extern const fuzz_kind_t fuzz_scripts; /* model scripts: every operator with any arguments */

/* Draws inputs, damages each up to `most` times and runs them: at most `rounds`, and for `milliseconds`.
 * Counts the outcomes, and returns how many inputs there were. */
size_t fuzz_replay(const fuzz_kind_t *kind, size_t rounds, double milliseconds, size_t most,
                   size_t counts[FUZZ_OUTCOMES]);

/* ---- for kinds ---- */

/* Ends the process, after one line that says what is wrong, unless `condition` holds. */
#define fuzz_expect(condition, ...)                           \
  do {                                                        \
    if (!(condition)) {                                       \
      fuzz_fail(__FILE__, __LINE__, #condition, __VA_ARGS__); \
    }                                                         \
  } while (0)
_Noreturn void fuzz_fail(const char *file, int line, const char *condition, const char *format, ...)
    CLEAVE_PRINTF(4, 5);

/* The call succeeds. Inside `call`, the error to pass is `e`. */
#define fuzz_ok(call)                                                                       \
  do {                                                                                      \
    cleave_error_t fuzz_error_ = CLEAVE_ERROR_INIT;                                         \
    cleave_error_t *e = &fuzz_error_;                                                       \
    cleave_status_t fuzz_status_ = (call);                                                  \
    fuzz_expect(fuzz_status_ == CLEAVE_OK, "status %d: %s", (int)fuzz_status_, e->message); \
  } while (0)

/* An error is one of `statuses` (bits FUZZ_STATUS) and has a message of one line. No error is one as well. */
#define FUZZ_STATUS(name) (1u << (unsigned)CLEAVE_ERROR_##name)
void fuzz_check(cleave_status_t status, const cleave_error_t *error, unsigned statuses);

/* A copy that ends where the bytes end, for sanitizers to see what is read beyond; freed with free. */
void *fuzz_copy(const void *data, size_t size);

/* One of the files of corpus/<folder>, drawn. Borrowed; stays. */
typedef struct fuzz_text {
  const char *data;
  size_t size;
} fuzz_text_t;
fuzz_text_t fuzz_draw_corpus(const char *folder);

/* The graph that a model script builds. */
CLEAVE_MUST_USE cleave_status_t fuzz_build(const char *text, size_t length, cleave_graph_t **out_graph,
                                           cleave_error_t *error);

/* conv -> batch norm -> add -> relu, and a gelu and a softmax beside it. Borrowed; stays. */
cleave_model_t *fuzz_sample(void);

/* Runs the model on made-up inputs, by the plan (or NULL) if it has one, unless it is large: what sizes the
 * model leaves open are 2. A run may fail with a message. Appends the outputs to `out` (may be NULL) if they
 * are numbers. Returns whether it ran to the end. */
bool fuzz_run_model(cleave_model_t *model, const cleave_plan_t *plan, cleave_text_t *out);

/* words.c: a rule file, and a model script, in which everything is called with anything. */
void fuzz_draw_rules(cleave_text_t *out);
void fuzz_draw_script(cleave_text_t *out);

#endif /* CLEAVE_TESTS_FUZZ_H */

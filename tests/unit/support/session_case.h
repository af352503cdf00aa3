// SPDX-License-Identifier: Apache-2.0
/*
 * Graphs by hand, and sessions over them, for tests: any failure fails the test. Everything that a case made
 * goes with session_case_deinit.
 */
#ifndef CLEAVE_TESTS_SESSION_CASE_H
#define CLEAVE_TESTS_SESSION_CASE_H

#include "partition/grow/partition.h"
#include "runtime/session/session.h"

enum { SESSION_CASE_INPUTS = 8 };

typedef struct session_case {
  cleave_graph_t *graph;
  cleave_plan_t *plan; /* of the graph, or NULL */
  cleave_session_t *session;
  cleave_tensor_t *inputs[SESSION_CASE_INPUTS];
  cleave_tensor_view_t views[SESSION_CASE_INPUTS];
  const cleave_tensor_view_t *pointers[SESSION_CASE_INPUTS];
  size_t input_count;
} session_case_t;

/* A graph without nodes. */
session_case_t session_case_create(void);
/* A graph text (plan_case.h; all values float32 2x2) with its inputs fed with 1, 2, 3, 4, and so on. */
session_case_t session_case_text(const char *text);
/* x and y of [N, 3], whose sum is reshaped to one dimension and back to the shape of x. */
session_case_t session_case_symbolic(void);
void session_case_deinit(session_case_t *c);

/* Graph parts. Negative dims are unknown; `names` of symbols may be NULL. */
cleave_value_t session_case_input(session_case_t *c, const char *name, cleave_dtype_t dtype, int32_t rank,
                                  const cleave_dim_t *dims);
cleave_dim_t session_case_symbol(session_case_t *c, const char *name);
cleave_value_t session_case_floats(session_case_t *c, const char *name, int32_t rank, const int64_t *dims,
                                   const float *data);
cleave_value_t session_case_ints(session_case_t *c, const char *name, int64_t count, const int64_t *data);
/* A node of an operator with up to three inputs (NONE: left out, and the end) and one output, which gets the
 * node's name. */
cleave_value_t session_case_node(session_case_t *c, const char *op, const char *name, cleave_value_t a,
                                 cleave_value_t b, cleave_value_t d);
void session_case_output(session_case_t *c, cleave_value_t value);
void session_case_infer(session_case_t *c);

/* Partitions by one region rule over operators ("Exp,Add") for a backend. */
void session_case_partition(session_case_t *c, const char *ops, const char *backend);

/* A float32 input tensor, numbered in order of calls. */
void session_case_feed(session_case_t *c, int32_t rank, const int64_t *dims, const float *data);
void session_case_feed_ints(session_case_t *c, int32_t rank, const int64_t *dims, const int64_t *data);

/* Compiles for the shapes that were fed and sets the inputs. */
void session_case_compile(session_case_t *c, const cleave_session_options_t *options);
void session_case_run(session_case_t *c);
/* Element `index` of float output `output`. */
float session_case_value(const session_case_t *c, uint32_t output, int64_t index);
cleave_tensor_view_t session_case_view(const session_case_t *c, uint32_t output);

#endif /* CLEAVE_TESTS_SESSION_CASE_H */

// SPDX-License-Identifier: Apache-2.0
/*
 * One case of the sweep at work: the state of the whole run, and what running a case adds to it. Used by
 * sweep.c, which reports, and sweep_case.c, which runs.
 */
#ifndef CLEAVE_TESTS_SWEEP_CASE_H
#define CLEAVE_TESTS_SWEEP_CASE_H

#include "ops/ops.h"
#include "sweep.h"

enum { SWEEP_LONGEST_CASE = 16384, SWEEP_MAX_REASONS = 512, SWEEP_MAX_BACKENDS = 8 };
enum { SWEEP_ANY_FUSION = UINT32_MAX };

typedef struct sweep_reason {
  char text[256];
  char example[160];
  uint32_t count;
} sweep_reason_t;

typedef struct sweep_tally {
  uint32_t cases;     /* on a backend, as nodes or by rules, with sizes known or not */
  uint32_t refused;   /* of these: the backend takes no node */
  uint32_t fallbacks; /* accepted while sizes were unknown, refused with them */
  uint32_t failed;
  double worst; /* largest part of the tolerance that was used */
} sweep_tally_t;

struct sweep {
  const char *only_backend;             /* or NULL */
  bool is_left_out[SWEEP_MAX_BACKENDS]; /* does not start on this machine, and nobody asked for it by name */
  bool verbose;
  bool imperative; /* nodes of regions run one by one */
  bool blind;      /* what comes out is not compared */
  uint64_t seed;
  uint32_t every; /* only each case of this number runs, a fixed choice; with `gradients` also what is new in
                     a case; 0: all */
  uint32_t from;  /* the first of these */
  uint32_t case_number;
  const char *subject;
  int32_t threads; /* 0: one, and two for every eighth case */
  double slack;
  uint64_t random;
  uint32_t turn;
  sweep_tally_t tally;
  sweep_reason_t reasons[SWEEP_MAX_REASONS];
  size_t reason_count;
  char text[SWEEP_LONGEST_CASE]; /* of the case at work */
  cleave_rules_t *rules[SWEEP_MAX_BACKENDS];
  bool kernels;                      /* every case by rules/pointwise.lua */
  bool gradients;                    /* every case against finite differences, on no backend but `cpu`; with
                                        `only_backend`: forward and backward as one graph there, against `cpu` */
  bool is_compared[CLEAVE_OP_COUNT]; /* by operator: in a case whose gradients were */
  CLEAVE_ARRAY(uint64_t) seen;       /* hashes of operators with their attributes */
};

/* Runs sweep->text on every backend, with its sizes and with symbols in their place. `fusion`: how many nodes
 * the largest fusion of the plan must have, where sizes are known, by the rules of backend `fused_by` or, if
 * it is NULL, of all; or SWEEP_ANY_FUSION. */
void sweep_case_run(sweep_t *sweep, bool by_rules, uint32_t fusion, const char *fused_by);

/* Adds outputs to a case: the gradient of the sum of its outputs of floating-point numbers by each input that
 * one passes to. `adds`: gradients are added to what their memory holds. *out_passes: there are any. */
CLEAVE_MUST_USE cleave_status_t sweep_backward_add(sweep_graph_t *graph, bool adds, bool *out_passes,
                                                   cleave_error_t *error);

/* Has sweep->text an operator with attributes that no case before had? */
bool sweep_gradient_is_new(sweep_t *sweep);
/* Compares the gradients of sweep->text with finite differences, in float64. */
void sweep_gradient_run(sweep_t *sweep);
/* Prints and counts the operators of the list whose gradients no case has compared without a reason. */
uint32_t sweep_gradient_operators(const sweep_t *sweep);

/* Counts a refusal under its reason. */
void sweep_add_reason(sweep_t *sweep, const char *backend, const char *text);

#endif /* CLEAVE_TESTS_SWEEP_CASE_H */

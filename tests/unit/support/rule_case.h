// SPDX-License-Identifier: Apache-2.0
/*
 * Models and rules as Lua text, for tests of what rules do: the model is built, partitioned, and run both
 * ways. Any failure fails the test.
 */
#ifndef CLEAVE_TESTS_RULE_CASE_H
#define CLEAVE_TESTS_RULE_CASE_H

#include "cleave/cleave.h"
#include "partition/plan/plan.h"

enum { RULE_CASE_RULES = 4, RULE_CASE_SETTINGS = 4 };

typedef struct rule_case {
  cleave_model_t *model;
  cleave_plan_t *plan;
} rule_case_t;

/* What to do: a model script as text or, where it begins with '/', as path; rule files in order, as text or
 * path; settings of the rule files ("name=value"). */
typedef struct rule_case_request {
  const char *model;
  const char *rules[RULE_CASE_RULES];       /* up to the first NULL */
  const char *settings[RULE_CASE_SETTINGS]; /* up to the first NULL */
  const char *backend;                      /* in place of the rules' own; NULL: theirs */
} rule_case_request_t;

/* Builds the model, partitions it and checks the plan. */
rule_case_t rule_case_create(const rule_case_request_t *request);
void rule_case_deinit(rule_case_t *c);

/* The same for a request that fails, at a rewrite's first mistake too: its message. Stays until the test
 * process ends. */
const char *rule_case_failure(const rule_case_request_t *request);

/* Regions in order of execution, nodes by name: "cpu{e s} onednn{a}". */
const char *rule_case_regions(const rule_case_t *c);
/* Fusions in order of execution, by rule and operators in order, with labels: "product(product=Conv Relu)".
 */
const char *rule_case_fusions(const rule_case_t *c);
/* Inputs and outputs of a region, by name: "x, w -> y". */
const char *rule_case_boundary(const rule_case_t *c, uint32_t region);
/* Attributes of a region: "tile=8 mode='fast'". */
const char *rule_case_attributes(const rule_case_t *c, uint32_t region);
/* Notes of a kind: "node: reason" lines. */
const char *rule_case_notes(const rule_case_t *c, cleave_plan_note_kind_t kind);

/* Runs the plan, and the model unpartitioned on cpu, on the same random inputs: every element of every output
 * differs by at most `tolerance` times the largest of its output (at least 1). 0: the same bits. Also: the
 * model written to ONNX with its regions as functions and read again has the same inputs and outputs, in
 * order, and computes the same. */
void rule_case_check_values(const rule_case_t *c, double tolerance);

#endif /* CLEAVE_TESTS_RULE_CASE_H */

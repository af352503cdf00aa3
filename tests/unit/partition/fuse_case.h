// SPDX-License-Identifier: Apache-2.0
/* Rules in Lua over graphs in Lua, as text, for tests: any failure fails the test. */
#ifndef CLEAVE_TESTS_FUSE_CASE_H
#define CLEAVE_TESTS_FUSE_CASE_H

#include "partition/plan/plan.h"

/* The graph that a model script of this text builds. Kept until the test process ends. */
cleave_graph_t *fuse_case_graph(const char *model);

/* The plan of a rule file whose text is `before`, then a ruleset for backend "cpu" of `rules`. */
cleave_plan_t *fuse_case_plan(const char *model, const char *before, const char *rules);

/* Fusions of a pattern, nodes by name, in order of execution: "[conv relu] [add]". `before` is Lua that comes
 * before the rule; `fields` are those of the fuse rule: "pattern = ..., where = ...". */
const char *fuse_case_fusions(const char *model, const char *before, const char *fields);

/* Partitions again and again with one allocation more before they fail, until nothing fails; every failure is
 * CLEAVE_ERROR_OUT_OF_MEMORY. Returns how many there were. */
uint32_t fuse_case_starve(const char *model, const char *before, const char *rules);

/* The message of a rule file that does not load: `fields` as above, in line 1. */
const char *fuse_case_mistake(const char *before, const char *fields);

#endif /* CLEAVE_TESTS_FUSE_CASE_H */

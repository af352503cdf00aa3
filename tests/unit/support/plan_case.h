// SPDX-License-Identifier: Apache-2.0
/*
 * Small graphs and plans for tests, as text.
 *
 * A graph: statements `name = Op(argument, ...)` separated by `;`, in order. Several outputs:
 * `y, mean = Op(...)`; attributes: `y = Op{axis=1, alpha=0.5}(x)`. An argument that was not defined is a
 * graph input; `#0.5` is a constant scalar; `$w` a constant matrix named w; `_` an input left out. `-> y, z`
 * at the end names the graph outputs.
 */
#ifndef CLEAVE_TESTS_PLAN_CASE_H
#define CLEAVE_TESTS_PLAN_CASE_H

#include "partition/grow/partition.h"

/* Everything that these functions return stays until the test process ends; nobody frees it. So does this. */
void *plan_case_keep(void *memory);

cleave_graph_t *plan_case_graph(const char *text);

/* The node that produces the value of this name. */
cleave_node_t plan_case_node(const cleave_graph_t *graph, const char *name);

/* A region rule over operators "Exp,Sin", and a ruleset of one rule for backend "test". Static: one of each
 * at a time per test process, freed never. */
const cleave_ruleset_t *plan_case_ops(const char *ops);
cleave_rule_t plan_case_rule(cleave_rule_kind_t kind, const char *name);
const cleave_ruleset_t *plan_case_ruleset(const char *name, const cleave_rule_t *rules, uint32_t count);
/* Operators "Relu,Clip" for patterns and rules, of ONNX or of cleave. */
const cleave_op_t *const *plan_case_op_list(const char *names, uint32_t *out_count);

/* Partitions, and checks the plan. */
cleave_plan_t *plan_case_run(const cleave_graph_t *graph, const cleave_ruleset_t *const *rulesets,
                             uint32_t count, const cleave_partition_options_t *options);

/* Regions in order of execution, nodes by the name of their first output: "{a b} {c}". Fusions in brackets:
 * "{[conv relu] pool}". */
const char *plan_case_regions(const cleave_plan_t *plan);
/* Borders of a region: "x, w -> y". */
const char *plan_case_boundary(const cleave_plan_t *plan, uint32_t region);
/* Notes of a kind as "node: reason" lines. */
const char *plan_case_notes(const cleave_plan_t *plan, cleave_plan_note_kind_t kind);

#endif /* CLEAVE_TESTS_PLAN_CASE_H */

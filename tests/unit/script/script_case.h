// SPDX-License-Identifier: Apache-2.0
/* Small graphs, and rules from Lua text that are run over them. Values are float32 of [2, channels, 10, 10].
 */
#ifndef CLEAVE_TESTS_SCRIPT_CASE_H
#define CLEAVE_TESTS_SCRIPT_CASE_H

#include "partition/grow/partition.h"
#include "script/rules/rules.h"

/* ---- graphs, which the caller destroys ---- */

cleave_graph_t *script_case_graph(void);
cleave_value_t script_case_input(cleave_graph_t *graph, const char *name, int64_t channels);
/* All elements have the value. */
cleave_value_t script_case_constant(cleave_graph_t *graph, const char *name, int32_t rank,
                                    const int64_t *dims, double value);
cleave_value_t script_case_node(cleave_graph_t *graph, const char *op, const char *name,
                                const cleave_value_t *inputs, size_t input_count, int64_t channels);
cleave_value_t script_case_unary(cleave_graph_t *graph, const char *op, const char *name, cleave_value_t x);
cleave_value_t script_case_sum(cleave_graph_t *graph, const char *name, cleave_value_t a, cleave_value_t b);
/* Adds the output. */
void script_case_finish(cleave_graph_t *graph, cleave_value_t output);
/* exp -> cos, sin -> add: two ways from exp to add. */
cleave_graph_t *script_case_diamond(void);
/* A row of Relu, named r1 .. rN. */
cleave_graph_t *script_case_row(int count);
/* conv (3x3, group 1, bias) -> relu -> add(x) */
cleave_graph_t *script_case_convolution(void);

/* ---- rules ---- */

#define REGION(content) "return ruleset { name = 'r', region 'g' {\n" content "} }"
#define FUSE(content) "return ruleset { name = 'r', fuse 'x' {\n" content "} }"

cleave_rules_t *script_case_load(const char *text);
cleave_status_t script_case_partition(const cleave_graph_t *graph, const cleave_rules_t *rules,
                                      cleave_plan_t **plan, cleave_error_t *error);
/* "exp sin|add": the regions' nodes by name, in the order of the plan. */
void script_case_describe(const cleave_plan_t *plan, char *out, size_t size);
/* Runs the rules over the graph (destroyed) and compares the regions. */
void script_case_expect(cleave_graph_t *graph, const char *text, const char *expected);
/* Runs a rule that fails; the error is about rule 'g' or 'x'. */
void script_case_fails(cleave_graph_t *graph, const char *text, cleave_status_t status, const char *message);

#endif /* CLEAVE_TESTS_SCRIPT_CASE_H */

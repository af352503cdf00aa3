// SPDX-License-Identifier: Apache-2.0
/*
 * One operator, its inputs and attributes, and the output types that inference must find, as text:
 *
 *   {"Conv", "f32[1,3,N,224] f32[64,3,7,7] -", "strides=2,2 pads=3,3,3,3", "f32[1,64,...]"}
 *
 * Inputs are separated by blanks: "f32[1,N,?]" a graph input ("?": unknown size, "N": symbolic, "f32[...]":
 * unknown rank, "?[...]": unknown dtype too), "i64(2,-1)" a constant vector, "i64:5" a constant scalar, "-"
 * left out. Attributes: "name=value", lists with commas; kinds come from the schema.
 * Expected: types of the outputs in order, separated by blanks; or "!text": an error that contains the text
 * ("!!text" for a node with two outputs).
 */
#ifndef CLEAVE_TESTS_INFER_CASE_H
#define CLEAVE_TESTS_INFER_CASE_H

#include "ops/infer.h"

typedef struct infer_case {
  const char *op;
  const char *inputs;
  const char *attributes;
  const char *expected;
  const char *expected_inputs; /* types of the inputs after inference (backward facts), or NULL */
} infer_case_t;

/* Fails the running test with the whole case where the outcome differs. */
void infer_case_check(const infer_case_t *cases, size_t count);

/* Builds the node of a case in a graph, its outputs as graph outputs: `output_count` of them. */
cleave_node_t infer_case_add(cleave_graph_t *graph, const char *op, const char *inputs,
                             const char *attributes, size_t output_count);

/* The types of values as text, "f32[1,N] i64[]". Written into `buffer`. */
const char *infer_case_types(const cleave_graph_t *graph, const cleave_value_t *values, size_t count,
                             char *buffer, size_t size);

/* A graph input of the type that `text` ("f32[2,N]") says. */
cleave_value_t infer_case_input(cleave_graph_t *graph, const char *text);

#define INFER_CASES(cases) infer_case_check((cases), sizeof(cases) / sizeof *(cases))

#endif /* CLEAVE_TESTS_INFER_CASE_H */

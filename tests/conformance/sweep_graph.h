// SPDX-License-Identifier: Apache-2.0
/*
 * Graphs with shapes as short texts, so that a failing case can be read, and run again alone.
 *
 *   h = Conv{pads=[1,1,1,1]}(x[1,3,8,8], $w[4,3,3,3]); Relu(Add(h, x2[4,1,1])) -> h
 *
 * Statements in order, separated by `;`: `names = expression`, or an expression. Graph outputs are the names
 * after `->`, and the last expression where it has no name (or where nothing follows `->`).
 *   x[2,3]    graph input of this shape, `x` from then on; `x[]` is a scalar
 *   $w[4]     constant
 *   #0.5      constant scalar, `#0.5:f16` of another dtype; `#[1,2]` constant vector of int64; `_` an operand
 * left out Op{a=1, b=[1,2], c=text, d="ij->i"}(operands)   an operator; `y, _, z = Op(...)` has three
 * outputs; one of ONNX, or of the domain `cleave` Between name and shape, what a tensor holds: nothing:
 * normal numbers; `+` uniform in [0.25, 2); `&` in [0.05, 0.95);
 * `~` infinities, huge and tiny numbers; `!` NaN among normal numbers; `%` multiples of a half around zero,
 * zeros among them;
 * `^` weights, whose deviation keeps sums over all but the first dimension near one;
 * then perhaps a dtype, `:f64`. Numbers depend on the name and on the seed alone.
 */
#ifndef CLEAVE_TESTS_SWEEP_GRAPH_H
#define CLEAVE_TESTS_SWEEP_GRAPH_H

#include "graph/graph.h"

enum { SWEEP_MAX_INPUTS = 96 };

typedef enum sweep_form {
  SWEEP_SIZED,
  SWEEP_SYMBOLIC, /* the graph does not know the sizes of its inputs, only their ranks; sweep_graph_feed does
                   */
  SWEEP_DOUBLE    /* what is of floating-point numbers is float64; such constants with a name are inputs */
} sweep_form_t;

typedef struct sweep_input {
  char name[32];
  int32_t rank;
  int64_t dims[CLEAVE_MAX_RANK];
  char content;     /* '\0', '+', '&', '~', '!', '%' or '^' */
  bool is_constant; /* in the text */
} sweep_input_t;

typedef struct sweep_graph {
  cleave_graph_t *graph; /* types are inferred */
  sweep_input_t inputs[SWEEP_MAX_INPUTS];
  size_t input_count;
  size_t added_from; /* outputs from this one on are added to what their memory holds; 0: none are */
} sweep_graph_t;

/* CLEAVE_ERROR_FORMAT where the text is wrong, with the place. */
CLEAVE_MUST_USE cleave_status_t sweep_graph_read(const char *text, sweep_form_t form,
                                                 sweep_graph_t *out_graph, cleave_error_t *error);
void sweep_graph_deinit(sweep_graph_t *graph);

/* Numbers for graph input `index`; another `round`, other numbers. */
CLEAVE_MUST_USE cleave_status_t sweep_graph_feed(const sweep_graph_t *graph, size_t index, uint32_t round,
                                                 cleave_tensor_t **out_tensor, cleave_error_t *error);

#endif /* CLEAVE_TESTS_SWEEP_GRAPH_H */

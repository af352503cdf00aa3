// SPDX-License-Identifier: Apache-2.0
/* Random values for a piece of a graph, like those that reach it in the model. */
#ifndef CLEAVE_TOOLS_VERIFY_DRAW_H
#define CLEAVE_TOOLS_VERIFY_DRAW_H

#include "graph/graph.h"
#include "tensor/tensor.h"

/* How far apart values of this round (from 1) are, in terms of the model's: as far, or 10 times, or 100
 * times. */
double cleave_draw_spread(uint32_t round);

/* A tensor of the dtype and shape of `own`; the caller releases it.
 * Floats: normal around the mean of `own`, with `spread` times its deviation, not negative if `own` never is.
 * If `own` has two different numbers (a mask), each is one of the two. Integers: indices, sizes and ids have
 * a meaning, so that they stay as they are, but with `any_integers` more than eight of them are from -9 to 9,
 * or from 0 if their type has no sign. What is neither stays as it is: the tensor is `own` itself, retained.
 */
CLEAVE_STATUS cleave_draw_like(cleave_tensor_t *own, uint64_t seed, double spread, bool any_integers,
                               cleave_tensor_t **out_tensor, cleave_error_t *error);

/* Has `after` a type of fewer bits than float32 that `before` has not? What rules made narrower is meant for
 * the values that the model has, and not for wider ones. */
bool cleave_draw_narrows(const cleave_graph_t *before, const cleave_graph_t *after);

/* Are all elements finite, if they are floats? */
bool cleave_draw_is_finite(const cleave_tensor_t *tensor);

#endif /* CLEAVE_TOOLS_VERIFY_DRAW_H */

// SPDX-License-Identifier: Apache-2.0
/*
 * Regions written as text, for tests of backends that fuse. One value per line:
 *
 *   x [2,16,8,8] = input
 *   w [32,16,3,3] = random                    a constant; also `positive`, or numbers (one stands for all)
 *   axes i64[1] = -1
 *   {                                         nodes up to the } are one fusion; { kernel asks for a generated
 *                                             kernel, { integers for one that reads weights as integers
 *   y [2,32,6,6] = Conv(x, w) strides=[1,1]
 *   z [2,32,6,6] = Relu(y)
 *   }
 *   a [2,8,6,6] & b [2,24,6,6] = Split(z, sizes) axis=1
 *   output z                                  besides the values of the last line
 *
 * "-" is an operand left out; a dimension ? is unknown. Random data comes from a fixed seed.
 */
#ifndef CLEAVE_TESTS_FUSION_CASE_H
#define CLEAVE_TESTS_FUSION_CASE_H

#include "op_case.h"
#include "view_builder.h"

typedef struct fusion_region fusion_region_t;

/* Parses; a mistake in the text fails the test. With `fused` false, braces mean nothing. */
fusion_region_t *fusion_region_create(const char *text, bool fused);
void fusion_region_destroy(fusion_region_t *region);
const cleave_region_view_t *fusion_region_view(fusion_region_t *region);

/* Data of input `index` of the region. */
const float *fusion_region_input(const fusion_region_t *region, uint32_t index);

/* Compiles on the backend with these threads and sets the inputs; a failure fails the test. */
void fusion_region_compile(fusion_region_t *region, const op_backend_t *backend, int32_t threads,
                           view_program_t *program);

/* The backend supports each fusion of the text, and computes what the reference backend computes without
 * fusions: with fusions and without, on one thread and on two, and again after the memory of everything has
 * moved. `tolerance` is relative to the largest element of an output. */
void fusion_case(const op_backend_t *backend, const char *text, double tolerance);

/* `supports` says no to the text as one fusion, and `reason` is the whole message. */
void fusion_case_refused(const op_backend_t *backend, const char *text, const char *reason);

#endif /* CLEAVE_TESTS_FUSION_CASE_H */

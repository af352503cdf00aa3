// SPDX-License-Identifier: Apache-2.0
/* The next token from the scores of all. */
#ifndef CLEAVE_CLI_GENERATE_SAMPLE_H
#define CLEAVE_CLI_GENERATE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

/* How tokens are drawn. The same seed draws the same tokens from the same scores. */
typedef struct cleave_sampler {
  double temperature; /* scores are divided by it before the softmax; 0: the largest score, the first of
                         several */
  uint64_t state;     /* the seed at first */
} cleave_sampler_t;

/* A number from 0 to count - 1; count is at least 1. Scores that are no numbers are never drawn, unless all
 * are: then 0. */
int64_t cleave_sampler_draw(cleave_sampler_t *sampler, const float *scores, int64_t count);

#endif /* CLEAVE_CLI_GENERATE_SAMPLE_H */

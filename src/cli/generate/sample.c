// SPDX-License-Identifier: Apache-2.0
// Two passes over the scores, so that no memory is needed: the sum of their exponentials, then the place in
// it that the random number is.
#include "cli/generate/sample.h"

#include <math.h>

/* SplitMix64 (Steele, Lea, Flood 2014): a number from 0 to below 1. */
static double draw_unit(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return (double)((z ^ z >> 31) >> 11) * 0x1.0p-53;
}

static int64_t find_largest(const float *scores, int64_t count) {
  int64_t best = 0;
  for (int64_t k = 1; k < count; k++) {
    best = scores[k] > scores[best] || isnan(scores[best]) ? k : best;
  }
  return isnan(scores[best]) ? 0 : best;
}

static double weight(const cleave_sampler_t *sampler, float score, float largest) {
  return isnan(score) || score == -INFINITY ? 0.0
                                            : exp(((double)score - (double)largest) / sampler->temperature);
}

int64_t cleave_sampler_draw(cleave_sampler_t *sampler, const float *scores, int64_t count) {
  int64_t best = find_largest(scores, count);
  float largest = scores[best];
  if (sampler->temperature <= 0.0 || isnan(largest) || isinf(largest)) {
    return best;
  }
  double sum = 0.0;
  for (int64_t k = 0; k < count; k++) {
    sum += weight(sampler, scores[k], largest);
  }
  double left = draw_unit(&sampler->state) * sum;
  for (int64_t k = 0; k < count; k++) {
    double share = weight(sampler, scores[k], largest);
    if (left < share) {
      return k;
    }
    left -= share;
  }
  return best;
}

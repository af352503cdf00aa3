// SPDX-License-Identifier: Apache-2.0
// Channel shuffle over pixels. Two groups, as ShuffleNet has them, are woven eight channels of each at a
// time; the last eight overlap those before them, so that no pixel has a rest.
#include "onednn/loops/loops.h"

enum { GRAIN = 16384, WIDTH = 8 };

typedef struct shuffle_body {
  const onednn_shuffle_loop_t *shuffle;
  float *const *data;
} shuffle_body_t;

static inline void weave_few(const float *restrict a, const float *restrict b, float *restrict out) {
  for (int k = 0; k < WIDTH; k++) {
    out[2 * k] = a[k];
    out[2 * k + 1] = b[k];
  }
}

static inline void weave(const float *restrict a, const float *restrict b, float *restrict out,
                         int64_t count) {
  int64_t k = 0;
  for (; k + WIDTH <= count; k += WIDTH) {
    weave_few(a + k, b + k, out + 2 * k);
  }
  if (k < count && count >= WIDTH) {
    weave_few(a + count - WIDTH, b + count - WIDTH, out + 2 * (count - WIDTH));
    return;
  }
  for (; k < count; k++) {
    out[2 * k] = a[k];
    out[2 * k + 1] = b[k];
  }
}

// Channels [start, start + count) of a pixel of the result.
static inline void deal(const float *const *groups, int64_t group_count, int64_t start, int64_t count,
                        float *restrict out) {
  int64_t g = start % group_count;
  int64_t channel = start / group_count;
  for (int64_t k = 0; k < count; k++) {
    out[k] = groups[g][channel];
    if (++g == group_count) {
      g = 0;
      channel++;
    }
  }
}

// Pixels of one part, from the groups' own.
ONEDNN_VECTOR static void weave_pixels(const onednn_shuffle_loop_t *shuffle, const float *const *groups,
                                       int64_t start, int64_t count, int64_t pixels, float *restrict out) {
  const float *a = groups[0] + start / 2;
  const float *b = groups[1] + start / 2;
  for (int64_t p = 0; p < pixels; p++) {
    weave(a, b, out, count / 2);
    a += shuffle->apart[0];
    b += shuffle->apart[1];
    out += count;
  }
}

static void deal_pixels(const onednn_shuffle_loop_t *shuffle, const float **groups, int64_t start,
                        int64_t count, int64_t pixels, float *restrict out) {
  for (int64_t p = 0; p < pixels; p++) {
    deal(groups, shuffle->groups, start, count, out);
    for (int64_t g = 0; g < shuffle->groups; g++) {
      groups[g] += shuffle->apart[g];
    }
    out += count;
  }
}

static void shuffle_range(void *opaque, int64_t begin, int64_t end) {
  const shuffle_body_t *body = opaque;
  const onednn_shuffle_loop_t *shuffle = body->shuffle;
  for (uint32_t k = 0; k < shuffle->part_count; k++) {
    int64_t start = shuffle->start[k];
    int64_t count = shuffle->count[k];
    const float *groups[ONEDNN_SHUFFLE_GROUPS];
    float *out = body->data[shuffle->result[k]] + begin * count;
    for (int64_t g = 0; g < shuffle->groups; g++) {
      groups[g] = body->data[shuffle->argument[g]] + begin * shuffle->apart[g] + shuffle->offset[g];
    }
    if (shuffle->groups == 2 && start % 2 == 0 && count % 2 == 0) {
      weave_pixels(shuffle, groups, start, count, end - begin, out);
    } else {
      deal_pixels(shuffle, groups, start, count, end - begin, out);
    }
  }
}

bool onednn_loop_shuffle(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  const onednn_shuffle_loop_t *shuffle = loop->context;
  shuffle_body_t body = {.shuffle = shuffle, .data = data};
  int64_t channels = 1;
  for (uint32_t k = 0; k < shuffle->part_count; k++) {
    channels += shuffle->count[k];
  }
  crew->host->parallel_for(crew->threads, loop->dims[0], GRAIN / channels + 1, shuffle_range, &body);
  return true;
}

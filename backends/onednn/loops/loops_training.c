// SPDX-License-Identifier: Apache-2.0
// Statistics of channels, and the gradient of Relu: what training reads images for between convolutions.
// Deviations from the first element of a channel are added up, in float over a run of pixels, in double over
// runs; so one pass is enough, and a large mean costs no digits.
#include "onednn/loops/loops.h"

enum { LANES = 16, RUN = 2048, GRAIN = 16384 };

typedef struct statistics_body {
  const onednn_loop_t *loop;
  float *const *data;
} statistics_body_t;

// Sums over one run of pixels, by lane.
typedef struct lanes {
  float shift[LANES];
  float sums[LANES];
  float squares[LANES];
} lanes_t;

ONEDNN_VECTOR static void add_pixels(lanes_t *lanes, const float *x, int64_t pixels, int64_t apart) {
  float sums[LANES] = {0};
  float squares[LANES] = {0};
  for (int64_t p = 0; p < pixels; p++) {
    for (int k = 0; k < LANES; k++) {
      float d = x[p * apart + k] - lanes->shift[k];
      sums[k] += d;
      squares[k] += d * d;
    }
  }
  for (int k = 0; k < LANES; k++) {
    lanes->sums[k] = sums[k];
    lanes->squares[k] = squares[k];
  }
}

static void add_few(lanes_t *lanes, const float *x, int64_t pixels, int64_t apart, int64_t width) {
  for (int64_t k = 0; k < width; k++) {
    lanes->sums[k] = 0;
    lanes->squares[k] = 0;
    for (int64_t p = 0; p < pixels; p++) {
      float d = x[p * apart + k] - lanes->shift[k];
      lanes->sums[k] += d;
      lanes->squares[k] += d * d;
    }
  }
}

// The mean, variance and running statistics of a channel, from what was added up.
static void finish(const onednn_loop_t *loop, float *const *data, int64_t channel, double shift, double sum,
                   double squares) {
  double count = (double)(loop->dims[0] * loop->dims[2]);
  double deviation = sum / count;
  double variance = squares / count - deviation * deviation;
  double kept = (double)loop->alpha;
  double mean = shift + deviation;
  variance = variance < 0 ? 0 : variance;
  data[3][channel] = (float)mean;
  data[4][channel] = (float)variance;
  data[5][channel] = (float)((double)data[1][channel] * kept + mean * (1 - kept));
  data[6][channel] = (float)((double)data[2][channel] * kept + variance * (1 - kept));
}

// A block of up to LANES channels that lie next to each other.
static void block_of_channels(const onednn_loop_t *loop, float *const *data, int64_t block) {
  const float *x = data[0] + block * loop->strides[0][1];
  int64_t first = block * LANES;
  int64_t width = loop->dims[1] - first < LANES ? loop->dims[1] - first : LANES;
  double sums[LANES] = {0};
  double squares[LANES] = {0};
  lanes_t lanes = {.shift = {0}};
  for (int64_t k = 0; k < width; k++) {
    lanes.shift[k] = x[k];
  }
  for (int64_t n = 0; n < loop->dims[0]; n++) {
    for (int64_t p = 0; p < loop->dims[2]; p += RUN) {
      int64_t pixels = loop->dims[2] - p < RUN ? loop->dims[2] - p : RUN;
      const float *from = x + n * loop->strides[0][0] + p * loop->strides[0][2];
      if (width == LANES) {
        add_pixels(&lanes, from, pixels, loop->strides[0][2]);
      } else {
        add_few(&lanes, from, pixels, loop->strides[0][2], width);
      }
      for (int64_t k = 0; k < width; k++) {
        sums[k] += (double)lanes.sums[k];
        squares[k] += (double)lanes.squares[k];
      }
    }
  }
  for (int64_t k = 0; k < width; k++) {
    finish(loop, data, first + k, (double)lanes.shift[k], sums[k], squares[k]);
  }
}

// A channel whose pixels lie next to each other: a lane for every 16th of them.
static void plane(const onednn_loop_t *loop, float *const *data, int64_t channel) {
  const float *x = data[0] + channel * loop->strides[0][1];
  double sum = 0;
  double squares = 0;
  lanes_t lanes = {.shift = {0}};
  for (int k = 0; k < LANES; k++) {
    lanes.shift[k] = x[0];
  }
  for (int64_t n = 0; n < loop->dims[0]; n++) {
    const float *from = x + n * loop->strides[0][0];
    for (int64_t p = 0; p < loop->dims[2]; p += RUN * LANES) {
      int64_t left = loop->dims[2] - p < RUN * LANES ? loop->dims[2] - p : RUN * LANES;
      int64_t whole = left / LANES;
      add_pixels(&lanes, from + p, whole, LANES);
      for (int k = 0; k < LANES; k++) {
        sum += (double)lanes.sums[k];
        squares += (double)lanes.squares[k];
      }
      add_few(&lanes, from + p + whole * LANES, left - whole * LANES, 1, 1);
      sum += (double)lanes.sums[0];
      squares += (double)lanes.squares[0];
    }
  }
  finish(loop, data, channel, (double)x[0], sum, squares);
}

static void statistics(void *opaque, int64_t begin, int64_t end) {
  const statistics_body_t *body = opaque;
  for (int64_t k = begin; k < end; k++) {
    if (body->loop->strides[0][2] == 1) {
      plane(body->loop, body->data, k);
    } else {
      block_of_channels(body->loop, body->data, k);
    }
  }
}

bool onednn_loop_statistics(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  statistics_body_t body = {.loop = loop, .data = data};
  int64_t width = loop->strides[0][2] == 1 ? 1 : LANES;
  int64_t work = loop->dims[0] * loop->dims[2] * width;
  crew->host->parallel_for(crew->threads, (loop->dims[1] + width - 1) / width, GRAIN / (work + 1) + 1,
                           statistics, &body);
  return true;
}

// ---- Relu ----

ONEDNN_VECTOR static void pass_positive(const float *dy, const float *y, float *dx, int64_t count) {
  for (int64_t k = 0; k < count; k++) {
    dx[k] = y[k] > 0.0F ? dy[k] : 0.0F;
  }
}

static void relu_gradient(void *opaque, int64_t begin, int64_t end) {
  float *const *data = opaque;
  pass_positive(data[0] + begin, data[1] + begin, data[2] + begin, end - begin);
}

bool onednn_loop_relu_gradient(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  crew->host->parallel_for(crew->threads, loop->dims[0], GRAIN, relu_gradient, (void *)(uintptr_t)data);
  return true;
}

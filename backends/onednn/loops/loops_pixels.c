// SPDX-License-Identifier: Apache-2.0
// Images with channels last: means over all pixels, and channels times a number each. Threads take the pixels
// that they took in the convolution before, which are in their own caches: oneDNN's primitives, which share
// the channels, were slower on two threads than on one.
#include "onednn/loops/loops.h"

/* Elements that are worth a thread, and channels that are added up in registers. */
enum { GRAIN = 16384, LANES = 64 };

typedef struct pixels_body {
  const onednn_loop_t *loop;
  float *const *data;
  int64_t shares;
} pixels_body_t;

// Shares of `units` for the threads, one behind the other, if the work is for several.
static void share_out(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data,
                      cleave_parallel_fn_t run) {
  int64_t worth = loop->dims[0] * loop->dims[1] * loop->dims[2] / GRAIN;
  int64_t shares = worth < crew->threads ? worth : crew->threads;
  pixels_body_t body = {.loop = loop, .data = data, .shares = shares < 1 ? 1 : shares};
  crew->host->parallel_for(crew->threads, body.shares, 1, run, &body);
}

ONEDNN_VECTOR static void scale_pixels(const float *x, const float *factors, float *y, int64_t pixels,
                                       int64_t channels) {
  for (int64_t p = 0; p < pixels; p++) {
    for (int64_t c = 0; c < channels; c++) {
      y[p * channels + c] = x[p * channels + c] * factors[c];
    }
  }
}

static void scale_shares(void *opaque, int64_t begin, int64_t end) {
  const pixels_body_t *body = opaque;
  int64_t pixels = body->loop->dims[1];
  int64_t channels = body->loop->dims[2];
  int64_t all = body->loop->dims[0] * pixels;
  int64_t last = all * end / body->shares;
  for (int64_t first = all * begin / body->shares, next = first; first < last; first = next) {
    int64_t image = first / pixels;
    next = (image + 1) * pixels < last ? (image + 1) * pixels : last;
    scale_pixels(body->data[0] + first * channels, body->data[1] + image * body->loop->strides[1][0],
                 body->data[2] + first * channels, next - first, channels);
  }
}

bool onednn_loop_scale_channels(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  share_out(loop, crew, data, scale_shares);
  return true;
}

ONEDNN_VECTOR static void add_pixels(const float *x, float *sums, int64_t pixels, int64_t channels) {
  int64_t c = 0;
  for (; c + LANES <= channels; c += LANES) {
    float lanes[LANES] = {0};
    for (int64_t p = 0; p < pixels; p++) {
      for (int k = 0; k < LANES; k++) {
        lanes[k] += x[p * channels + c + k];
      }
    }
    for (int k = 0; k < LANES; k++) {
      sums[c + k] = lanes[k];
    }
  }
  for (int64_t k = c; k < channels; k++) {
    sums[k] = 0;
  }
  for (int64_t p = 0; p < pixels; p++) {
    for (int64_t k = c; k < channels; k++) {
      sums[k] += x[p * channels + k];
    }
  }
}

static void add_shares(void *opaque, int64_t begin, int64_t end) {
  const pixels_body_t *body = opaque;
  int64_t pixels = body->loop->dims[1];
  int64_t channels = body->loop->dims[2];
  int64_t parts = body->loop->dims[0] * ONEDNN_PIXEL_PARTS;
  for (int64_t k = parts * begin / body->shares; k < parts * end / body->shares; k++) {
    int64_t part = k % ONEDNN_PIXEL_PARTS;
    int64_t first = pixels * part / ONEDNN_PIXEL_PARTS;
    int64_t next = pixels * (part + 1) / ONEDNN_PIXEL_PARTS;
    const float *x = body->data[0] + (k / ONEDNN_PIXEL_PARTS * pixels + first) * channels;
    add_pixels(x, body->data[1] + k * channels, next - first, channels);
  }
}

// The parts are the same for any number of threads, so that the means are.
bool onednn_loop_pixel_means(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  int64_t channels = loop->dims[2];
  float factor = 1.0F / (float)loop->dims[1];
  share_out(loop, crew, data, add_shares);
  for (int64_t image = 0; image < loop->dims[0]; image++) {
    const float *sums = data[1] + image * ONEDNN_PIXEL_PARTS * channels;
    float *y = data[2] + image * channels;
    for (int64_t c = 0; c < channels; c++) {
      float sum = sums[c];
      for (int64_t part = 1; part < ONEDNN_PIXEL_PARTS; part++) {
        sum += sums[part * channels + c];
      }
      y[c] = sum * factor;
    }
  }
  return true;
}

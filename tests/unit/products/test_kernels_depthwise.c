// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions for AVX-512 against sums in double: windows, strides, both orders of channels, all
// kinds of padding, images around seven columns, what lies behind the last channel, activations, special
// values, and any cut of the work. Other processors have nothing to test.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "floats_case.h"
#include "kernels/depthwise/depthwise.h"
#include "unit.h"

enum { PANEL = KERNEL_DEPTHWISE_PANEL };

typedef struct sizes {
  int32_t side;
  int32_t stride;
  int64_t images;
  int64_t channels;
  int64_t height; /* of x */
  int64_t width;
  int64_t pads[4]; /* top, left, bottom, right */
} sizes_t;

typedef struct operands {
  kernel_depthwise_t depthwise;
  kernel_depthwise_data_t data;
  float *x;
  float *weights;
  float *bias;
  float *y;
  size_t y_count;
} operands_t;

static kernel_depthwise_image_t image_of(int64_t channels, int64_t height, int64_t width, bool is_last) {
  return (kernel_depthwise_image_t){
      .height = height,
      .width = width,
      .image = (is_last ? channels : floats_case_whole_panels(channels)) * height * width,
      .block = is_last ? PANEL : height * width * PANEL,
      .pixel = is_last ? channels : PANEL};
}

static operands_t make(const sizes_t *s, bool is_last) {
  int64_t height = (s->height + s->pads[0] + s->pads[2] - s->side) / s->stride + 1;
  int64_t width = (s->width + s->pads[1] + s->pads[3] - s->side) / s->stride + 1;
  operands_t o = {.depthwise = {.side = s->side,
                                .stride = s->stride,
                                .images = s->images,
                                .channels = s->channels,
                                .top = s->pads[0],
                                .left = s->pads[1],
                                .x = image_of(s->channels, s->height, s->width, is_last),
                                .y = image_of(s->channels, height, width, is_last),
                                .is_filled = !is_last,
                                .activation = {.low = -INFINITY, .high = INFINITY}}};
  o.y_count = (size_t)(s->images * o.depthwise.y.image);
  o.x = floats_case_random(s->images * o.depthwise.x.image);
  o.weights = floats_case_random(floats_case_whole_panels(s->channels) * s->side * s->side);
  o.bias = floats_case_random(s->channels);
  o.y = malloc(o.y_count * sizeof(float));
  ck_assert_ptr_nonnull(o.y);
  o.data = (kernel_depthwise_data_t){.x = o.x, .weights = o.weights, .bias = o.bias, .y = o.y};
  return o;
}

static void release(operands_t *o) {
  free(o->x);
  free(o->weights);
  free(o->bias);
  free(o->y);
}

static void run(const operands_t *o, int32_t threads) {
  kernel_depthwise_cut_t cut = kernel_depthwise_cut(&o->depthwise, threads);
  memset(o->y, 0xff, o->y_count * sizeof(float)); /* NaN */
  for (int64_t unit = kernel_depthwise_units(&o->depthwise, &cut); unit-- > 0;) {
    kernel_depthwise_run(&o->depthwise, &cut, &o->data, unit);
  }
}

static int64_t place_of(const kernel_depthwise_image_t *image, int64_t n, int64_t channel, int64_t row,
                        int64_t column) {
  return n * image->image + channel / PANEL * image->block + channel % PANEL +
         (row * image->width + column) * image->pixel;
}

static double convolve(const operands_t *o, int64_t n, int64_t channel, int64_t row, int64_t column) {
  const kernel_depthwise_t *d = &o->depthwise;
  double sum = o->data.bias != NULL ? (double)o->bias[channel] : 0;
  for (int64_t k = 0; k < (int64_t)d->side * d->side; k++) {
    int64_t i = row * d->stride + k / d->side - d->top;
    int64_t j = column * d->stride + k % d->side - d->left;
    if (i >= 0 && i < d->x.height && j >= 0 && j < d->x.width) {
      sum += (double)o->x[place_of(&d->x, n, channel, i, j)] *
             (double)o->weights[(channel / PANEL * d->side * d->side + k) * PANEL + channel % PANEL];
    }
  }
  return sum;
}

static void run_and_expect(const operands_t *o) {
  const kernel_depthwise_t *d = &o->depthwise;
  run(o, 1);
  for (int64_t n = 0; n < d->images; n++) {
    for (int64_t c = 0; c < (d->is_filled ? floats_case_whole_panels(d->channels) : d->channels); c++) {
      for (int64_t p = 0; p < d->y.height * d->y.width; p++) {
        int64_t row = p / d->y.width;
        int64_t column = p % d->y.width;
        float found = o->y[place_of(&d->y, n, c, row, column)];
        double expected =
            c < d->channels ? floats_case_activate(&d->activation, convolve(o, n, c, row, column)) : 0;
        ck_assert_msg(fabs((double)found - expected) <= 2e-5, "[%d, %d, %d, %d] is %.9g, expected %.9g",
                      (int)n, (int)c, (int)row, (int)column, (double)found, expected);
      }
    }
  }
}

static const sizes_t CASES[] = {
    {3, 1, 1, 16, 1, 1, {1, 1, 1, 1}},   {3, 1, 2, 24, 7, 7, {1, 1, 1, 1}},
    {3, 2, 1, 40, 14, 13, {1, 1, 1, 1}}, {3, 2, 1, 16, 9, 30, {0, 0, 1, 1}},
    {3, 1, 1, 5, 6, 17, {0, 2, 1, 0}},   {5, 1, 2, 19, 7, 8, {2, 2, 2, 2}},
    {5, 1, 1, 32, 15, 3, {2, 2, 2, 2}},  {5, 2, 1, 33, 28, 29, {2, 2, 2, 2}},
    {5, 2, 1, 8, 5, 6, {4, 4, 4, 4}},    {3, 1, 1, 16, 20, 22, {3, 3, 3, 3}},
};
enum { CASE_COUNT = sizeof CASES / sizeof CASES[0] };

static const char *lacks_avx512(void) {
  return kernel_wide_runs_here() ? NULL : "the kernel needs AVX-512";
}

UNIT_TEST_UNLESS(convolves_images_of_any_size_and_padding, lacks_avx512) {
  for (int k = 0; k < 2 * CASE_COUNT; k++) {
    operands_t o = make(&CASES[k / 2], k % 2 == 0);
    o.data.bias = k % 3 == 0 ? NULL : o.bias;
    run_and_expect(&o);
    release(&o);
  }
}

UNIT_TEST_UNLESS(applies_activations, lacks_avx512) {
  for (int form = 0; form < 10; form++) {
    operands_t o = make(&CASES[1], form % 2 == 0);
    kernel_activation_t *activation = &o.depthwise.activation;
    activation->low = form / 2 == 0 ? 0.5F : (form / 2 == 1 ? -3.0F : -INFINITY);
    activation->high = form / 2 == 1 ? 2.5F : INFINITY;
    activation->kind = form / 2 == 2 ? KERNEL_SWISH
                                     : (form / 2 == 3   ? KERNEL_GATE
                                        : form / 2 == 4 ? KERNEL_SIGMOID
                                                        : KERNEL_BOUNDS);
    activation->alpha = form / 2 == 2 ? 1.5F : 1.0F / 6.0F;
    activation->beta = 0.5F;
    run_and_expect(&o);
    release(&o);
  }
}

/* Swish of what is far from zero, and of infinities and NaN, is as it is defined. */
UNIT_TEST_UNLESS(keeps_special_values_where_they_are, lacks_avx512) {
  static const float VALUES[] = {1000.0F, -1000.0F, -80.0F, INFINITY, -INFINITY, NAN};
  static const float EXPECTED[] = {1000.0F, 0.0F, -80.0F * 1.8048513878e-35F, INFINITY, NAN, NAN};
  static const sizes_t S = {3, 1, 1, 16, 1, 40, {1, 1, 1, 1}};
  operands_t o = make(&S, true);
  o.data.bias = NULL;
  o.depthwise.activation.kind = KERNEL_SWISH;
  o.depthwise.activation.alpha = 1.0F;
  for (int64_t k = 0; k < 9 * PANEL; k++) {
    o.weights[k] = k / PANEL == 4 ? 1.0F : 0.0F;
  }
  for (size_t k = 0; k < sizeof VALUES / sizeof VALUES[0]; k++) {
    o.x[5 * PANEL + 3] = VALUES[k];
    run(&o, 1);
    float found = o.y[5 * PANEL + 3];
    ck_assert_msg(isnan(EXPECTED[k])
                      ? isnan(found)
                      : found == EXPECTED[k] || fabsf(found - EXPECTED[k]) <= 1e-5F * fabsf(EXPECTED[k]),
                  "swish of %g is %g", (double)VALUES[k], (double)found);
    ck_assert(isfinite(o.y[5 * PANEL + 2]) && isfinite(o.y[8 * PANEL + 3]));
  }
  /* Any NaN, whatever its other bits are. */
  const uint32_t bits = 0x7fc00001U;
  memcpy(&o.x[5 * PANEL + 3], &bits, sizeof(bits));
  o.depthwise.activation.kind = KERNEL_SIGMOID;
  run(&o, 1);
  ck_assert(isnan(o.y[5 * PANEL + 3]));
  release(&o);
}

/* A window that takes its own pixel alone gives the activation of the pixel. */
UNIT_TEST_UNLESS(swish_and_sigmoid_are_within_four_units_in_the_last_place, lacks_avx512) {
  static const sizes_t PIXELS = {3, 1, 1, PANEL, 40, 250, {1, 1, 1, 1}};
  operands_t o = make(&PIXELS, true);
  const int64_t count = (int64_t)PANEL * 40 * 250;
  for (int64_t k = 0; k < count; k++) {
    o.x[k] = (float)((double)(2 * k - count) * 87.0 / (double)count);
  }
  for (int k = 0; k < 9 * PANEL; k++) {
    o.weights[k] = k / PANEL == 4 ? 1.0F : 0.0F;
  }
  memset(o.bias, 0, PANEL * sizeof(float));
  for (int is_swish = 0; is_swish < 2; is_swish++) {
    o.depthwise.activation.kind = is_swish ? KERNEL_SWISH : KERNEL_SIGMOID;
    o.depthwise.activation.alpha = 1.0F;
    run(&o, 1);
    for (int64_t k = 0; k < count; k++) {
      double x = (double)o.x[k];
      double expected = (is_swish ? x : 1.0) / (1.0 + exp(-x));
      ck_assert_msg(fabs((double)o.y[k] - expected) <= 4 * 0x1p-23 * fabs(expected),
                    "%g: expected %g, found %g", x, expected, (double)o.y[k]);
    }
  }
  release(&o);
}

UNIT_TEST_UNLESS(gives_the_same_bits_however_the_work_is_cut, lacks_avx512) {
  static const sizes_t LARGE = {3, 1, 1, 96, 40, 40, {1, 1, 1, 1}};
  for (int k = 0; k < 2 * CASE_COUNT + 2; k++) {
    operands_t o = make(k < 2 * CASE_COUNT ? &CASES[k / 2] : &LARGE, k % 2 == 0);
    float *alone = malloc(o.y_count * sizeof(float));
    ck_assert_ptr_nonnull(alone);
    run(&o, 1);
    memcpy(alone, o.y, o.y_count * sizeof(float));
    for (int32_t threads = 2; threads <= 64; threads += threads < 5 ? 1 : 17) {
      run(&o, threads);
      ck_assert_mem_eq(alone, o.y, o.y_count * sizeof(float));
    }
    free(alone);
    release(&o);
  }
}

UNIT_SUITE("kernels_depthwise")

// SPDX-License-Identifier: Apache-2.0
// Convolutions by Winograd's algorithm against sums in double: both tiles, both orders of channels, all kinds
// of padding, images around the size of a tile, batches, all that may follow, special values, and any cut of
// the work, with the lanes of AVX2 and of AVX-512. Processors without AVX2 have nothing to test.
#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "floats_case.h"
#include "kernels/winograd/winograd.h"
#include "unit.h"

enum { PANEL = 16, AREA = 9 };

typedef struct sizes {
  int64_t images;
  int64_t inputs;
  int64_t outputs;
  int64_t height; /* of x */
  int64_t width;
  int64_t pads[4]; /* top, left, bottom, right */
} sizes_t;

typedef struct operands {
  kernel_winograd_t winograd;
  kernel_winograd_data_t data;
  float *x;
  float *w; /* [outputs, inputs, 3, 3] */
  float *packed;
  float *bias;
  float *sum;
  float *y;
  size_t y_count;
} operands_t;

static kernel_winograd_image_t image_of(int32_t lanes, int64_t channels, int64_t height, int64_t width,
                                        bool is_last) {
  return (kernel_winograd_image_t){.height = height,
                                   .width = width,
                                   .image = channels * height * width,
                                   .block = is_last ? lanes : height * width * lanes,
                                   .pixel = is_last ? channels : lanes};
}

static int64_t place_of(const kernel_winograd_t *of, const kernel_winograd_image_t *image, int64_t n,
                        int64_t channel, int64_t row, int64_t column) {
  return n * image->image + channel / of->lanes * image->block + channel % of->lanes +
         (row * image->width + column) * image->pixel;
}

/* A line of a window at the points of the algorithm, in double. */
static void points_of(int32_t tile, const double *line, int64_t stride, double *out) {
  const double p = KERNEL_WINOGRAD_P;
  const double q = KERNEL_WINOGRAD_Q;
  const double small[] = {0, 1, -1};
  const double large[] = {0, p, -p, q, -q};
  const double *points = tile == 2 ? small : large;
  for (int k = 0; k <= tile; k++) {
    double scale = tile == 2 && k == 0 ? -1 : 1;
    for (int j = 0; j <= tile; j++) {
      scale *= j == k ? 1 : points[k] - points[j];
    }
    out[k] = (line[0] + points[k] * (line[stride] + points[k] * line[2 * stride])) / scale;
  }
  out[tile + 1] = line[2 * stride];
}

/* Windows as they are. */
static void pack_windows(operands_t *o) {
  const kernel_winograd_t *k = &o->winograd;
  for (int64_t i = 0; i < k->outputs * k->inputs * AREA; i++) {
    int64_t output = i / (k->inputs * AREA);
    int64_t within = i % (k->inputs * AREA);
    o->packed[(output / PANEL * k->inputs * AREA + within) * PANEL + output % PANEL] = o->w[i];
  }
}

static void pack(operands_t *o) {
  const kernel_winograd_t *k = &o->winograd;
  const int32_t side = k->tile + 2;
  for (int64_t output = 0; output < k->outputs; output++) {
    for (int64_t input = 0; input < k->inputs; input++) {
      double window[AREA];
      double rows[3][6];
      for (int i = 0; i < AREA; i++) {
        window[i] = (double)o->w[(output * k->inputs + input) * AREA + i];
      }
      for (int i = 0; i < 3; i++) {
        points_of(k->tile, window + 3 * (ptrdiff_t)i, 1, rows[i]);
      }
      for (int32_t j = 0; j < side; j++) {
        double column[6];
        points_of(k->tile, &rows[0][j], 6, column);
        for (int32_t i = 0; i < side; i++) {
          int64_t point = (int64_t)i * side + j;
          o->packed[((output / PANEL * side * side + point) * k->inputs + input) * PANEL + output % PANEL] =
              (float)column[i];
        }
      }
    }
  }
}

/* Channels are those for 8 lanes: with 16 there are twice as many. */
static operands_t make(const sizes_t *narrow, int32_t lanes, int32_t tile, bool is_last) {
  sizes_t wide = *narrow;
  const sizes_t *s = &wide;
  wide.inputs *= lanes / 8;
  wide.outputs *= lanes / 8;
  int64_t height = s->height + s->pads[0] + s->pads[2] - 2;
  int64_t width = s->width + s->pads[1] + s->pads[3] - 2;
  int64_t panels = (s->outputs + PANEL - 1) / PANEL;
  operands_t o = {.winograd = {.tile = tile,
                               .lanes = lanes,
                               .images = s->images,
                               .inputs = s->inputs,
                               .outputs = s->outputs,
                               .top = s->pads[0],
                               .left = s->pads[1],
                               .x = image_of(lanes, s->inputs, s->height, s->width, is_last),
                               .y = image_of(lanes, s->outputs, height, width, is_last),
                               .low = -INFINITY,
                               .high = INFINITY,
                               .slope = 1.0F},
                  .y_count = (size_t)(s->images * s->outputs * height * width)};
  o.x = floats_case_random(s->images * s->inputs * s->height * s->width);
  o.w = floats_case_random(s->outputs * s->inputs * AREA);
  o.bias = floats_case_random(s->outputs);
  o.sum = floats_case_random((int64_t)o.y_count);
  o.packed = calloc((size_t)(panels * (tile + 2) * (tile + 2) * s->inputs * PANEL), sizeof(float));
  o.y = malloc(o.y_count * sizeof(float));
  ck_assert(o.packed != NULL && o.y != NULL);
  pack(&o);
  o.data = (kernel_winograd_data_t){.x = o.x, .weights = o.packed, .y = o.y};
  return o;
}

/* The weights become windows. */
static void take_windows(operands_t *o) {
  const kernel_winograd_t *k = &o->winograd;
  size_t count = (size_t)((k->outputs + PANEL - 1) / PANEL * k->inputs) * AREA * PANEL;
  free(o->packed);
  o->packed = calloc(count, sizeof(float)); /* whose end a sanitizer watches */
  ck_assert_ptr_nonnull(o->packed);
  o->data.weights = o->packed;
  o->winograd.windows = true;
  pack_windows(o);
}

static void release(operands_t *o) {
  free(o->x);
  free(o->w);
  free(o->packed);
  free(o->bias);
  free(o->sum);
  free(o->y);
}

/* Unit by unit, as so many threads would, with scratch memory that ends where it should. */
static void run(const operands_t *o, int32_t threads) {
  kernel_winograd_cut_t cut = kernel_winograd_cut(&o->winograd, threads);
  float *scratch = malloc(kernel_winograd_scratch(&o->winograd, &cut) * sizeof(float));
  ck_assert_ptr_nonnull(scratch);
  memset(o->y, 0xff, o->y_count * sizeof(float)); /* NaN */
  for (int64_t unit = 0; unit < kernel_winograd_units(&cut); unit++) {
    kernel_winograd_run(&o->winograd, &cut, &o->data, unit, scratch);
  }
  free(scratch);
}

static double convolve(const operands_t *o, int64_t n, int64_t output, int64_t row, int64_t column,
                       double *scale) {
  const kernel_winograd_t *k = &o->winograd;
  double sum = 0;
  for (int64_t i = 0; i < AREA; i++) {
    int64_t from_row = row + i / 3 - k->top;
    int64_t from_column = column + i % 3 - k->left;
    if (from_row < 0 || from_row >= k->x.height || from_column < 0 || from_column >= k->x.width) {
      continue;
    }
    for (int64_t input = 0; input < k->inputs; input++) {
      double product = (double)o->x[place_of(k, &k->x, n, input, from_row, from_column)] *
                       (double)o->w[(output * k->inputs + input) * AREA + i];
      sum += product;
      *scale += fabs(product);
    }
  }
  return sum;
}

static double follow(const operands_t *o, double value) {
  const kernel_winograd_t *k = &o->winograd;
  if (k->swish != 0) {
    return value / (1 + exp(-(double)k->swish * value));
  }
  value = value < 0 ? (double)k->slope * value : value;
  return fmin(fmax(value, (double)k->low), (double)k->high);
}

static void run_and_expect(const operands_t *o, double tolerance) {
  const kernel_winograd_t *k = &o->winograd;
  run(o, 1);
  for (int64_t i = 0; i < (int64_t)o->y_count; i++) {
    int64_t column = i % k->y.width;
    int64_t row = i / k->y.width % k->y.height;
    int64_t output = i / (k->y.width * k->y.height) % k->outputs;
    int64_t n = i / (k->y.width * k->y.height * k->outputs);
    int64_t place = place_of(k, &k->y, n, output, row, column);
    double scale = (double)k->inputs / 8; /* pixels beside it round, too */
    double expected = convolve(o, n, output, row, column, &scale);
    expected += o->data.bias != NULL ? (double)o->bias[output] : 0;
    expected += o->data.sum != NULL ? (double)o->sum[place] : 0;
    expected = follow(o, expected);
    ck_assert_msg(fabs((double)o->y[place] - expected) <= tolerance * scale,
                  "tile %d: [%d, %d, %d, %d] is %.9g, expected %.9g", (int)k->tile, (int)n, (int)output,
                  (int)row, (int)column, (double)o->y[place], expected);
  }
}

static double tolerance_of(int32_t tile) {
  return tile == 2 ? 2e-6 : 1e-5;
}

static void with_all_lanes(void (*check)(int32_t lanes)) {
  for (int32_t lanes = 8; lanes <= kernel_winograd_lanes(); lanes += 8) {
    check(lanes);
  }
}

static void check_sizes(int32_t lanes) {
  static const sizes_t CASES[] = {{1, 8, 8, 1, 1, {1, 1, 1, 1}},    {1, 8, 16, 3, 3, {0, 0, 0, 0}},
                                  {2, 16, 8, 4, 5, {1, 1, 1, 1}},   {1, 24, 40, 7, 6, {1, 1, 1, 1}},
                                  {3, 8, 24, 5, 9, {0, 1, 2, 0}},   {1, 32, 48, 9, 8, {2, 2, 2, 2}},
                                  {1, 8, 8, 6, 6, {4, 5, 4, 5}},    {1, 16, 32, 13, 2, {1, 0, 0, 1}},
                                  {1, 40, 24, 2, 13, {1, 1, 1, 1}}, {2, 16, 136, 10, 11, {1, 1, 1, 1}}};
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    for (int form = 0; form < 4; form++) {
      operands_t o = make(&CASES[k], lanes, form % 2 == 0 ? 2 : 4, form / 2 == 1);
      o.data.bias = (form + (int)k) % 2 == 0 ? o.bias : NULL;
      run_and_expect(&o, tolerance_of(o.winograd.tile));
      release(&o);
    }
  }
}

static const char *lacks_avx2(void) {
  return kernel_winograd_lanes() > 0 ? NULL : "the kernel needs AVX2";
}

UNIT_TEST_UNLESS(convolves_images_of_any_size_and_padding, lacks_avx2) {
  with_all_lanes(check_sizes);
}

/* Transformed for each block of tiles, some inputs at a time: fewer, as many and more than these, and a part
 * of them left at the end; in registers for one to four tiles. */
static void check_windows(int32_t lanes) {
  static const sizes_t CASES[] = {{1, 8, 8, 1, 1, {1, 1, 1, 1}},      {2, 64, 40, 7, 6, {1, 1, 1, 1}},
                                  {1, 72, 24, 14, 14, {1, 1, 1, 1}},  {1, 168, 16, 9, 8, {0, 1, 2, 0}},
                                  {1, 16, 136, 40, 33, {1, 1, 1, 1}}, {1, 24, 40, 7, 6, {1, 1, 1, 1}},
                                  {3, 8, 24, 3, 4, {1, 1, 1, 1}},     {1, 40, 16, 8, 4, {1, 1, 1, 1}}};
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    for (int form = 0; form < 4; form++) {
      operands_t o = make(&CASES[k], lanes, form % 2 == 0 ? 2 : 4, form / 2 == 1);
      take_windows(&o);
      o.data.bias = form / 2 == 0 ? o.bias : NULL;
      o.data.sum = form / 2 == 1 ? o.sum : NULL;
      run_and_expect(&o, tolerance_of(o.winograd.tile));
      release(&o);
    }
  }
}

UNIT_TEST_UNLESS(transforms_windows_as_it_goes, lacks_avx2) {
  with_all_lanes(check_windows);
}

static void check_activations(int32_t lanes) {
  static const sizes_t S = {1, 16, 24, 7, 9, {1, 1, 1, 1}};
  for (int form = 0; form < 16; form++) {
    operands_t o = make(&S, lanes, form % 2 == 0 ? 2 : 4, false);
    o.data.bias = o.bias;
    o.data.sum = form / 2 % 2 == 0 ? o.sum : NULL;
    o.winograd.low = form / 4 == 0 ? 0.0F : (form / 4 == 1 ? -3.0F : -INFINITY);
    o.winograd.high = form / 4 == 1 ? 2.5F : INFINITY;
    o.winograd.slope = form / 4 == 2 ? 0.125F : 1.0F;
    o.winograd.swish = form / 4 == 3 ? 1.5F : 0.0F;
    run_and_expect(&o, tolerance_of(o.winograd.tile));
    release(&o);
  }
}

UNIT_TEST_UNLESS(adds_and_applies_activations, lacks_avx2) {
  with_all_lanes(check_activations);
}

static void check_overwritten(int32_t lanes) {
  static const sizes_t S = {1, 8, 8, 6, 6, {1, 1, 1, 1}};
  operands_t o = make(&S, lanes, 4, false);
  o.data.sum = o.sum;
  run(&o, 1);
  float *apart = malloc(o.y_count * sizeof(float));
  ck_assert_ptr_nonnull(apart);
  memcpy(apart, o.y, o.y_count * sizeof(float));
  o.data.y = o.sum;
  run(&o, 1);
  ck_assert_mem_eq(apart, o.sum, o.y_count * sizeof(float));
  free(apart);
  release(&o);
}

UNIT_TEST_UNLESS(adds_to_what_it_overwrites, lacks_avx2) {
  with_all_lanes(check_overwritten);
}

/* Blocks of tiles and parts of the outputs, in any number. */
static void check_cuts(int32_t lanes) {
  static const sizes_t CASES[] = {
      {1, 16, 24, 40, 33, {1, 1, 1, 1}}, {2, 8, 264, 14, 14, {1, 1, 1, 1}}, {1, 16, 80, 7, 7, {1, 1, 1, 1}}};
  for (size_t k = 0; k < 2 * sizeof CASES / sizeof CASES[0]; k++) {
    operands_t o = make(&CASES[k / 2], lanes, k / 2 % 2 == 0 ? 4 : 2, false);
    if (k % 2 == 1) {
      take_windows(&o);
    }
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

UNIT_TEST_UNLESS(gives_the_same_bits_however_the_work_is_cut, lacks_avx2) {
  with_all_lanes(check_cuts);
}

/* Results that are not finite raise the flag, so that the caller computes again; others do not. */
static void check_flag(int32_t lanes) {
  static const sizes_t S = {1, 8, 8, 9, 9, {1, 1, 1, 1}};
  static const float VALUES[] = {1.0F, 1e30F, NAN, INFINITY, -INFINITY, 3e38F};
  for (int form = 0; form < 12; form++) {
    operands_t o = make(&S, lanes, form % 2 == 0 ? 2 : 4, false);
    float value = VALUES[form / 2];
    o.winograd.low = 0.0F;
    o.winograd.high = 6.0F;
    o.x[place_of(&o.winograd, &o.winograd.x, 0, 3, 8, 4)] = value;
    (void)feclearexcept(FE_ALL_EXCEPT);
    run(&o, 1);
    ck_assert_msg((fetestexcept(FE_INVALID) != 0) == (form / 2 >= 2), "%g, tile %d", (double)value,
                  (int)o.winograd.tile);
    (void)feclearexcept(FE_ALL_EXCEPT);
    release(&o);
  }
}

UNIT_TEST_UNLESS(raises_the_flag_for_what_is_not_finite, lacks_avx2) {
  with_all_lanes(check_flag);
}

UNIT_SUITE("kernels_winograd")

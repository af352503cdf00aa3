// SPDX-License-Identifier: Apache-2.0
// Products and convolutions of float32 by AMX against sums in double: both orders of channels, windows and
// strides, sizes around those of tiles and blocks, all that may follow, any cut of the work, how exact they
// are, special values. On a processor without AMX there is nothing to test.
#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "floats_case.h"
#include "kernels/amx/thirds.h"
#include "kernels/instructions.h"
#include "kernels/loops/loops.h"
#include "unit.h"

enum { PANEL = KERNEL_THIRDS_PANEL };

typedef struct operands {
  kernel_thirds_t thirds;
  kernel_thirds_data_t data;
  float *x;
  float *weights;
  float *bias;
  float *sum;
  float *y;
  size_t y_count;
} operands_t;

static kernel_thirds_image_t image_of(int64_t channels, int64_t lines, int64_t width, bool is_last) {
  int64_t stored = is_last ? channels : floats_case_whole_panels(channels);
  int64_t pixel = is_last ? channels : PANEL;
  return (kernel_thirds_image_t){.image = stored * lines * width,
                                 .line = width * pixel,
                                 .pixel = pixel,
                                 .block = is_last ? PANEL : lines * width * PANEL};
}

/* What sizes leave open is one image, one line, and a window of one pixel. */
typedef struct sizes {
  int64_t images;
  int64_t lines; /* of y */
  int64_t width;
  int64_t depth;
  int64_t columns;
  int64_t sides[2];
  int64_t stride;
  bool is_last;
} sizes_t;

static operands_t make(const sizes_t *s) {
  kernel_thirds_t t = {.images = s->images == 0 ? 1 : s->images,
                       .depth = s->depth,
                       .columns = s->columns,
                       .y_lines = s->lines == 0 ? 1 : s->lines,
                       .y_width = s->width,
                       .sides = {s->sides[0] == 0 ? 1 : s->sides[0], s->sides[1] == 0 ? 1 : s->sides[1]},
                       .stride = s->stride == 0 ? 1 : s->stride,
                       .is_filled = !s->is_last,
                       .activation = {.low = -INFINITY, .high = INFINITY}};
  t.top = t.sides[0] / 2;
  t.left = t.sides[1] / 2;
  t.x_lines = (t.y_lines - 1) * t.stride + 1;
  t.x_width = (t.y_width - 1) * t.stride + 1;
  t.x = image_of(t.depth, t.x_lines, t.x_width, s->is_last);
  t.y = image_of(t.columns, t.y_lines, t.y_width, s->is_last);
  t.sum = t.y;
  int64_t rows = t.sides[0] * t.sides[1] * t.depth;
  operands_t o = {.thirds = t, .y_count = (size_t)(t.images * t.y.image)};
  o.x = floats_case_random(t.images * t.x.image);
  o.weights = floats_case_random(floats_case_whole_panels(t.columns) * rows);
  o.bias = floats_case_random(t.columns);
  o.sum = floats_case_random(t.images * t.y.image);
  for (int64_t n = t.columns; n < floats_case_whole_panels(t.columns); n++) {
    for (int64_t k = 0; k < rows; k++) {
      o.weights[(n / PANEL * rows + k) * PANEL + n % PANEL] = 0;
    }
  }
  o.y = malloc(o.y_count * sizeof(float));
  ck_assert_ptr_nonnull(o.y);
  o.data = (kernel_thirds_data_t){.x = o.x, .weights = o.weights, .y = o.y};
  return o;
}

static void release(operands_t *o) {
  free(o->x);
  free(o->weights);
  free(o->bias);
  free(o->sum);
  free(o->y);
}

static void run(const operands_t *o, int32_t threads) {
  kernel_thirds_cut_t cut = kernel_thirds_cut(&o->thirds, threads);
  size_t bytes = kernel_thirds_scratch(&o->thirds, &cut);
  void *scratch = aligned_alloc(64, bytes);
  void *work = aligned_alloc(64, KERNEL_THIRDS_WORK);
  ck_assert(scratch != NULL && work != NULL);
  memset(work, 0xff, KERNEL_THIRDS_WORK);
  memset(scratch, 0xff, bytes); /* NaN */
  if (o->data.sum != o->y) {
    memset(o->y, 0xff, o->y_count * sizeof(float));
  }
  for (int64_t unit = cut.parts == 1 ? 0 : kernel_thirds_split_units(&o->thirds, &cut); unit-- > 0;) {
    kernel_thirds_split(&o->thirds, &cut, &o->data, unit, scratch);
  }
  for (int64_t unit = kernel_thirds_units(&o->thirds, &cut); unit-- > 0;) {
    kernel_thirds_run(&o->thirds, &cut, &o->data, unit, scratch, work);
  }
  free(scratch);
  free(work);
}

/* The sum of a window at a result, and in `scale` that of its terms' sizes. */
static double window_at(const operands_t *o, int64_t image, int64_t line, int64_t pixel, int64_t n,
                        double *scale) {
  const kernel_thirds_t *t = &o->thirds;
  int64_t rows = t->sides[0] * t->sides[1] * t->depth;
  double value = 0;
  for (int64_t place = 0; place < t->sides[0] * t->sides[1]; place++) {
    int64_t down = line * t->stride + place / t->sides[1] - t->top;
    int64_t across = pixel * t->stride + place % t->sides[1] - t->left;
    if (down < 0 || down >= t->x_lines || across < 0 || across >= t->x_width) {
      continue;
    }
    const float *x = o->x + image * t->x.image + down * t->x.line + across * t->x.pixel;
    const float *w = o->weights + (n / PANEL * rows + place * t->depth) * PANEL + n % PANEL;
    for (int64_t k = 0; k < t->depth; k++) {
      double product = (double)x[k / PANEL * t->x.block + k % PANEL] * (double)w[k * PANEL];
      value += product;
      *scale += fabs(product);
    }
  }
  return value;
}

static void expect_at(const operands_t *o, int64_t pixel, int64_t n) {
  const kernel_thirds_t *t = &o->thirds;
  int64_t image = pixel / (t->y_lines * t->y_width);
  int64_t line = pixel / t->y_width % t->y_lines;
  int64_t across = pixel % t->y_width;
  int64_t at =
      image * t->y.image + line * t->y.line + across * t->y.pixel + n / PANEL * t->y.block + n % PANEL;
  if (n >= t->columns) {
    ck_assert_msg(o->y[at] == 0, "behind the last column: %g", (double)o->y[at]);
    return;
  }
  double scale = 1;
  double value = window_at(o, image, line, across, n, &scale);
  value += o->data.bias != NULL ? (double)o->bias[n] : 0;
  value += o->data.sum != NULL ? (double)o->sum[at] : 0;
  value = floats_case_activate(&t->activation, value);
  ck_assert_msg(fabs((double)o->y[at] - value) <= 5e-7 * scale, "[%d, %d, %d, %d] is %.9g, expected %.9g",
                (int)image, (int)line, (int)across, (int)n, (double)o->y[at], value);
}

static void expect(const operands_t *o) {
  const kernel_thirds_t *t = &o->thirds;
  int64_t columns = t->is_filled ? floats_case_whole_panels(t->columns) : t->columns;
  for (int64_t pixel = 0; pixel < t->images * t->y_lines * t->y_width; pixel++) {
    for (int64_t n = 0; n < columns; n++) {
      expect_at(o, pixel, n);
    }
  }
}

static const char *lacks_amx(void) {
  return kernel_thirds_runs_here() ? NULL : "the kernel is for AMX";
}

UNIT_TEST_UNLESS(multiplies_matrices_of_any_size, lacks_amx) {
  static const int64_t ROWS[] = {1, 15, 16, 17, 33, 64, 100, 257, 300};
  static const int64_t COLUMNS[] = {1, 16, 17, 32, 40, 48, 75};
  static const int64_t DEPTHS[] = {1, 16, 17, 32, 33, 100, 128, 130, 513, 700};
  for (int k = 0; k < 9 * 7 * 3; k++) {
    const sizes_t sizes = {
        .width = ROWS[k % 9], .columns = COLUMNS[k / 9 % 7], .depth = DEPTHS[k % 10], .is_last = k % 2 == 0};
    operands_t o = make(&sizes);
    o.data.bias = k % 3 == 0 ? o.bias : NULL;
    o.data.sum = k % 5 < 2 ? o.sum : NULL;
    run(&o, 1);
    expect(&o);
    release(&o);
  }
}

UNIT_TEST_UNLESS(convolves_images, lacks_amx) {
  static const sizes_t SIZES[] = {
      {.lines = 7, .width = 7, .depth = 64, .columns = 48, .sides = {3, 3}},
      {.lines = 7, .width = 9, .depth = 40, .columns = 30, .sides = {3, 3}, .stride = 2},
      {.lines = 14, .width = 14, .depth = 32, .columns = 32, .sides = {1, 1}, .stride = 2},
      {.lines = 20, .width = 30, .depth = 20, .columns = 20, .sides = {5, 5}},
      {.lines = 12, .width = 11, .depth = 33, .columns = 16, .sides = {7, 7}, .stride = 2},
      {.lines = 9, .width = 20, .depth = 48, .columns = 24, .sides = {1, 7}},
      {.lines = 20, .width = 9, .depth = 16, .columns = 40, .sides = {7, 1}},
      {.lines = 5, .width = 8, .depth = 17, .columns = 33, .sides = {3, 3}, .stride = 3},
      {.lines = 4, .width = 5, .depth = 600, .columns = 20, .sides = {3, 3}},
      {.lines = 3, .width = 300, .depth = 16, .columns = 16, .sides = {3, 3}},
      {.lines = 2, .width = 600, .depth = 16, .columns = 16, .sides = {3, 3}, .stride = 2},
  };
  for (size_t k = 0; k < 2 * sizeof SIZES / sizeof SIZES[0]; k++) {
    sizes_t sizes = SIZES[k / 2];
    sizes.is_last = k % 2 == 0;
    sizes.images = k % 3 == 0 ? 2 : 1;
    operands_t o = make(&sizes);
    o.data.bias = o.bias;
    o.data.sum = k % 4 < 2 ? o.sum : NULL;
    run(&o, 1);
    expect(&o);
    release(&o);
  }
}

UNIT_TEST_UNLESS(applies_activations, lacks_amx) {
  static const kernel_activation_t ACTIVATIONS[] = {
      {.kind = KERNEL_BOUNDS, .low = 0, .high = INFINITY},
      {.kind = KERNEL_BOUNDS, .low = 1, .high = 6},
      {.kind = KERNEL_SWISH, .low = -INFINITY, .high = INFINITY, .alpha = 1},
      {.kind = KERNEL_GATE, .low = -INFINITY, .high = INFINITY, .alpha = 1.0F / 6, .beta = 0.5F},
      {.kind = KERNEL_SIGMOID, .low = -INFINITY, .high = INFINITY, .alpha = 1},
  };
  for (size_t k = 0; k < sizeof ACTIVATIONS / sizeof ACTIVATIONS[0]; k++) {
    const sizes_t sizes = {
        .lines = 6, .width = 10, .depth = 520, .columns = 40, .sides = {3, 3}, .is_last = k % 2 == 0};
    operands_t o = make(&sizes);
    o.data.bias = o.bias;
    o.data.sum = o.sum;
    o.thirds.activation = ACTIVATIONS[k];
    run(&o, 1);
    expect(&o);
    release(&o);
  }
}

UNIT_TEST_UNLESS(applies_a_function_to_results, lacks_amx) {
  kernel_unary_t gate = kernel_loops_choose(KERNEL_AVX512)->unary[KERNEL_Swish][CLEAVE_DTYPE_F32];
  const sizes_t sizes = {.width = 77, .depth = 900, .columns = 40, .is_last = true};
  operands_t o = make(&sizes);
  o.data.bias = o.bias;
  run(&o, 1);
  float *expected = malloc(o.y_count * sizeof(float));
  ck_assert_ptr_nonnull(expected);
  gate(expected, o.y, (int64_t)o.y_count, 0.5, 0);
  o.thirds.then = gate;
  o.thirds.alpha = 0.5;
  run(&o, 1);
  ck_assert_mem_eq(o.y, expected, o.y_count * sizeof(float));
  free(expected);
  release(&o);
}

/* The same bits for any cut of the work, threads that share columns among them, also if results are added to
 * what is there. */
UNIT_TEST_UNLESS(is_the_same_for_any_number_of_threads, lacks_amx) {
  static const sizes_t SIZES[] = {
      {.width = 49, .depth = 2048, .columns = 512, .is_last = true},
      {.width = 1000, .depth = 96, .columns = 64, .is_last = true},
      {.lines = 7, .width = 7, .depth = 512, .columns = 256, .sides = {3, 3}},
      {.lines = 56, .width = 56, .depth = 64, .columns = 64, .sides = {3, 3}},
      {.lines = 28, .width = 28, .depth = 64, .columns = 100, .sides = {3, 3}, .stride = 2, .images = 3},
  };
  bool is_shared = false;
  for (size_t k = 0; k < sizeof SIZES / sizeof SIZES[0]; k++) {
    operands_t o = make(&SIZES[k]);
    size_t bytes = o.y_count * sizeof(float);
    float *expected = malloc(bytes);
    ck_assert_ptr_nonnull(expected);
    o.data.sum = o.sum;
    run(&o, 1);
    memcpy(expected, o.y, bytes);
    for (int32_t threads = 2; threads < 9; threads++) {
      memcpy(o.y, o.sum, bytes);
      o.data.sum = o.y;
      run(&o, threads);
      ck_assert_mem_eq(o.y, expected, bytes);
      is_shared = is_shared || kernel_thirds_cut(&o.thirds, threads).parts > 1;
    }
    free(expected);
    release(&o);
  }
  ck_assert(is_shared);
}

/* Not worse than sums of float32 one by one. */
UNIT_TEST_UNLESS(is_as_exact_as_float32, lacks_amx) {
  static const int64_t DEPTHS[] = {64, 512, 3072};
  for (size_t d = 0; d < sizeof DEPTHS / sizeof DEPTHS[0]; d++) {
    const sizes_t sizes = {.width = 64, .depth = DEPTHS[d], .columns = 64, .is_last = true};
    operands_t o = make(&sizes);
    double own = 0;
    double plain = 0;
    run(&o, 1);
    for (int64_t i = 0; i < 64; i++) {
      for (int64_t n = 0; n < 64; n++) {
        double scale = 0;
        double exact = window_at(&o, 0, 0, i, n, &scale);
        float value = 0;
        for (int64_t k = 0; k < sizes.depth; k++) {
          value = fmaf(o.x[i * sizes.depth + k], o.weights[(n / PANEL * sizes.depth + k) * PANEL + n % PANEL],
                       value);
        }
        own += pow((double)o.y[i * 64 + n] - exact, 2);
        plain += pow((double)value - exact, 2);
      }
    }
    ck_assert_msg(own < plain, "depth %d: %g, one by one %g", (int)sizes.depth, sqrt(own), sqrt(plain));
    release(&o);
  }
}

/* A NaN stays; what is no number in bfloat16 is not lost in silence. */
UNIT_TEST_UNLESS(tells_of_infinities, lacks_amx) {
  static const float VALUES[] = {NAN, INFINITY, -INFINITY, 3.4e38F, 3.38e38F};
  for (size_t k = 0; k < sizeof VALUES / sizeof VALUES[0]; k++) {
    const sizes_t sizes = {.width = 20, .depth = 40, .columns = 20, .is_last = true};
    operands_t o = make(&sizes);
    o.x[7 * 40 + 3] = VALUES[k];
    feclearexcept(FE_INVALID);
    run(&o, 1);
    bool is_raised = fetestexcept(FE_INVALID) != 0;
    ck_assert(k == 0 || is_raised == (k <= 3));
    for (int64_t i = 0; i < 20; i++) {
      for (int64_t n = 0; n < 20; n++) {
        bool is_number = !isnan(o.y[i * 20 + n]);
        ck_assert_int_eq(is_number, i != 7 || k == 4);
      }
    }
    feclearexcept(FE_INVALID);
    release(&o);
  }
}

UNIT_SUITE("kernels_thirds")

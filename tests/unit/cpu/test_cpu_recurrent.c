// SPDX-License-Identifier: Apache-2.0
// Recurrent layers against a plain evaluation of ONNX's formulas in double, over drawn combinations of
// operator, direction, layout, lengths and options, with sizes below, at and above those of a block and of a
// tile.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/recurrent/recurrent.h"
#include "system/threads.h"
#include "unit.h"

enum { MAX_STEPS = 5, MAX_BATCH = 14, MAX_INPUT_SIZE = 9, MAX_HIDDEN = 37, CASES = 400 };
enum { MAX_STATES = 2 * MAX_BATCH * MAX_HIDDEN };

typedef struct layer {
  cpu_recurrent_t recurrent;
  cpu_recurrent_sizes_t sizes;
  bool has_bias;
  bool has_peepholes;
  bool has_lengths;
  bool has_states;
  double x[MAX_STEPS * MAX_BATCH * MAX_INPUT_SIZE];
  double w[2 * 4 * MAX_HIDDEN * MAX_INPUT_SIZE];
  double r[2 * 4 * MAX_HIDDEN * MAX_HIDDEN];
  double b[2 * 8 * MAX_HIDDEN];
  double p[2 * 3 * MAX_HIDDEN];
  double h[MAX_STATES];
  double c[MAX_STATES];
  int64_t lengths[MAX_BATCH];
} layer_t;

typedef struct result {
  double y[MAX_STEPS * MAX_STATES];
  double y_h[MAX_STATES];
  double y_c[MAX_STATES];
} result_t;

static uint32_t seed;

static uint32_t below(uint32_t bound) {
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % bound;
}

/* Multiples of 1/1024: the same in float and double. */
static void fill(double *values, size_t count) {
  for (size_t k = 0; k < count; k++) {
    values[k] = ((double)below(1024) - 512) / 1024;
  }
}

#define FILL(array) fill((array), sizeof(array) / sizeof(array)[0])

static void draw(layer_t *layer) {
  static const int64_t gates[] = {[CPU_RNN] = 1, [CPU_GRU] = 3, [CPU_LSTM] = 4};
  static const int64_t hidden[] = {1, 3, 8, 15, 16, 17, 32, MAX_HIDDEN};
  cpu_recurrent_t *recurrent = &layer->recurrent;
  *recurrent = (cpu_recurrent_t){.kind = (cpu_recurrent_kind_t)below(3),
                                 .directions = 1 + (int32_t)below(2),
                                 .batch_first = below(2) == 1,
                                 .linear_before_reset = below(2) == 1,
                                 .input_forget = below(4) == 0,
                                 .clip = below(4) == 0 ? 0.25 : INFINITY};
  recurrent->gates = gates[recurrent->kind];
  recurrent->reverse = recurrent->directions == 1 && below(2) == 1;
  for (int k = 0; k < 6; k++) {
    uint32_t draw = below(6);
    recurrent->activations[k / 3][k % 3] = (cpu_recurrent_activation_t){
        .function = draw == 0   ? CPU_RECURRENT_HARD_SIGMOID
                    : draw == 1 ? CPU_RECURRENT_RELU
                                : (draw % 2 == 0 ? CPU_RECURRENT_TANH : CPU_RECURRENT_SIGMOID),
        .alpha = 0.25,
        .beta = 0.5};
  }
  layer->sizes = (cpu_recurrent_sizes_t){.steps = below(MAX_STEPS + 1),
                                         .batch = 1 + below(MAX_BATCH),
                                         .input = 1 + below(MAX_INPUT_SIZE),
                                         .hidden = hidden[below(8)]};
  layer->has_bias = below(4) != 0;
  layer->has_peepholes = recurrent->kind == CPU_LSTM && below(2) == 0;
  layer->has_lengths = below(2) == 0;
  layer->has_states = below(2) == 0;
  FILL(layer->x);
  FILL(layer->w);
  FILL(layer->r);
  FILL(layer->b);
  FILL(layer->p);
  FILL(layer->h);
  FILL(layer->c);
  for (int n = 0; n < MAX_BATCH; n++) {
    layer->lengths[n] = (int64_t)below((uint32_t)layer->sizes.steps + 1);
  }
}

/* ---- ONNX's formulas ------------------------------------------------------------------------------ */

static double activate(const cpu_recurrent_activation_t *activation, double x) {
  switch (activation->function) {
    case CPU_RECURRENT_SIGMOID: return 1 / (1 + exp(-x));
    case CPU_RECURRENT_RELU: return x > 0 ? x : 0;
    case CPU_RECURRENT_HARD_SIGMOID: return fmin(fmax(activation->alpha * x + activation->beta, 0), 1);
    default: return tanh(x);
  }
}

static double gate(const layer_t *layer, int direction, int which, double x) {
  double clip = layer->recurrent.clip;
  return activate(&layer->recurrent.activations[direction][which], fmin(fmax(x, -clip), clip));
}

/* W x of one unit of a gate, or R h, with the bias that belongs to it. */
static double dot(const layer_t *layer, int direction, bool is_recurrent, int64_t which, int64_t unit,
                  const double *vector) {
  int64_t depth = is_recurrent ? layer->sizes.hidden : layer->sizes.input;
  int64_t rows = layer->recurrent.gates * layer->sizes.hidden;
  int64_t row = which * layer->sizes.hidden + unit;
  const double *matrix = (is_recurrent ? layer->r : layer->w) + (direction * rows + row) * depth;
  double sum = layer->has_bias ? layer->b[(direction * 2 + (is_recurrent ? 1 : 0)) * rows + row] : 0;
  for (int64_t k = 0; k < depth; k++) {
    sum += matrix[k] * vector[k];
  }
  return sum;
}

static void cell(const layer_t *layer, int d, const double *x, double *h, double *c) {
  int64_t size = layer->sizes.hidden;
  double next[MAX_HIDDEN];
  double reset[MAX_HIDDEN];
  const double *p = layer->p + d * 3 * size;
  for (int64_t k = 0; k < size && layer->recurrent.kind == CPU_GRU; k++) {
    reset[k] = gate(layer, d, 0, dot(layer, d, false, 1, k, x) + dot(layer, d, true, 1, k, h)) * h[k];
  }
  for (int64_t k = 0; k < size; k++) {
    double sums[4];
    for (int64_t g = 0; g < layer->recurrent.gates; g++) {
      sums[g] = dot(layer, d, false, g, k, x) + dot(layer, d, true, g, k, h);
    }
    if (layer->recurrent.kind == CPU_RNN) {
      next[k] = gate(layer, d, 0, sums[0]);
    } else if (layer->recurrent.kind == CPU_GRU) {
      double update = gate(layer, d, 0, sums[0]);
      double recurrent = layer->recurrent.linear_before_reset
                             ? gate(layer, d, 0, sums[1]) * dot(layer, d, true, 2, k, h)
                             : dot(layer, d, true, 2, k, reset);
      next[k] = (1 - update) * gate(layer, d, 1, dot(layer, d, false, 2, k, x) + recurrent) + update * h[k];
    } else {
      bool peeps = layer->has_peepholes;
      double input = gate(layer, d, 0, sums[0] + (peeps ? p[k] * c[k] : 0));
      double forget = gate(layer, d, 0, sums[2] + (peeps ? p[2 * size + k] * c[k] : 0));
      c[k] = (layer->recurrent.input_forget ? 1 - input : forget) * c[k] + input * gate(layer, d, 1, sums[3]);
      double output = gate(layer, d, 0, sums[1] + (peeps ? p[size + k] * c[k] : 0));
      next[k] = output * activate(&layer->recurrent.activations[d][2], c[k]);
    }
  }
  memcpy(h, next, (size_t)size * sizeof(double));
}

static void evaluate(const layer_t *layer, result_t *out) {
  const cpu_recurrent_sizes_t *s = &layer->sizes;
  int64_t directions = layer->recurrent.directions;
  memset(out, 0, sizeof *out);
  for (int d = 0; d < directions; d++) {
    for (int64_t n = 0; n < s->batch; n++) {
      int64_t at = (layer->recurrent.batch_first ? n * directions + d : d * s->batch + n) * s->hidden;
      int64_t length = layer->has_lengths ? layer->lengths[n] : s->steps;
      double *h = out->y_h + at;
      for (int64_t k = 0; k < s->hidden && layer->has_states; k++) {
        h[k] = layer->h[at + k];
        out->y_c[at + k] = layer->c[at + k];
      }
      for (int64_t step = 0; step < length; step++) {
        bool backwards = layer->recurrent.reverse || d == 1;
        int64_t t = backwards ? length - 1 - step : step;
        int64_t row = layer->recurrent.batch_first ? n * s->steps + t : t * s->batch + n;
        int64_t y_row =
            layer->recurrent.batch_first ? row * directions + d : (t * directions + d) * s->batch + n;
        cell(layer, d, layer->x + row * s->input, h, out->y_c + at);
        memcpy(out->y + y_row * s->hidden, h, (size_t)s->hidden * sizeof(double));
      }
    }
  }
}

/* ---- what is tested ------------------------------------------------------------------------------- */

static void round_to_floats(void *values, size_t count) {
  double *from = values;
  float *to = values;
  for (size_t k = 0; k < count; k++) {
    to[k] = (float)from[k];
  }
}

static void widen(void *values, size_t count) {
  double *to = values;
  float *from = values;
  for (size_t k = count; k-- > 0;) {
    double wide = (double)from[k];
    memcpy(&to[k], &wide, sizeof wide);
  }
}

#define ROUND(array) round_to_floats((array), sizeof(array) / sizeof(double))
#define WIDEN(array) widen((array), sizeof(array) / sizeof(double))

static void compute(const layer_t *given, bool is_double, bool is_packed, int32_t threads, result_t *out) {
  layer_t *layer = malloc(sizeof *layer);
  ck_assert_ptr_nonnull(layer);
  memcpy(layer, given, sizeof *layer);
  memset(out, 0, sizeof *out);
  if (!is_double) {
    ROUND(layer->x);
    ROUND(layer->w);
    ROUND(layer->r);
    ROUND(layer->b);
    ROUND(layer->p);
    ROUND(layer->h);
    ROUND(layer->c);
  }
  cpu_recurrent_data_t data = {.x = layer->x,
                               .w = layer->w,
                               .r = layer->r,
                               .b = layer->has_bias ? layer->b : NULL,
                               .p = layer->has_peepholes ? layer->p : NULL,
                               .lengths = layer->has_lengths ? layer->lengths : NULL,
                               .initial_h = layer->has_states ? layer->h : NULL,
                               .initial_c = layer->has_states ? layer->c : NULL,
                               .y = out->y,
                               .y_h = out->y_h,
                               .y_c = layer->recurrent.kind == CPU_LSTM ? out->y_c : NULL};
  const cpu_recurrent_t *recurrent = &layer->recurrent;
  const cpu_recurrent_sizes_t *sizes = &layer->sizes;
  size_t scratch_bytes = is_double ? cpu_recurrent_scratch_f64(recurrent, sizes, is_packed)
                                   : cpu_recurrent_scratch_f32(recurrent, sizes, is_packed);
  size_t packed_bytes = is_double ? cpu_recurrent_packed_bytes_f64(recurrent, sizes)
                                  : cpu_recurrent_packed_bytes_f32(recurrent, sizes);
  void *scratch = aligned_alloc(64, (scratch_bytes + 63) / 64 * 64);
  void *packed = is_packed ? aligned_alloc(64, (packed_bytes + 63) / 64 * 64) : NULL;
  ck_assert(scratch != NULL && (packed != NULL || !is_packed));
  memset(scratch, 0xff, scratch_bytes); /* NaN: nothing is read that was not written */
  if (packed != NULL) {
    memset(packed, 0xff, packed_bytes);
    (is_double ? cpu_recurrent_pack_f64 : cpu_recurrent_pack_f32)(recurrent, sizes, &data, packed);
    data.w = data.r = data.b = NULL;
  }
  const cpu_recurrent_run_t run = {
      .packed = packed, .scratch = scratch, .threads = threads, .parallel_for = cleave_parallel_for};
  (is_double ? cpu_recurrent_run_f64 : cpu_recurrent_run_f32)(recurrent, sizes, &data, &run);
  if (!is_double) {
    WIDEN(out->y);
    WIDEN(out->y_h);
    WIDEN(out->y_c);
  }
  free(packed);
  free(scratch);
  free(layer);
}

static void compare(const char *what, uint32_t number, const double *found, const double *expected,
                    int64_t count, double tolerance) {
  double largest = 1;
  for (int64_t k = 0; k < count; k++) {
    largest = fmax(largest, fabs(expected[k]));
  }
  for (int64_t k = 0; k < count; k++) {
    ck_assert_msg(fabs(found[k] - expected[k]) <= tolerance * largest,
                  "case %u: %s[%lld] is %.9g, expected %.9g", (unsigned)number, what, (long long)k, found[k],
                  expected[k]);
  }
}

UNIT_TEST(computes_what_onnx_says_in_every_variant) {
  layer_t *layer = malloc(sizeof *layer);
  result_t *expected = malloc(sizeof *expected);
  result_t *found = malloc(sizeof *found);
  ck_assert(layer != NULL && expected != NULL && found != NULL);
  for (uint32_t number = 0; number < CASES; number++) {
    seed = number * 977 + 1;
    draw(layer);
    evaluate(layer, expected);
    bool is_double = number % 2 == 1;
    double tolerance = is_double ? 1e-12 : 2e-5;
    int64_t states = layer->recurrent.directions * layer->sizes.batch * layer->sizes.hidden;
    compute(layer, is_double, number % 3 != 0, 1 + (int32_t)(number % 4), found);
    compare("Y", number, found->y, expected->y, layer->sizes.steps * states, tolerance);
    compare("Y_h", number, found->y_h, expected->y_h, states, tolerance);
    if (layer->recurrent.kind == CPU_LSTM) {
      compare("Y_c", number, found->y_c, expected->y_c, states, tolerance);
    }
  }
  free(layer);
  free(expected);
  free(found);
}

UNIT_TEST(gives_the_same_bits_on_any_number_of_threads_and_packed_or_not) {
  layer_t *layer = malloc(sizeof *layer);
  result_t *one = malloc(sizeof *one);
  result_t *other = malloc(sizeof *other);
  ck_assert(layer != NULL && one != NULL && other != NULL);
  for (uint32_t number = 0; number < 40; number++) {
    seed = number * 31 + 7;
    draw(layer);
    layer->sizes.hidden = MAX_HIDDEN;
    layer->sizes.batch = MAX_BATCH;
    compute(layer, false, true, 1, one);
    for (int32_t threads = 1; threads <= 4; threads++) {
      compute(layer, false, threads % 2 == 0, threads, other);
      ck_assert_mem_eq(one, other, sizeof *one);
    }
  }
  free(layer);
  free(one);
  free(other);
}

/* Zero times infinity is NaN: the first step from a zero state must not skip the product then. */
UNIT_TEST(an_infinite_weight_meets_a_zero_state) {
  layer_t *layer = calloc(1, sizeof *layer);
  result_t *found = malloc(sizeof *found);
  ck_assert(layer != NULL && found != NULL);
  layer->recurrent = (cpu_recurrent_t){.kind = CPU_RNN, .gates = 1, .directions = 1, .clip = INFINITY};
  layer->sizes = (cpu_recurrent_sizes_t){.steps = 1, .batch = 1, .input = 1, .hidden = 2};
  layer->r[3] = INFINITY;
  compute(layer, false, true, 1, found);
  ck_assert_msg(found->y[0] == 0 && isnan(found->y[1]), "Y is %g %g, expected 0 and NaN", found->y[0],
                found->y[1]);
  free(layer);
  free(found);
}

UNIT_SUITE("cpu_recurrent")

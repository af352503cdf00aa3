// SPDX-License-Identifier: Apache-2.0
// RandomNormal, RandomUniform, their Like forms, Bernoulli and Multinomial. Element k is a hash of the seed
// and k: the same seed gives the same numbers on any number of threads. Without a seed attribute the seed is
// 0.
#include <math.h>
#include <string.h>

#include "cpu/common/loop.h"
#include "kernels/convert.h"

typedef enum distribution { UNIFORM, NORMAL, BERNOULLI } distribution_t;

typedef struct random_state {
  distribution_t distribution;
  double first;  /* low, or mean */
  double second; /* high, or scale */
  uint64_t seed;
  const int64_t *shape;
  uint32_t rank;
  bool is_like;
} random_state_t;

static cleave_status_t prepare_random(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  random_state_t *self = state;
  const char *op = prepare->node->op;
  self->distribution = strncmp(op, "RandomNormal", 12) == 0 ? NORMAL
                       : strcmp(op, "Bernoulli") == 0       ? BERNOULLI
                                                            : UNIFORM;
  bool is_normal = self->distribution == NORMAL;
  self->first = cleave_view_float(prepare->node, is_normal ? "mean" : "low", 0.0);
  self->second = cleave_view_float(prepare->node, is_normal ? "scale" : "high", 1.0);
  double seed = cleave_view_float(prepare->node, "seed", 0.0);
  memcpy(&self->seed, &seed, sizeof seed);
  self->is_like = self->distribution == BERNOULLI || strstr(op, "Like") != NULL;
  cleave_dtype_t dtype = cpu_output_dtype(prepare, 0);
  if (!cpu_dtype_is_plain(dtype) || (self->is_like && prepare->node->input_count < 1) ||
      (self->distribution == BERNOULLI && !cpu_dtype_is_float(cpu_input_dtype(prepare, 0)))) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "dtype %s is not supported", cpu_dtype_name(dtype));
  }
  if (self->is_like) {
    return CLEAVE_OK;
  }
  cleave_status_t status = cpu_prepare_ints(prepare, "shape", &self->shape, &self->rank);
  if (status == CLEAVE_OK && self->rank > CLEAVE_MAX_RANK) {
    return kernel_fail(message, CLEAVE_ERROR_LIMIT, "shape has %u dims, at most %d", (unsigned)self->rank,
                       CLEAVE_MAX_RANK);
  }
  return status;
}

/* A number in [0, 1) with 53 random bits. */
static double draw(uint64_t seed, uint64_t counter) {
  uint64_t x = seed + (counter + 1) * UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  x ^= x >> 31;
  return (double)(x >> 11) * 0x1p-53;
}

typedef struct random_work {
  const random_state_t *state;
  const cpu_tensor_t *from; /* probabilities of Bernoulli */
  cpu_tensor_t *to;
} random_work_t;

static void random_units(void *context, int64_t begin, int64_t end) {
  const random_work_t *work = context;
  const random_state_t *state = work->state;
  for (int64_t k = begin; k < end; k++) {
    double u = draw(state->seed, 2 * (uint64_t)k);
    double value = 0.0;
    if (state->distribution == BERNOULLI) {
      value = u < cpu_read_float(work->from, k) ? 1.0 : 0.0;
    } else if (state->distribution == UNIFORM) {
      value = state->first + u * (state->second - state->first);
    } else {
      double angle = 6.283185307179586 * draw(state->seed, 2 * (uint64_t)k + 1);
      value = state->first + state->second * sqrt(-2.0 * log(1.0 - u)) * cos(angle);
    }
    cpu_write_float(work->to, k, value);
  }
}

static cleave_status_t run_random(const cpu_call_t *call, cleave_message_t *message) {
  const random_state_t *state = call->state;
  int32_t rank = state->is_like ? call->inputs[0]->rank : (int32_t)state->rank;
  const int64_t *dims = state->is_like ? call->inputs[0]->dims : state->shape;
  cleave_status_t status = cpu_output_shape(call, 0, rank, dims, message);
  if (status == CLEAVE_OK) {
    random_work_t work = {.state = state, .from = cpu_input(call, 0), .to = call->outputs[0]};
    cpu_parallel(call, work.to->count, 1024, random_units, &work);
  }
  return status;
}

#define KERNEL(name, inputs)                                                                        \
  {                                                                                                 \
    .op = name, .state_size = sizeof(random_state_t), .prepare = prepare_random, .run = run_random, \
    .required_inputs = inputs                                                                       \
  }

/* ---- Multinomial */

typedef struct multinomial_state {
  int64_t samples;
  uint64_t seed;
} multinomial_state_t;

static cleave_status_t prepare_multinomial(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  multinomial_state_t *self = state;
  double seed = cleave_view_float(prepare->node, "seed", 0.0);
  memcpy(&self->seed, &seed, sizeof seed);
  self->samples = cleave_view_int(prepare->node, "sample_size", 1);
  cleave_dtype_t dtype = cpu_output_dtype(prepare, 0);
  if (!cpu_dtype_is_float(cpu_input_dtype(prepare, 0)) || self->samples < 0 ||
      (dtype != CLEAVE_DTYPE_I32 && dtype != CLEAVE_DTYPE_I64)) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "%lld sample%s of %s as %s: not supported",
                       (long long)self->samples, KERNEL_PLURAL(self->samples),
                       cpu_dtype_name(cpu_input_dtype(prepare, 0)), cpu_dtype_name(dtype));
  }
  return CLEAVE_OK;
}

/* The class that a number in [0, 1) falls into, by the probabilities that the row gives as logarithms. */
static int64_t pick_class(const cpu_tensor_t *logits, int64_t start, int64_t classes, double u) {
  double most = -INFINITY;
  double total = 0.0;
  for (int64_t k = 0; k < classes; k++) {
    most = fmax(most, cpu_read_float(logits, start + k));
  }
  for (int64_t k = 0; k < classes; k++) {
    total += exp(cpu_read_float(logits, start + k) - most);
  }
  double left = u * total;
  for (int64_t k = 0; k < classes - 1; k++) {
    left -= exp(cpu_read_float(logits, start + k) - most);
    if (left < 0) {
      return k;
    }
  }
  return classes - 1;
}

static cleave_status_t run_multinomial(const cpu_call_t *call, cleave_message_t *message) {
  const multinomial_state_t *state = call->state;
  const cpu_tensor_t *logits = call->inputs[0];
  if (logits->rank != 2 || logits->dims[1] == 0) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "the input must have two dims, and at least one class");
  }
  int64_t dims[2] = {logits->dims[0], state->samples};
  cleave_status_t status = cpu_output_shape(call, 0, 2, dims, message);
  for (int64_t k = 0; status == CLEAVE_OK && k < call->outputs[0]->count; k++) {
    int64_t start = k / state->samples * logits->dims[1];
    int64_t picked = pick_class(logits, start, logits->dims[1], draw(state->seed, (uint64_t)k));
    cpu_write_float(call->outputs[0], k, (double)picked);
  }
  return status;
}

const cpu_kernel_t cpu_kernels_random[] = {
    KERNEL("RandomNormal", 0),
    KERNEL("RandomUniform", 0),
    KERNEL("RandomNormalLike", 1),
    KERNEL("RandomUniformLike", 1),
    KERNEL("Bernoulli", 1),
    CPU_KERNEL("Multinomial", 1, .state_size = sizeof(multinomial_state_t), .prepare = prepare_multinomial,
               .run = run_multinomial),
    {0},
};

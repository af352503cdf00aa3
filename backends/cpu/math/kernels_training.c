// SPDX-License-Identifier: Apache-2.0
// Optimiser steps of ai.onnx.preview.training: Adagrad, Adam and Momentum. Inputs are the learning rate R,
// the update count T, then for n tensors: n values X, n gradients G, and n states of each kind; outputs are
// the new values and states in the same groups. Computed in double, element by element.
#include <math.h>

#include "cpu/common/loop.h"
#include "kernels/convert.h"

typedef enum optimiser { ADAGRAD, ADAM, MOMENTUM } optimiser_t;

typedef struct training_state {
  optimiser_t optimiser;
  uint32_t kinds; /* states per tensor */
  uint32_t tensors;
  double alpha;
  double beta;
  double decay;
  double epsilon;
  double norm;
  double norm_post;
  bool nesterov;
} training_state_t;

static cleave_status_t prepare_training(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  training_state_t *self = state;
  const cleave_node_view_t *node = prepare->node;
  self->optimiser = (optimiser_t)prepare->variant;
  self->kinds = self->optimiser == ADAM ? 2 : 1;
  self->alpha = cleave_view_float(node, "alpha", 0.9);
  self->beta = cleave_view_float(node, "beta", 0.999);
  self->decay = cleave_view_float(node, "decay_factor", 0.0);
  self->epsilon = cleave_view_float(node, "epsilon", 1e-6);
  self->norm = cleave_view_float(node, "norm_coefficient", 0.0);
  self->norm_post = cleave_view_float(node, "norm_coefficient_post", 0.0);
  self->nesterov = cleave_view_text_equal(cleave_view_string(node, "mode", "standard"), "nesterov");
  uint32_t groups = 2 + self->kinds;
  self->tensors = (node->input_count - 2) / groups;
  if (self->tensors == 0 || node->input_count != 2 + self->tensors * groups ||
      node->output_count != self->tensors * (groups - 1)) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "%u inputs and %u outputs are not whole groups",
                       (unsigned)node->input_count, (unsigned)node->output_count);
  }
  for (uint32_t k = 2; k < node->input_count; k++) {
    cleave_dtype_t dtype = cpu_input_dtype(prepare, k);
    if (!cpu_dtype_is_float(dtype) || dtype != cpu_input_dtype(prepare, 2 + (k - 2) % self->tensors)) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "input %u is %s", (unsigned)k,
                         cpu_dtype_name(dtype));
    }
  }
  for (uint32_t k = 0; k < node->output_count; k++) {
    cleave_dtype_t dtype = cpu_output_dtype(prepare, k);
    if (dtype != CLEAVE_DTYPE_UNKNOWN && dtype != cpu_input_dtype(prepare, 2 + k % self->tensors)) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "output %u is %s", (unsigned)k,
                         cpu_dtype_name(dtype));
    }
  }
  return CLEAVE_OK;
}

/* One tensor with its gradient and states, and where the new ones go; an output that nothing uses is NULL. */
typedef struct training_work {
  const training_state_t *state;
  double rate;
  double count; /* T */
  const cpu_tensor_t *inputs[4];
  cpu_tensor_t *outputs[3];
} training_work_t;

/* Values of one element: x, g, then the states; replaced by the new x and states. */
static void step(const training_work_t *work, double *x, double g, double *first, double *second) {
  const training_state_t *state = work->state;
  double gradient = state->norm * *x + g;
  if (state->optimiser == ADAGRAD) {
    double rate = work->rate / (1.0 + work->count * state->decay);
    *first += gradient * gradient;
    *x -= rate * gradient / (sqrt(*first) + state->epsilon);
  } else if (state->optimiser == ADAM) {
    double rate = work->rate;
    if (work->count > 0) {
      rate *= sqrt(1.0 - pow(state->beta, work->count)) / (1.0 - pow(state->alpha, work->count));
    }
    *first = state->alpha * *first + (1.0 - state->alpha) * gradient;
    *second = state->beta * *second + (1.0 - state->beta) * gradient * gradient;
    *x = (1.0 - state->norm_post) * (*x - rate * *first / (sqrt(*second) + state->epsilon));
  } else {
    *first = state->alpha * *first + (work->count > 0 ? state->beta : 1.0) * gradient;
    *x -= work->rate * (state->nesterov ? gradient + state->alpha * *first : *first);
  }
}

static void load(const cpu_tensor_t *tensor, int64_t start, int64_t count, double *values) {
  size_t size = cleave_dtype_size(tensor->dtype);
  cpu_convert(tensor->dtype, (const unsigned char *)tensor->data + (size_t)start * size, CLEAVE_DTYPE_F64,
              values, count);
}

static void store(cpu_tensor_t *tensor, int64_t start, int64_t count, const double *values) {
  if (tensor != NULL) {
    size_t size = cleave_dtype_size(tensor->dtype);
    cpu_convert(CLEAVE_DTYPE_F64, values, tensor->dtype, (unsigned char *)tensor->data + (size_t)start * size,
                count);
  }
}

static void training_range(void *context, int64_t begin, int64_t end) {
  const training_work_t *work = context;
  double blocks[4][CPU_BLOCK] = {{0}};
  uint32_t kinds = work->state->kinds;
  for (int64_t start = begin; start < end; start += CPU_BLOCK) {
    int64_t count = end - start < CPU_BLOCK ? end - start : CPU_BLOCK;
    for (uint32_t k = 0; k < 2 + kinds; k++) {
      load(work->inputs[k], start, count, blocks[k]);
    }
    for (int64_t k = 0; k < count; k++) {
      step(work, &blocks[0][k], blocks[1][k], &blocks[2][k], &blocks[3][k]);
    }
    store(work->outputs[0], start, count, blocks[0]);
    for (uint32_t k = 0; k < kinds; k++) {
      store(work->outputs[1 + k], start, count, blocks[2 + k]);
    }
  }
}

static cleave_status_t run_training(const cpu_call_t *call, cleave_message_t *message) {
  const training_state_t *state = call->state;
  if (call->inputs[0]->count != 1 || call->inputs[1]->count != 1) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "R and T must be scalars");
  }
  training_work_t work = {.state = state,
                          .rate = cpu_read_float(call->inputs[0], 0),
                          .count = cpu_read_float(call->inputs[1], 0)};
  for (uint32_t n = 0; n < state->tensors; n++) {
    const cpu_tensor_t *x = call->inputs[2 + n];
    for (uint32_t k = 0; k < 2 + state->kinds; k++) {
      work.inputs[k] = call->inputs[2 + k * state->tensors + n];
      if (!cpu_same_shape(work.inputs[k], x)) {
        return kernel_fail(message, CLEAVE_ERROR_SHAPE, "the operands of tensor %u differ in shape",
                           (unsigned)n);
      }
    }
    for (uint32_t k = 0; k < 1 + state->kinds; k++) {
      uint32_t output = k * state->tensors + n;
      work.outputs[k] = cpu_output(call, output);
      if (work.outputs[k] != NULL) {
        CPU_TRY(cpu_output_shape(call, output, x->rank, x->dims, message));
      }
    }
    cpu_parallel(call, x->count, 2048, training_range, &work);
  }
  return CLEAVE_OK;
}

#define KERNEL(name, optimiser)                                                                            \
  {                                                                                                        \
    .op = name, .variant = optimiser, .state_size = sizeof(training_state_t), .prepare = prepare_training, \
    .run = run_training, .required_inputs = 5, .domain = "ai.onnx.preview.training"                        \
  }

const cpu_kernel_t cpu_kernels_training[] = {
    KERNEL("Adagrad", ADAGRAD),
    KERNEL("Adam", ADAM),
    KERNEL("Momentum", MOMENTUM),
    {0},
};

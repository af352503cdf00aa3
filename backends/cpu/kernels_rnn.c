// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM (opset 14: `layout`), all directions. Products with the input are one matrix product over
// all steps; each step adds the product with the previous hidden state. A sequence that is over keeps its
// state and writes zeros. The numeric code is in rnn.inc.
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "gemm.h"
#include "nn.h"
#include "vector_math.h"

typedef enum rnn_kind { RNN_PLAIN, RNN_GRU, RNN_LSTM } rnn_kind_t;

typedef enum rnn_function {
  RNN_TANH,
  RNN_SIGMOID,
  RNN_RELU,
  RNN_AFFINE,
  RNN_LEAKY_RELU,
  RNN_THRESHOLDED_RELU,
  RNN_SCALED_TANH,
  RNN_HARD_SIGMOID,
  RNN_ELU,
  RNN_SOFTSIGN,
  RNN_SOFTPLUS,
  RNN_FUNCTION_COUNT
} rnn_function_t;

typedef struct rnn_activation {
  rnn_function_t function;
  double alpha;
  double beta;
} rnn_activation_t;

typedef struct rnn_state {
  rnn_kind_t kind;
  int64_t gates;  // 1, 3 or 4 blocks of hidden_size rows in W and R
  int32_t directions;
  bool reverse;      // the first direction runs backwards
  bool batch_first;  // layout 1
  bool linear_before_reset;
  bool input_forget;
  double clip;  // infinite: none
  rnn_activation_t activations[2][3];
} rnn_state_t;

// Sizes, and strides in elements that hide the layout: element (step, batch) of X and Y, (direction, batch)
// of states.
typedef struct rnn_plan {
  int64_t steps;
  int64_t batch;
  int64_t input;
  int64_t hidden;
  int64_t x_step;  // in rows of X
  int64_t x_batch;
  int64_t y_step;
  int64_t y_batch;
  int64_t y_direction;
  int64_t state_direction;
  int64_t state_batch;
} rnn_plan_t;

enum { RNN_X, RNN_W, RNN_R, RNN_B, RNN_LENGTHS, RNN_INITIAL_H, RNN_INITIAL_C, RNN_PEEPHOLES };

static const struct {
  const char *name;
  bool has_alpha;
  bool has_beta;
  double alpha;
  double beta;
} functions[RNN_FUNCTION_COUNT] = {
    [RNN_TANH] = {"tanh", false, false, 0, 0},
    [RNN_SIGMOID] = {"sigmoid", false, false, 0, 0},
    [RNN_RELU] = {"relu", false, false, 0, 0},
    [RNN_AFFINE] = {"affine", true, true, 1, 0},
    [RNN_LEAKY_RELU] = {"leakyrelu", true, false, 0.01, 0},
    [RNN_THRESHOLDED_RELU] = {"thresholdedrelu", true, false, 1, 0},
    [RNN_SCALED_TANH] = {"scaledtanh", true, true, 1, 1},
    [RNN_HARD_SIGMOID] = {"hardsigmoid", true, true, 0.2, 0.5},
    [RNN_ELU] = {"elu", true, false, 1, 0},
    [RNN_SOFTSIGN] = {"softsign", false, false, 0, 0},
    [RNN_SOFTPLUS] = {"softplus", false, false, 0, 0},
};

static cleave_status_t rnn_plan(const cpu_call_t *call, rnn_plan_t *out_plan, cleave_message_t *message) {
  const rnn_state_t *state = call->state;
  const cpu_tensor_t *x = call->inputs[RNN_X];
  const cpu_tensor_t *w = call->inputs[RNN_W];
  const cpu_tensor_t *r = call->inputs[RNN_R];
  if (x->rank != 3 || w->rank != 3 || r->rank != 3) {
    return cpu_fail(message, CLEAVE_ERROR_SHAPE, "X, W and R have ranks %d, %d and %d, expected 3", x->rank,
                    w->rank, r->rank);
  }
  rnn_plan_t plan = {.input = x->dims[2], .hidden = r->dims[2]};
  plan.steps = x->dims[state->batch_first ? 1 : 0];
  plan.batch = x->dims[state->batch_first ? 0 : 1];
  int64_t directions = state->directions;
  int64_t rows = cpu_nn_multiply(state->gates, plan.hidden);
  if (w->dims[0] != directions || r->dims[0] != directions || w->dims[1] != rows || r->dims[1] != rows ||
      w->dims[2] != plan.input) {
    return cpu_fail(message, CLEAVE_ERROR_SHAPE,
                    "W [%lld, %lld, %lld] does not fit %lld directions, hidden size %lld, input size %lld",
                    (long long)w->dims[0], (long long)w->dims[1], (long long)w->dims[2],
                    (long long)directions, (long long)plan.hidden, (long long)plan.input);
  }
  plan.x_step = state->batch_first ? 1 : plan.batch;
  plan.x_batch = state->batch_first ? plan.steps : 1;
  plan.y_direction = state->batch_first ? plan.hidden : plan.batch * plan.hidden;
  plan.y_step = directions * plan.hidden * (state->batch_first ? 1 : plan.batch);
  plan.y_batch = plan.hidden * (state->batch_first ? directions * plan.steps : 1);
  plan.state_direction = plan.hidden * (state->batch_first ? 1 : plan.batch);
  plan.state_batch = plan.hidden * (state->batch_first ? directions : 1);
  int64_t states = cpu_nn_multiply(directions * plan.hidden, plan.batch);
  const struct {
    const char *name;
    const cpu_tensor_t *tensor;
    int64_t count;
  } checks[] = {
      {"B", cpu_input(call, RNN_B), 2 * directions * rows},
      {"sequence_lens", cpu_input(call, RNN_LENGTHS), plan.batch},
      {"initial_h", cpu_input(call, RNN_INITIAL_H), states},
      {"initial_c", cpu_input(call, RNN_INITIAL_C), states},
      {"P", cpu_input(call, RNN_PEEPHOLES), 3 * directions * plan.hidden},
      {"Y", cpu_output(call, 0), cpu_nn_multiply(states, plan.steps)},
      {"Y_h", cpu_output(call, 1), states},
      {"Y_c", cpu_output(call, 2), states},
  };
  for (size_t k = 0; k < sizeof checks / sizeof checks[0]; k++) {
    if (checks[k].tensor != NULL) {
      CPU_TRY(cpu_nn_check_count(checks[k].name, checks[k].tensor, checks[k].count, message));
    }
  }
  *out_plan = plan;
  return CLEAVE_OK;
}

// sequence_lens comes from outside at run time.
static cleave_status_t check_lengths(const cpu_call_t *call, const rnn_plan_t *plan,
                                     cleave_message_t *message) {
  const cpu_tensor_t *lengths = cpu_input(call, RNN_LENGTHS);
  for (int64_t n = 0; lengths != NULL && n < plan->batch; n++) {
    int64_t length = cpu_read_int(lengths, n);
    if (length < 0 || length > plan->steps) {
      return cpu_fail(message, CLEAVE_ERROR_SHAPE, "sequence_lens has %lld, expected 0 to %lld",
                      (long long)length, (long long)plan->steps);
    }
  }
  return CLEAVE_OK;
}

#define REAL float
#define NAME(name) CPU_CONCAT(name, f32)
#define TANH cpu_tanhf
#define SIGMOID cpu_sigmoidf
#include "rnn.inc"
#undef REAL
#undef NAME
#undef TANH
#undef SIGMOID
#define REAL double
#define NAME(name) CPU_CONCAT(name, f64)
#define TANH tanh
#define SIGMOID(x) (1 / (1 + exp(-(x))))
#include "rnn.inc"
#undef REAL
#undef NAME
#undef TANH
#undef SIGMOID

static bool same_name(const char *name, const char *lower) {
  while (*name != '\0' && tolower((unsigned char)*name) == *lower) {
    name++;
    lower++;
  }
  return *name == *lower;
}

// Activations are f, g, h per direction. Scales are taken in order, by the functions that have them.
static cleave_status_t prepare_activations(const cpu_prepare_t *prepare, rnn_state_t *state,
                                           cleave_message_t *message) {
  static const rnn_function_t defaults[][3] = {
      [RNN_PLAIN] = {RNN_TANH, RNN_TANH, RNN_TANH},
      [RNN_GRU] = {RNN_SIGMOID, RNN_TANH, RNN_TANH},
      [RNN_LSTM] = {RNN_SIGMOID, RNN_TANH, RNN_TANH},
  };
  static const uint32_t per_direction[] = {[RNN_PLAIN] = 1, [RNN_GRU] = 2, [RNN_LSTM] = 3};
  const cleave_attribute_view_t *names = cleave_view_attribute(prepare->node, "activations");
  const cleave_attribute_view_t *alphas = cleave_view_attribute(prepare->node, "activation_alpha");
  const cleave_attribute_view_t *betas = cleave_view_attribute(prepare->node, "activation_beta");
  uint32_t given = names != NULL && names->kind == CLEAVE_ATTRIBUTE_STRINGS ? names->count : 0;
  uint32_t wanted = per_direction[state->kind];
  if (given != 0 && given != wanted * (uint32_t)state->directions) {
    return cpu_fail(message, CLEAVE_ERROR_UNSUPPORTED, "%u activations, expected %u", given,
                    wanted * (uint32_t)state->directions);
  }
  uint32_t next_alpha = 0;
  uint32_t next_beta = 0;
  for (uint32_t k = 0; k < wanted * (uint32_t)state->directions; k++) {
    rnn_activation_t *activation = &state->activations[k / wanted][k % wanted];
    int function = (int)defaults[state->kind][k % wanted];
    if (given != 0) {
      function = 0;
      while (function < RNN_FUNCTION_COUNT && !same_name(names->strings[k], functions[function].name)) {
        function++;
      }
      if (function == RNN_FUNCTION_COUNT) {
        return cpu_fail(message, CLEAVE_ERROR_UNSUPPORTED, "activation '%.32s' is unknown",
                        names->strings[k]);
      }
    }
    activation->function = (rnn_function_t)function;
    activation->alpha = functions[function].alpha;
    activation->beta = functions[function].beta;
    if (functions[function].has_alpha && alphas != NULL && alphas->kind == CLEAVE_ATTRIBUTE_FLOATS &&
        next_alpha < alphas->count) {
      activation->alpha = (double)alphas->floats[next_alpha++];
    }
    if (functions[function].has_beta && betas != NULL && betas->kind == CLEAVE_ATTRIBUTE_FLOATS &&
        next_beta < betas->count) {
      activation->beta = (double)betas->floats[next_beta++];
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t prepare_kind(const cpu_prepare_t *prepare, rnn_state_t *state, rnn_kind_t kind,
                                    cleave_message_t *message) {
  static const int64_t gates[] = {[RNN_PLAIN] = 1, [RNN_GRU] = 3, [RNN_LSTM] = 4};
  for (uint32_t k = RNN_X; k <= RNN_PEEPHOLES; k++) {
    if (k <= RNN_R || (k != RNN_LENGTHS && cpu_input_dtype(prepare, k) != CLEAVE_DTYPE_UNKNOWN)) {
      CPU_TRY(cpu_nn_require_float(prepare, k, message));
      CPU_TRY(cpu_nn_require_same(prepare, k, k, message));
    }
  }
  if (cpu_input_dtype(prepare, RNN_LENGTHS) != CLEAVE_DTYPE_UNKNOWN) {
    CPU_TRY(cpu_nn_require_dtype(prepare, RNN_LENGTHS,
                                 CPU_NN_ONE(CLEAVE_DTYPE_I32) | CPU_NN_ONE(CLEAVE_DTYPE_I64), message));
  }
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 2, message));
  state->kind = kind;
  state->gates = gates[kind];
  const char *direction = cleave_view_string(prepare->node, "direction", "forward");
  if (strcmp(direction, "forward") != 0 && strcmp(direction, "reverse") != 0 &&
      strcmp(direction, "bidirectional") != 0) {
    return cpu_fail(message, CLEAVE_ERROR_UNSUPPORTED, "direction '%.32s' is unknown", direction);
  }
  state->directions = direction[0] == 'b' ? 2 : 1;
  state->reverse = direction[0] == 'r';
  state->batch_first = cleave_view_int(prepare->node, "layout", 0) != 0;
  state->linear_before_reset = cleave_view_int(prepare->node, "linear_before_reset", 0) != 0;
  state->input_forget = cleave_view_int(prepare->node, "input_forget", 0) != 0;
  double clip = cleave_view_float(prepare->node, "clip", 0);
  state->clip = clip > 0 ? clip : INFINITY;
  return prepare_activations(prepare, state, message);
}

static cleave_status_t plain_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  return prepare_kind(prepare, state, RNN_PLAIN, message);
}

static cleave_status_t gru_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  return prepare_kind(prepare, state, RNN_GRU, message);
}

static cleave_status_t lstm_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  return prepare_kind(prepare, state, RNN_LSTM, message);
}

static size_t rnn_scratch(const cpu_call_t *call) {
  return cpu_nn_scratch_float(call, RNN_X, rnn_scratch_f32, rnn_scratch_f64);
}

static cleave_status_t rnn_run(const cpu_call_t *call, cleave_message_t *message) {
  return cpu_nn_run_float(call, message, RNN_X, rnn_run_f32, rnn_run_f64);
}

const cpu_kernel_t cpu_kernels_rnn[] = {
    {.op = "RNN",
     .state_size = sizeof(rnn_state_t),
     .prepare = plain_prepare,
     .scratch = rnn_scratch,
     .run = rnn_run,
     .required_inputs = 3},
    {.op = "GRU",
     .state_size = sizeof(rnn_state_t),
     .prepare = gru_prepare,
     .scratch = rnn_scratch,
     .run = rnn_run,
     .required_inputs = 3},
    {.op = "LSTM",
     .state_size = sizeof(rnn_state_t),
     .prepare = lstm_prepare,
     .scratch = rnn_scratch,
     .run = rnn_run,
     .required_inputs = 3},
    {.op = NULL},
};

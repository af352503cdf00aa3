// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM: the products of all steps with the input weights are one product; a step is a product
// with the hidden state, and the gates as one program. States change places between two slots.
#include "cpu/recurrent/recurrent.h"

#include <math.h>

#include "emit.h"
#include "kernels/convert.h"

enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, P, MAX_STEPS = 4096, MAX_GATES = 4 };

typedef struct layer {
  cuda_plan_t *plan;
  const cleave_node_view_t *node;
  cpu_recurrent_t recurrent;
  cpu_recurrent_sizes_t sizes;
  cleave_dtype_t dtype;
  int64_t size;      /* bytes of an element */
  int64_t rows;      /* of W and R of a direction: gates times hidden units */
  uint32_t inputs;   /* slots: products of all steps with W */
  uint32_t products; /* of a step with R */
  uint32_t reset;    /* GRU with the reset before the product: r * h, and z */
  uint32_t update;
  uint32_t states[2]; /* hidden states and cells before a step, and after it */
  uint32_t cells[2];
  uint32_t result; /* of a step, if Y has batches first */
  uint32_t times;  /* 0, 1, 2, ... if there are lengths */
} layer_t;

/* A step of a direction, and the program of its gates. */
typedef struct step {
  const layer_t *layer;
  int32_t direction;
  int64_t time;
  int64_t dims[2];       /* batch, hidden */
  int64_t strides[2][2]; /* of the products with W and with R, per row */
  uint32_t now;          /* which of the states is the one before */
  cuda_builder_t builder;
} step_t;

static const int8_t everywhere[2] = {0, 1};
static const int8_t per_unit[2] = {-1, 0};

/* ---- parts of programs ---- */

static cleave_status_t load(step_t *step, uint32_t slot, int64_t offset, const int64_t *strides,
                            uint32_t *out) {
  const cuda_pointer_t from = {slot, offset * step->layer->size};
  CUDA_TRY(cuda_builder_load(&step->builder, step->layer->dtype, from, everywhere, 2, step->dims, out));
  step->builder.call->inputs[step->builder.program->input_count - 1].strides = strides;
  return CLEAVE_OK;
}

static cleave_status_t apply(step_t *step, kernel_op_t op, uint32_t a, uint32_t b, uint32_t *out) {
  return cuda_builder_apply(&step->builder, op, a, b, out);
}

/* One number per hidden unit, of an operand that may be left out: added to `value`, times `factor` if that is
 * one. */
static cleave_status_t add_units(step_t *step, uint32_t operand, int64_t offset, const uint32_t *factor,
                                 uint32_t *value) {
  const layer_t *layer = step->layer;
  uint32_t own = 0;
  if (cuda_input(layer->plan, layer->node, operand) == NULL) {
    return CLEAVE_OK;
  }
  const cuda_pointer_t from = {layer->node->inputs[operand], offset * layer->size};
  CUDA_TRY(cuda_builder_load(&step->builder, layer->dtype, from, per_unit, 1, &step->dims[1], &own));
  if (factor != NULL) {
    CUDA_TRY(apply(step, KERNEL_Mul, own, *factor, &own));
  }
  return apply(step, KERNEL_Add, *value, own, value);
}

/* Loads what a gate gets from the input (part 0) or from the hidden state (part 1), with its bias. */
static cleave_status_t load_part(step_t *step, int64_t gate, int part, uint32_t *out) {
  const layer_t *layer = step->layer;
  int64_t unit = gate * layer->sizes.hidden;
  int64_t row = layer->recurrent.batch_first ? step->time : step->time * layer->sizes.batch;
  CUDA_TRY(load(step, part == 0 ? layer->inputs : layer->products, (part == 0 ? row * layer->rows : 0) + unit,
                step->strides[part], out));
  return add_units(step, B, (2 * step->direction + part) * layer->rows + unit, NULL, out);
}

static cleave_status_t load_gate(step_t *step, int64_t gate, uint32_t *out) {
  uint32_t other = 0;
  CUDA_TRY(load_part(step, gate, 0, out));
  CUDA_TRY(load_part(step, gate, 1, &other));
  return apply(step, KERNEL_Add, *out, other, out);
}

static cleave_status_t bind_number(step_t *step, kernel_op_t op, double number, uint32_t *value) {
  uint32_t own = 0;
  CUDA_TRY(cuda_builder_number(&step->builder, kernel_compute_dtype(step->layer->dtype), number, &own));
  return apply(step, op, *value, own, value);
}

static cleave_status_t activate(step_t *step, int32_t which, uint32_t *value) {
  static const kernel_op_t operators[CPU_RECURRENT_FUNCTION_COUNT] = {
      [CPU_RECURRENT_TANH] = KERNEL_Tanh,
      [CPU_RECURRENT_SIGMOID] = KERNEL_Sigmoid,
      [CPU_RECURRENT_RELU] = KERNEL_Relu,
      [CPU_RECURRENT_LEAKY_RELU] = KERNEL_LeakyRelu,
      [CPU_RECURRENT_THRESHOLDED_RELU] = KERNEL_ThresholdedRelu,
      [CPU_RECURRENT_SCALED_TANH] = KERNEL_Tanh,
      [CPU_RECURRENT_HARD_SIGMOID] = KERNEL_HardSigmoid,
      [CPU_RECURRENT_ELU] = KERNEL_Elu,
      [CPU_RECURRENT_SOFTSIGN] = KERNEL_Softsign,
      [CPU_RECURRENT_SOFTPLUS] = KERNEL_Softplus,
  };
  const cpu_recurrent_activation_t *activation = &step->layer->recurrent.activations[step->direction][which];
  uint32_t operands[3] = {*value, 0, 0};
  if (activation->function == CPU_RECURRENT_AFFINE) {
    CUDA_TRY(bind_number(step, KERNEL_Mul, activation->alpha, value));
    return bind_number(step, KERNEL_Add, activation->beta, value);
  }
  bool scales = activation->function == CPU_RECURRENT_SCALED_TANH;
  if (scales) {
    CUDA_TRY(bind_number(step, KERNEL_Mul, activation->beta, &operands[0]));
  }
  CUDA_TRY(kernel_program_apply(step->builder.program, operators[activation->function], operands,
                                activation->alpha, activation->beta, value, step->layer->plan->message));
  return scales ? bind_number(step, KERNEL_Mul, activation->alpha, value) : CLEAVE_OK;
}

/* Clips and applies: what every gate goes through. */
static cleave_status_t close_gate(step_t *step, int32_t which, uint32_t *value) {
  double clip = step->layer->recurrent.clip;
  if (clip < (double)INFINITY) {
    CUDA_TRY(bind_number(step, KERNEL_AtLeast, -clip, value));
    CUDA_TRY(bind_number(step, KERNEL_AtMost, clip, value));
  }
  return activate(step, which, value);
}

/* (1 - a) * b */
static cleave_status_t scale_rest(step_t *step, uint32_t a, uint32_t b, uint32_t *out) {
  uint32_t one = 0;
  CUDA_TRY(cuda_builder_number(&step->builder, kernel_compute_dtype(step->layer->dtype), 1.0, &one));
  CUDA_TRY(apply(step, KERNEL_Sub, one, a, out));
  return apply(step, KERNEL_Mul, *out, b, out);
}

static cleave_status_t load_state(step_t *step, const uint32_t *slots, uint32_t *out) {
  return load(step, slots[step->now], 0, NULL, out);
}

static cleave_status_t store(step_t *step, uint32_t slot, int64_t offset, uint32_t value) {
  return cuda_builder_store(&step->builder, step->layer->dtype, value,
                            (cuda_pointer_t){slot, offset * step->layer->size});
}

/* Is the sequence of a row still there at this time? */
static cleave_status_t load_active(step_t *step, uint32_t *out) {
  static const int8_t nowhere[2] = {-1, -1};
  static const int8_t per_row[2] = {0, -1};
  const layer_t *layer = step->layer;
  const cuda_pointer_t time = {layer->times, step->time * (int64_t)sizeof(int32_t)};
  uint32_t length = 0;
  CUDA_TRY(cuda_builder_load(&step->builder, CLEAVE_DTYPE_I32, time, nowhere, 0, step->dims, out));
  CUDA_TRY(cuda_builder_load(&step->builder, CLEAVE_DTYPE_I32,
                             (cuda_pointer_t){layer->node->inputs[LENGTHS], 0}, per_row, 1, step->dims,
                             &length));
  return apply(step, KERNEL_Less, *out, length, out);
}

static cleave_status_t choose(step_t *step, uint32_t condition, uint32_t value, uint32_t other,
                              uint32_t *out) {
  const uint32_t operands[3] = {condition, value, other};
  return kernel_program_apply(step->builder.program, KERNEL_WHERE, operands, 0, 0, out,
                              step->layer->plan->message);
}

/* States after the step, and its part of Y. A sequence that is over keeps its state, and writes zeros. */
static cleave_status_t finish(step_t *step, uint32_t hidden, uint32_t cell) {
  const layer_t *layer = step->layer;
  bool has_lengths = cuda_input(layer->plan, layer->node, LENGTHS) != NULL;
  bool is_lstm = layer->recurrent.kind == CPU_LSTM;
  uint32_t active = 0;
  uint32_t before = 0;
  uint32_t result = hidden;
  if (has_lengths) {
    CUDA_TRY(load_active(step, &active));
    CUDA_TRY(load_state(step, layer->states, &before));
    CUDA_TRY(choose(step, active, hidden, before, &hidden));
    CUDA_TRY(cuda_builder_number(&step->builder, kernel_compute_dtype(layer->dtype), 0.0, &before));
    CUDA_TRY(choose(step, active, result, before, &result));
  }
  CUDA_TRY(store(step, layer->states[1 - step->now], 0, hidden));
  if (has_lengths && is_lstm) {
    CUDA_TRY(load_state(step, layer->cells, &before));
    CUDA_TRY(choose(step, active, cell, before, &cell));
  }
  if (is_lstm) {
    CUDA_TRY(store(step, layer->cells[1 - step->now], 0, cell));
  }
  if (cuda_output(layer->plan, layer->node, 0) == NULL) {
    return CLEAVE_OK;
  }
  int64_t place =
      (step->time * layer->recurrent.directions + step->direction) * step->dims[0] * step->dims[1];
  return layer->recurrent.batch_first ? store(step, layer->result, 0, result)
                                      : store(step, layer->node->outputs[0], place, result);
}

/* ---- the programs ---- */

typedef cleave_status_t (*build_t)(step_t *step);

static cleave_status_t build_rnn(step_t *step) {
  uint32_t hidden = 0;
  CUDA_TRY(load_gate(step, 0, &hidden));
  CUDA_TRY(close_gate(step, 0, &hidden));
  return finish(step, hidden, 0);
}

/* z and r of GRU, if r is applied before the product. */
static cleave_status_t build_gru_gates(step_t *step) {
  uint32_t update = 0;
  uint32_t reset = 0;
  uint32_t before = 0;
  CUDA_TRY(load_gate(step, 0, &update));
  CUDA_TRY(close_gate(step, 0, &update));
  CUDA_TRY(load_gate(step, 1, &reset));
  CUDA_TRY(close_gate(step, 0, &reset));
  CUDA_TRY(load_state(step, step->layer->states, &before));
  CUDA_TRY(apply(step, KERNEL_Mul, reset, before, &reset));
  CUDA_TRY(store(step, step->layer->update, 0, update));
  return store(step, step->layer->reset, 0, reset);
}

static cleave_status_t build_gru(step_t *step) {
  bool is_linear = step->layer->recurrent.linear_before_reset;
  uint32_t update = 0;
  uint32_t reset = 0;
  uint32_t candidate = 0;
  uint32_t other = 0;
  if (is_linear) {
    CUDA_TRY(load_gate(step, 0, &update));
    CUDA_TRY(close_gate(step, 0, &update));
    CUDA_TRY(load_gate(step, 1, &reset));
    CUDA_TRY(close_gate(step, 0, &reset));
  } else {
    CUDA_TRY(load(step, step->layer->update, 0, NULL, &update));
  }
  CUDA_TRY(load_part(step, 2, 0, &candidate));
  CUDA_TRY(load_part(step, 2, 1, &other));
  if (is_linear) {
    CUDA_TRY(apply(step, KERNEL_Mul, reset, other, &other));
  }
  CUDA_TRY(apply(step, KERNEL_Add, candidate, other, &candidate));
  CUDA_TRY(close_gate(step, 1, &candidate));
  CUDA_TRY(scale_rest(step, update, candidate, &candidate));
  CUDA_TRY(load_state(step, step->layer->states, &other));
  CUDA_TRY(apply(step, KERNEL_Mul, update, other, &other));
  CUDA_TRY(apply(step, KERNEL_Add, candidate, other, &candidate));
  return finish(step, candidate, 0);
}

static cleave_status_t build_lstm(step_t *step) {
  enum { INPUT, OUTPUT, FORGET, CANDIDATE };
  const layer_t *layer = step->layer;
  int64_t peepholes = 3 * step->direction * layer->sizes.hidden; /* i, o, f */
  uint32_t gates[MAX_GATES];
  uint32_t cell = 0;
  uint32_t hidden = 0;
  for (int64_t k = 0; k < MAX_GATES; k++) {
    CUDA_TRY(load_gate(step, k, &gates[k]));
  }
  CUDA_TRY(load_state(step, layer->cells, &cell));
  CUDA_TRY(add_units(step, P, peepholes, &cell, &gates[INPUT]));
  CUDA_TRY(close_gate(step, 0, &gates[INPUT]));
  CUDA_TRY(close_gate(step, 1, &gates[CANDIDATE]));
  if (layer->recurrent.input_forget) {
    CUDA_TRY(scale_rest(step, gates[INPUT], cell, &cell));
  } else {
    CUDA_TRY(add_units(step, P, peepholes + 2 * layer->sizes.hidden, &cell, &gates[FORGET]));
    CUDA_TRY(close_gate(step, 0, &gates[FORGET]));
    CUDA_TRY(apply(step, KERNEL_Mul, gates[FORGET], cell, &cell));
  }
  CUDA_TRY(apply(step, KERNEL_Mul, gates[INPUT], gates[CANDIDATE], &hidden));
  CUDA_TRY(apply(step, KERNEL_Add, cell, hidden, &cell));
  CUDA_TRY(add_units(step, P, peepholes + layer->sizes.hidden, &cell, &gates[OUTPUT]));
  CUDA_TRY(close_gate(step, 0, &gates[OUTPUT]));
  hidden = cell;
  CUDA_TRY(activate(step, 2, &hidden));
  CUDA_TRY(apply(step, KERNEL_Mul, gates[OUTPUT], hidden, &hidden));
  return finish(step, hidden, cell);
}

/* ---- steps ---- */

static cleave_status_t emit_program(step_t *step, build_t build) {
  cuda_plan_t *plan = step->layer->plan;
  cleave_status_t status = cuda_builder_init(&step->builder, plan, step->layer->node->op, 2, 0);
  status = status == CLEAVE_OK ? build(step) : status;
  status = status == CLEAVE_OK ? cuda_plan_program(plan, step->builder.call) : status;
  cuda_builder_deinit(&step->builder);
  return status;
}

/* The product of `rows` rows of `from` with `gates` gates of W or R, from the first one on. */
typedef struct gates {
  uint32_t operand;
  int64_t first;
  int64_t count;
} gates_t;

static cleave_status_t multiply(const layer_t *layer, int32_t direction, const gates_t *gates,
                                cuda_pointer_t from, int64_t rows, uint32_t to) {
  int64_t inner = gates->operand == W ? layer->sizes.input : layer->sizes.hidden;
  int64_t first = gates->first * layer->sizes.hidden;
  const cuda_product_t product = {.dtype = layer->dtype,
                                  .transposes = {false, true},
                                  .rows = rows,
                                  .columns = gates->count * layer->sizes.hidden,
                                  .inner = inner,
                                  .strides = {inner, inner, layer->rows},
                                  .batches = 1,
                                  .alpha = 1.0};
  const cuda_pointer_t weights = {layer->node->inputs[gates->operand],
                                  (direction * layer->rows + first) * inner * layer->size};
  return cuda_emit_product(layer->plan, layer->node->op, &product, from, weights,
                           (cuda_pointer_t){to, first * layer->size}, (cuda_pointer_t){CUDA_NO_SLOT, 0});
}

/* A state of all sequences between a slot and an operand or result, whose axes depend on the layout. */
static cleave_status_t move_state(const layer_t *layer, uint32_t slot, uint32_t value, int64_t place,
                                  int64_t between, bool is_load) {
  int64_t hidden = layer->sizes.hidden;
  cuda_move_t move = {.label = layer->node->op,
                      .dtype = layer->dtype,
                      .rank = 2,
                      .dims = {layer->sizes.batch, hidden},
                      .from_strides = {is_load ? between : hidden, 1},
                      .to_strides = {is_load ? hidden : between, 1},
                      .from = {slot, 0},
                      .to = {value, place * layer->size}};
  if (is_load) {
    move.from = move.to;
    move.to = (cuda_pointer_t){slot, 0};
  }
  return cuda_emit_move(layer->plan, &move);
}

/* initial_h and initial_c, Y_h and Y_c. */
static cleave_status_t move_border(const layer_t *layer, int32_t direction, uint32_t slot, uint32_t value,
                                   bool is_load) {
  int64_t hidden = layer->sizes.hidden;
  bool batch_first = layer->recurrent.batch_first;
  return move_state(layer, slot, value, direction * (batch_first ? hidden : layer->sizes.batch * hidden),
                    batch_first ? layer->recurrent.directions * hidden : hidden, is_load);
}

static cleave_status_t begin(const layer_t *layer, int32_t direction, uint32_t operand, uint32_t slot) {
  return cuda_input(layer->plan, layer->node, operand) != NULL
             ? move_border(layer, direction, slot, layer->node->inputs[operand], true)
             : cuda_emit_zeros(layer->plan, layer->node->op, (cuda_pointer_t){slot, 0},
                               layer->sizes.batch * layer->sizes.hidden * layer->size);
}

static cleave_status_t emit_step(step_t *step) {
  static const build_t builds[] = {[CPU_RNN] = build_rnn, [CPU_GRU] = build_gru, [CPU_LSTM] = build_lstm};
  const layer_t *layer = step->layer;
  const cpu_recurrent_t *recurrent = &layer->recurrent;
  bool resets_first = recurrent->kind == CPU_GRU && !recurrent->linear_before_reset;
  const cuda_pointer_t state = {layer->states[step->now], 0};
  const gates_t all = {R, 0, resets_first ? 2 : recurrent->gates};
  const gates_t last = {R, 2, 1};
  CUDA_TRY(multiply(layer, step->direction, &all, state, layer->sizes.batch, layer->products));
  if (resets_first) {
    CUDA_TRY(emit_program(step, build_gru_gates));
    CUDA_TRY(multiply(layer, step->direction, &last, (cuda_pointer_t){layer->reset, 0}, layer->sizes.batch,
                      layer->products));
  }
  CUDA_TRY(emit_program(step, builds[recurrent->kind]));
  if (recurrent->batch_first && cuda_output(layer->plan, layer->node, 0) != NULL) {
    int64_t row = recurrent->directions * layer->sizes.hidden;
    CUDA_TRY(move_state(layer, layer->result, layer->node->outputs[0],
                        step->time * row + step->direction * layer->sizes.hidden, layer->sizes.steps * row,
                        false));
  }
  step->now = 1 - step->now;
  return CLEAVE_OK;
}

static cleave_status_t emit_direction(const layer_t *layer, int32_t direction) {
  const cpu_recurrent_sizes_t *sizes = &layer->sizes;
  bool reverse = direction == 1 || layer->recurrent.reverse;
  bool batch_first = layer->recurrent.batch_first;
  step_t step = {.layer = layer,
                 .direction = direction,
                 .dims = {sizes->batch, sizes->hidden},
                 .strides = {{batch_first ? sizes->steps * layer->rows : layer->rows, 1}, {layer->rows, 1}}};
  const gates_t all = {W, 0, layer->recurrent.gates};
  CUDA_TRY(multiply(layer, direction, &all, (cuda_pointer_t){layer->node->inputs[X], 0},
                    sizes->steps * sizes->batch, layer->inputs));
  CUDA_TRY(begin(layer, direction, INITIAL_H, layer->states[0]));
  if (layer->recurrent.kind == CPU_LSTM) {
    CUDA_TRY(begin(layer, direction, INITIAL_C, layer->cells[0]));
  }
  for (int64_t k = 0; k < sizes->steps; k++) {
    step.time = reverse ? sizes->steps - 1 - k : k;
    CUDA_TRY(emit_step(&step));
  }
  const uint32_t *const slots[] = {layer->states, layer->cells};
  for (uint32_t k = 0; k < 2; k++) {
    if (cuda_output(layer->plan, layer->node, k + 1) != NULL) {
      CUDA_TRY(move_border(layer, direction, slots[k][step.now], layer->node->outputs[k + 1], false));
    }
  }
  return CLEAVE_OK;
}

/* ---- the layer ---- */

static cleave_status_t make_times(layer_t *layer) {
  int64_t count = layer->sizes.steps;
  int32_t *times = cuda_plan_allocate(layer->plan, (size_t)count + 1, sizeof *times);
  if (times == NULL) {
    return cuda_plan_no_memory(layer->plan);
  }
  for (int64_t k = 0; k < count; k++) {
    times[k] = (int32_t)k;
  }
  return cuda_plan_constant(layer->plan, times, count * (int64_t)sizeof *times, &layer->times);
}

static cleave_status_t make_slots(layer_t *layer) {
  cuda_plan_t *plan = layer->plan;
  int64_t state = layer->sizes.batch * layer->sizes.hidden * layer->size;
  int64_t products = layer->sizes.batch * layer->rows * layer->size;
  uint32_t *const states[] = {&layer->states[0], &layer->states[1], &layer->cells[0], &layer->cells[1],
                              &layer->reset,     &layer->update,    &layer->result};
  CUDA_TRY(cuda_plan_scratch(plan, layer->sizes.steps * products, &layer->inputs));
  CUDA_TRY(cuda_plan_scratch(plan, products, &layer->products));
  for (size_t k = 0; k < sizeof states / sizeof states[0]; k++) {
    CUDA_TRY(cuda_plan_scratch(plan, state, states[k]));
  }
  return cuda_input(plan, layer->node, LENGTHS) != NULL ? make_times(layer) : CLEAVE_OK;
}

static cleave_status_t check_dtypes(const layer_t *layer) {
  const cleave_node_view_t *node = layer->node;
  for (uint32_t k = 0; k < node->input_count; k++) {
    const cleave_tensor_view_t *tensor = cuda_input(layer->plan, node, k);
    if (tensor != NULL && tensor->dtype != (k == LENGTHS ? CLEAVE_DTYPE_I32 : layer->dtype)) {
      return cuda_plan_refuse(layer->plan, CLEAVE_REASON_DTYPE, "its operands are not of one dtype");
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cuda_emit_recurrent(cuda_plan_t *plan, const cleave_node_view_t *node) {
  layer_t layer = {.plan = plan, .node = node, .dtype = cuda_tensor(plan, node->inputs[X])->dtype};
  CUDA_TRY(cpu_recurrent_read(node, &layer.recurrent, plan->message));
  CUDA_TRY(cpu_recurrent_measure(&layer.recurrent, plan->region, node, &layer.sizes, plan->message));
  if (!cpu_dtype_is_float(layer.dtype)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_DTYPE, "its operands are not floating-point numbers");
  }
  CUDA_TRY(check_dtypes(&layer));
  if (layer.sizes.steps > MAX_STEPS) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SIZE, "it has more than %d steps", MAX_STEPS);
  }
  layer.size = (int64_t)cleave_dtype_size(layer.dtype);
  layer.rows = layer.recurrent.gates * layer.sizes.hidden;
  CUDA_TRY(make_slots(&layer));
  for (int32_t k = 0; k < layer.recurrent.directions; k++) {
    CUDA_TRY(emit_direction(&layer, k));
  }
  return CLEAVE_OK;
}

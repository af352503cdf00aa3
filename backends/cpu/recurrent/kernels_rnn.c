// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM as kernels: types and sizes are checked here, recurrent.c computes. Weights that are
// constant are packed when the program is compiled.

#include "cpu/common/nn.h"
#include "cpu/recurrent/recurrent.h"

typedef struct rnn_state {
  cpu_recurrent_t recurrent;
  const void *packed; /* or NULL: each run packs */
} rnn_state_t;

enum { RNN_X, RNN_W, RNN_R, RNN_B, RNN_LENGTHS, RNN_INITIAL_H, RNN_INITIAL_C, RNN_PEEPHOLES };

static cleave_status_t check_weights(const cpu_call_t *call, cpu_recurrent_sizes_t *out_sizes,
                                     cleave_message_t *message) {
  const cpu_recurrent_t *recurrent = &((const rnn_state_t *)call->state)->recurrent;
  const cpu_tensor_t *w = call->inputs[RNN_W];
  const cpu_tensor_t *r = call->inputs[RNN_R];
  if (w->rank != 3 || r->rank != 3) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "W and R have ranks %d and %d, expected 3", w->rank,
                       r->rank);
  }
  *out_sizes = (cpu_recurrent_sizes_t){.input = w->dims[2], .hidden = r->dims[2]};
  int64_t directions = recurrent->directions;
  int64_t rows = cpu_nn_multiply(recurrent->gates, out_sizes->hidden);
  if (w->dims[0] != directions || r->dims[0] != directions || w->dims[1] != rows || r->dims[1] != rows) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE,
                       "W [%lld, %lld, %lld] does not fit %lld direction%s, R [%lld, %lld, %lld]",
                       (long long)w->dims[0], (long long)w->dims[1], (long long)w->dims[2],
                       (long long)directions, KERNEL_PLURAL(directions), (long long)r->dims[0],
                       (long long)r->dims[1], (long long)r->dims[2]);
  }
  const cpu_tensor_t *b = cpu_input(call, RNN_B);
  const cpu_tensor_t *p = cpu_input(call, RNN_PEEPHOLES);
  if (b != NULL) {
    CPU_TRY(cpu_nn_check_count("B", b, 2 * directions * rows, message));
  }
  return p != NULL ? cpu_nn_check_count("P", p, 3 * directions * out_sizes->hidden, message) : CLEAVE_OK;
}

static cleave_status_t check_sizes(const cpu_call_t *call, cpu_recurrent_sizes_t *out_sizes,
                                   cleave_message_t *message) {
  const cpu_recurrent_t *recurrent = &((const rnn_state_t *)call->state)->recurrent;
  const cpu_tensor_t *x = call->inputs[RNN_X];
  cpu_recurrent_sizes_t sizes;
  CPU_TRY(check_weights(call, &sizes, message));
  if (x->rank != 3 || x->dims[2] != sizes.input) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "X has rank %d and %lld feature%s, expected 3 and %lld",
                       x->rank, x->rank == 3 ? (long long)x->dims[2] : 0,
                       KERNEL_PLURAL(x->rank == 3 ? (long long)x->dims[2] : 0), (long long)sizes.input);
  }
  sizes.steps = x->dims[recurrent->batch_first ? 1 : 0];
  sizes.batch = x->dims[recurrent->batch_first ? 0 : 1];
  int64_t states = cpu_nn_multiply(recurrent->directions * sizes.hidden, sizes.batch);
  const struct {
    const char *name;
    const cpu_tensor_t *tensor;
    int64_t count;
  } checks[] = {
      {"sequence_lens", cpu_input(call, RNN_LENGTHS), sizes.batch},
      {"initial_h", cpu_input(call, RNN_INITIAL_H), states},
      {"initial_c", cpu_input(call, RNN_INITIAL_C), states},
      {"Y", cpu_output(call, 0), cpu_nn_multiply(states, sizes.steps)},
      {"Y_h", cpu_output(call, 1), states},
      {"Y_c", cpu_output(call, 2), states},
  };
  for (size_t k = 0; k < sizeof checks / sizeof checks[0]; k++) {
    if (checks[k].tensor != NULL) {
      CPU_TRY(cpu_nn_check_count(checks[k].name, checks[k].tensor, checks[k].count, message));
    }
  }
  *out_sizes = sizes;
  return CLEAVE_OK;
}

// sequence_lens comes from outside at run time. It is copied to `out`.
static cleave_status_t read_lengths(const cpu_call_t *call, const cpu_recurrent_sizes_t *sizes, int64_t *out,
                                    cleave_message_t *message) {
  for (int64_t n = 0; out != NULL && n < sizes->batch; n++) {
    out[n] = cpu_read_int(call->inputs[RNN_LENGTHS], n);
    if (out[n] < 0 || out[n] > sizes->steps) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "sequence_lens has %lld, expected 0 to %lld",
                         (long long)out[n], (long long)sizes->steps);
    }
  }
  return CLEAVE_OK;
}

static const void *input_data(const cpu_call_t *call, uint32_t index) {
  const cpu_tensor_t *tensor = cpu_input(call, index);
  return tensor != NULL ? tensor->data : NULL;
}

static void *output_data(const cpu_call_t *call, uint32_t index) {
  cpu_tensor_t *tensor = cpu_output(call, index);
  return tensor != NULL ? tensor->data : NULL;
}

static cpu_recurrent_data_t data_of(const cpu_call_t *call) {
  return (cpu_recurrent_data_t){.x = input_data(call, RNN_X),
                                .w = input_data(call, RNN_W),
                                .r = input_data(call, RNN_R),
                                .b = input_data(call, RNN_B),
                                .initial_h = input_data(call, RNN_INITIAL_H),
                                .initial_c = input_data(call, RNN_INITIAL_C),
                                .p = input_data(call, RNN_PEEPHOLES),
                                .y = output_data(call, 0),
                                .y_h = output_data(call, 1),
                                .y_c = output_data(call, 2)};
}

// The lengths come first in the scratch memory; NULL if there are none.
static int64_t *carve_lengths(const cpu_call_t *call, int64_t batch, cpu_carver_t *carver) {
  return cpu_input(call, RNN_LENGTHS) != NULL ? cpu_nn_carve(carver, batch, sizeof(int64_t)) : NULL;
}

typedef size_t (*scratch_fn_t)(const cpu_recurrent_t *recurrent, const cpu_recurrent_sizes_t *sizes,
                               bool is_packed);
typedef void (*run_fn_t)(const cpu_recurrent_t *recurrent, const cpu_recurrent_sizes_t *sizes,
                         const cpu_recurrent_data_t *data, const cpu_recurrent_run_t *run);

static size_t scratch_with(const cpu_call_t *call, scratch_fn_t scratch) {
  const rnn_state_t *state = call->state;
  cpu_recurrent_sizes_t sizes;
  cpu_carver_t carver = {NULL, 0};
  if (check_sizes(call, &sizes, NULL) != CLEAVE_OK) {
    return 0;
  }
  (void)carve_lengths(call, sizes.batch, &carver);
  size_t bytes = scratch(&state->recurrent, &sizes, state->packed != NULL);
  return bytes > SIZE_MAX - carver.used ? SIZE_MAX : carver.used + bytes;
}

static cleave_status_t run_with(const cpu_call_t *call, run_fn_t run, cleave_message_t *message) {
  const rnn_state_t *state = call->state;
  cpu_recurrent_sizes_t sizes;
  cpu_carver_t carver = {call->scratch, 0};
  CPU_TRY(check_sizes(call, &sizes, message));
  cpu_recurrent_data_t data = data_of(call);
  int64_t *lengths = carve_lengths(call, sizes.batch, &carver);
  CPU_TRY(read_lengths(call, &sizes, lengths, message));
  data.lengths = lengths;
  run(&state->recurrent, &sizes, &data,
      &(cpu_recurrent_run_t){.packed = state->packed,
                             .scratch = carver.base + carver.used,
                             .threads = call->threads,
                             .parallel_for = call->host->parallel_for});
  return CLEAVE_OK;
}

static size_t scratch_f32(const cpu_call_t *call) {
  return scratch_with(call, cpu_recurrent_scratch_f32);
}

static size_t scratch_f64(const cpu_call_t *call) {
  return scratch_with(call, cpu_recurrent_scratch_f64);
}

static cleave_status_t run_f32(const cpu_call_t *call, cleave_message_t *message) {
  return run_with(call, cpu_recurrent_run_f32, message);
}

static cleave_status_t run_f64(const cpu_call_t *call, cleave_message_t *message) {
  return run_with(call, cpu_recurrent_run_f64, message);
}

static cleave_status_t rnn_prepare(cpu_prepare_t *prepare, void *opaque, cleave_message_t *message) {
  rnn_state_t *state = opaque;
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
  return cpu_recurrent_read(prepare->node, &state->recurrent, message);
}

static bool is_constant(const cpu_call_t *call, uint32_t index) {
  const cpu_tensor_t *tensor = cpu_input(call, index);
  return tensor == NULL || tensor->data != NULL;
}

// float16 and bfloat16 go through copies of each run, which are packed there.
static cleave_status_t rnn_pack(const cpu_call_t *call, void *opaque, const cpu_allocator_t *allocator,
                                cleave_message_t *message) {
  rnn_state_t *state = opaque;
  cleave_dtype_t dtype = call->inputs[RNN_W]->dtype;
  cpu_recurrent_sizes_t sizes;
  if (!is_constant(call, RNN_W) || !is_constant(call, RNN_R) || !is_constant(call, RNN_B) ||
      !is_constant(call, RNN_PEEPHOLES) || cpu_dtype_is_short_float(dtype)) {
    return CLEAVE_OK;
  }
  CPU_TRY(check_weights(call, &sizes, message));
  cpu_recurrent_data_t data = data_of(call);
  bool is_double = dtype == CLEAVE_DTYPE_F64;
  void *packed = allocator->allocate(allocator->owner,
                                     is_double ? cpu_recurrent_packed_bytes_f64(&state->recurrent, &sizes)
                                               : cpu_recurrent_packed_bytes_f32(&state->recurrent, &sizes));
  if (packed == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory for packed weights");
  }
  (is_double ? cpu_recurrent_pack_f64 : cpu_recurrent_pack_f32)(&state->recurrent, &sizes, &data, packed);
  state->packed = packed;
  return CLEAVE_OK;
}

#define RNN_KERNEL(name)                                                                       \
  {                                                                                            \
    .op = (name), .state_size = sizeof(rnn_state_t), .prepare = rnn_prepare, .pack = rnn_pack, \
    CPU_FLOAT_SCRATCH(scratch), CPU_FLOAT_RUN(run), .float_input = RNN_X, .required_inputs = 3 \
  }

const cpu_kernel_t cpu_kernels_rnn[] = {
    RNN_KERNEL("RNN"),
    RNN_KERNEL("GRU"),
    RNN_KERNEL("LSTM"),
    {.op = NULL},
};

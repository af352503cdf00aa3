// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM. With layout 0: X [T, N, I], Y [T, D, N, H], states [D, N, H]; with layout 1 the batch
// comes first: X [N, T, I], Y [N, T, D, H], states [N, D, H]. W [D, G H, I], R [D, G H, H], B [D, 2 G H].

#include <string.h>

#include "ops/context/infer_context.h"

typedef struct recurrent {
  cleave_dim_t time;
  cleave_dim_t batch;
  cleave_dim_t input;
  cleave_dim_t hidden;
  int64_t directions;
  int64_t gates;
  bool batch_first;
} recurrent_t;

static cleave_dim_t first_known(cleave_dim_t a, cleave_dim_t b) {
  return cleave_dim_is_known(a) || b == CLEAVE_DIM_UNKNOWN ? a : b;
}

static cleave_status_t read_sizes(cleave_infer_t *infer, int64_t gates, recurrent_t *out,
                                  cleave_error_t *error) {
  const char *direction = cleave_infer_text(infer, "direction", "forward");
  bool is_both = strcmp(direction, "bidirectional") == 0;
  if (!is_both && strcmp(direction, "forward") != 0 && strcmp(direction, "reverse") != 0) {
    return cleave_infer_fail(infer, error, "direction is '%.32s'", direction);
  }
  const cleave_fact_t *data = cleave_infer_input(infer, 0);
  const cleave_fact_t *weight = cleave_infer_input(infer, 1);
  const cleave_fact_t *recurrence = cleave_infer_input(infer, 2);
  int64_t hidden = cleave_infer_int(infer, "hidden_size", CLEAVE_DIM_UNKNOWN);
  if (hidden != CLEAVE_DIM_UNKNOWN && (hidden < 1 || hidden > INT32_MAX)) {
    return cleave_infer_fail(infer, error, "hidden_size is %lld", (long long)hidden);
  }
  out->batch_first = cleave_infer_int(infer, "layout", 0) != 0;
  out->directions = is_both ? 2 : 1;
  out->gates = gates;
  out->time = cleave_fact_dim(data, out->batch_first ? 1 : 0);
  out->batch = cleave_fact_dim(data, out->batch_first ? 0 : 1);
  out->input = first_known(cleave_fact_dim(data, 2), cleave_fact_dim(weight, 2));
  out->hidden = first_known(hidden, cleave_fact_dim(recurrence, 2));
  if (out->hidden == CLEAVE_DIM_UNKNOWN) {
    out->hidden = cleave_infer_divide(infer, cleave_fact_dim(weight, 1), gates);
  }
  return CLEAVE_OK;
}

static cleave_status_t set_state(cleave_infer_t *infer, const recurrent_t *sizes, cleave_fact_t *state,
                                 cleave_error_t *error) {
  cleave_dim_t dims[3] = {sizes->directions, sizes->batch, sizes->hidden};
  if (sizes->batch_first) {
    dims[0] = sizes->batch;
    dims[1] = sizes->directions;
  }
  return cleave_infer_set_shape(infer, state, 3, dims, error);
}

/* Shapes of everything but LSTM's cell states and peepholes. */
static cleave_status_t recurrent_shapes(cleave_infer_t *infer, int64_t gates, recurrent_t *out,
                                        cleave_error_t *error) {
  cleave_fact_t *data = cleave_infer_input(infer, 0);
  cleave_fact_t *lengths = cleave_infer_input(infer, 4);
  for (uint32_t k = 0; k < infer->input_count; k++) {
    if (k != 4) {
      CLEAVE_TRY(cleave_infer_same_dtype(infer, data, infer->inputs[k], error));
    }
  }
  for (uint32_t k = 0; k < infer->output_count; k++) {
    CLEAVE_TRY(cleave_infer_same_dtype(infer, data, infer->outputs[k], error));
  }
  CLEAVE_TRY(cleave_infer_set_dtype(infer, lengths, CLEAVE_DTYPE_I32, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, data, 3, error));
  CLEAVE_TRY(read_sizes(infer, gates, out, error));
  cleave_dim_t stacked = cleave_infer_multiply(infer, out->hidden, gates);
  cleave_dim_t x[3] = {out->time, out->batch, out->input};
  cleave_dim_t w[3] = {out->directions, stacked, out->input};
  cleave_dim_t r[3] = {out->directions, stacked, out->hidden};
  cleave_dim_t b[2] = {out->directions, cleave_infer_multiply(infer, stacked, 2)};
  cleave_dim_t y[4] = {out->time, out->directions, out->batch, out->hidden};
  if (out->batch_first) {
    x[0] = out->batch;
    x[1] = out->time;
    y[0] = out->batch;
    y[1] = out->time;
    y[2] = out->directions;
  }
  CLEAVE_TRY(cleave_infer_set_shape(infer, data, 3, x, error));
  CLEAVE_TRY(cleave_infer_set_shape(infer, cleave_infer_input(infer, 1), 3, w, error));
  CLEAVE_TRY(cleave_infer_set_shape(infer, cleave_infer_input(infer, 2), 3, r, error));
  CLEAVE_TRY(cleave_infer_set_shape(infer, cleave_infer_input(infer, 3), 2, b, error));
  CLEAVE_TRY(cleave_infer_set_shape(infer, lengths, 1, &out->batch, error));
  CLEAVE_TRY(set_state(infer, out, cleave_infer_input(infer, 5), error));
  CLEAVE_TRY(cleave_infer_set_shape(infer, cleave_infer_output(infer, 0), 4, y, error));
  return set_state(infer, out, cleave_infer_output(infer, 1), error);
}

cleave_status_t cleave_infer_rnn(cleave_infer_t *infer, cleave_error_t *error) {
  recurrent_t sizes;
  return recurrent_shapes(infer, 1, &sizes, error);
}

cleave_status_t cleave_infer_gru(cleave_infer_t *infer, cleave_error_t *error) {
  recurrent_t sizes;
  return recurrent_shapes(infer, 3, &sizes, error);
}

cleave_status_t cleave_infer_lstm(cleave_infer_t *infer, cleave_error_t *error) {
  recurrent_t sizes;
  CLEAVE_TRY(recurrent_shapes(infer, 4, &sizes, error));
  CLEAVE_TRY(set_state(infer, &sizes, cleave_infer_input(infer, 6), error));
  CLEAVE_TRY(set_state(infer, &sizes, cleave_infer_output(infer, 2), error));
  cleave_dim_t peepholes[2] = {sizes.directions, cleave_infer_multiply(infer, sizes.hidden, 3)};
  return cleave_infer_set_shape(infer, cleave_infer_input(infer, 7), 2, peepholes, error);
}

// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM: every direction, layout and option, with and without states, biases, peepholes and
// lengths of sequences, with sizes around those of a block of hidden units.
#include <stdio.h>

#include "sweep.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const struct {
  const char *op;
  int gates;
  const char *options;
} layers[] = {
    {"RNN", 1, ""},
    {"RNN", 1, ", clip=0.5"},
    {"GRU", 3, ""},
    {"GRU", 3, ", linear_before_reset=1"},
    {"GRU", 3, ", linear_before_reset=1, clip=0.5"},
    {"LSTM", 4, ""},
    {"LSTM", 4, ", input_forget=1"},
    {"LSTM", 4, ", clip=0.5"},
};

static const char *const directions[] = {"forward", "reverse", "bidirectional"};
static const int sizes[][4] = {{1, 1, 3, 4}, {5, 1, 7, 16}, {4, 3, 5, 17}, {2, 8, 16, 33}}; /* T, N, I, H */

/* "Cast{to=6}(#[4,1,2])": int32 lengths from 0 to `steps`, the longest one first. */
static void write_lengths(int steps, int batch, char *out_text, size_t size) {
  int used = snprintf(out_text, size, "Cast{to=6}(#[%d", steps);
  for (int n = 1; n < batch; n++) {
    used += snprintf(out_text + used, size - (size_t)used, ",%d", (steps + 2 * n) % (steps + 1));
  }
  (void)snprintf(out_text + used, size - (size_t)used, "])");
}

/* Operands after R: `form` is none, biases, biases and states, or biases, lengths and, of an LSTM, states and
 * peepholes. */
static void one(sweep_t *sweep, size_t l, size_t d, size_t s, int layout, int form) {
  int count = d == 2 ? 2 : 1;
  const int *size = sizes[s];
  int rows = layers[l].gates * size[3];
  char state[48];
  char lengths[80];
  char tail[256];
  bool is_lstm = layers[l].gates == 4;
  (void)snprintf(state, sizeof state, "[%d,%d,%d]", layout != 0 ? size[1] : count,
                 layout != 0 ? count : size[1], size[3]);
  (void)snprintf(tail, sizeof tail, "%s", "");
  if (form == 1) {
    (void)snprintf(tail, sizeof tail, ", $b[%d,%d]", count, 2 * rows);
  } else if (form == 2) {
    (void)snprintf(tail, sizeof tail, ", $b[%d,%d], _, h%s%s%s", count, 2 * rows, state,
                   is_lstm ? ", cell" : "", is_lstm ? state : "");
  } else if (form == 3) {
    write_lengths(size[0], size[1], lengths, sizeof lengths);
    int used = snprintf(tail, sizeof tail, ", $b[%d,%d], %s", count, 2 * rows, lengths);
    if (is_lstm) {
      (void)snprintf(tail + used, sizeof tail - (size_t)used, ", h%s, cell%s, $p[%d,%d]", state, state, count,
                     3 * size[3]);
    }
  }
  sweep_nodes(sweep,
              "y, h_n%s = %s{hidden_size=%d, direction=%s, layout=%d%s}(x[%d,%d,%d], $w^[%d,%d,%d], "
              "$r^[%d,%d,%d]%s) -> y, h_n%s",
              is_lstm ? ", c_n" : "", layers[l].op, size[3], directions[d], layout, layers[l].options,
              size[layout != 0 ? 1 : 0], size[layout != 0 ? 0 : 1], size[2], count, rows, size[2], count,
              rows, size[3], tail, is_lstm ? ", c_n" : "");
}

void sweep_recurrent(sweep_t *sweep) {
  /* A GPU rounds products and states of each step, to float16 (1e-3 is its tolerance) and bfloat16 (4e-6). */
  static const struct {
    const char *name;
    double slack;
  } dtypes[] = {{"f64", 1}, {"f16", 4}, {"bf16", 2000}};
  for (size_t k = 0; k < COUNT(dtypes); k++) {
    const char *dtype = dtypes[k].name;
    sweep_set_slack(sweep, dtypes[k].slack);
    for (size_t l = 0; l < COUNT(layers); l++) {
      int rows = 5 * layers[l].gates;
      sweep_nodes(sweep, "%s{hidden_size=5%s}(x:%s[3,2,4], $w:%s[1,%d,4], $r:%s[1,%d,5], $b:%s[1,%d])",
                  layers[l].op, layers[l].options, dtype, dtype, rows, dtype, rows, dtype, 2 * rows);
    }
  }
  sweep_set_slack(sweep, 1.0);
  sweep_nodes(sweep, "RNN{hidden_size=5}(x[3,0,4], $w[1,5,4], $r[1,5,5])");
  for (size_t l = 0; l < COUNT(layers); l++) {
    for (size_t d = 0; d < COUNT(directions); d++) {
      for (size_t s = 0; s < COUNT(sizes); s++) {
        one(sweep, l, d, s, (int)(s % 2), (int)((l + d + s) % 4));
        one(sweep, l, d, s, (int)((s + 1) % 2), (int)((l + d + s + 2) % 4));
      }
    }
  }
}

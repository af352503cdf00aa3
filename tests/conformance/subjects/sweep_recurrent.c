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

/* Operands after R: `form` is none, biases, states, lengths, or (LSTM) all with peepholes. */
static void one(sweep_t *sweep, size_t l, size_t d, size_t s, int layout, int form) {
  int count = d == 2 ? 2 : 1;
  const int *size = sizes[s];
  int rows = layers[l].gates * size[3];
  char state[48];
  char tail[256];
  bool is_lstm = layers[l].gates == 4;
  (void)snprintf(state, sizeof state, "[%d,%d,%d]", layout != 0 ? size[1] : count,
                 layout != 0 ? count : size[1], size[3]);
  (void)snprintf(tail, sizeof tail, "%s", "");
  if (form == 1) {
    (void)snprintf(tail, sizeof tail, ", $b[%d,%d]", count, 2 * rows);
  } else if (form == 2) {
    (void)snprintf(tail, sizeof tail, ", $b[%d,%d], _, h%s%s%s", count, 2 * rows, state, is_lstm ? ", c" : "",
                   is_lstm ? state : "");
  } else if (form == 3 && is_lstm) {
    (void)snprintf(tail, sizeof tail, ", $b[%d,%d], _, h%s, c%s, $p[%d,%d]", count, 2 * rows, state, state,
                   count, 3 * size[3]);
  }
  sweep_nodes(sweep,
              "y, h_n%s = %s{hidden_size=%d, direction=%s, layout=%d%s}(x[%d,%d,%d], $w^[%d,%d,%d], "
              "$r^[%d,%d,%d]%s) -> y, h_n%s",
              is_lstm ? ", c_n" : "", layers[l].op, size[3], directions[d], layout, layers[l].options,
              size[layout != 0 ? 1 : 0], size[layout != 0 ? 0 : 1], size[2], count, rows, size[2], count,
              rows, size[3], tail, is_lstm ? ", c_n" : "");
}

void sweep_recurrent(sweep_t *sweep) {
  for (size_t l = 0; l < COUNT(layers); l++) {
    for (size_t d = 0; d < COUNT(directions); d++) {
      for (size_t s = 0; s < COUNT(sizes); s++) {
        one(sweep, l, d, s, (int)(s % 2), (int)((l + d + s) % 4));
        one(sweep, l, d, s, (int)((s + 1) % 2), (int)((l + d + s + 2) % 4));
      }
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Random graphs: products, poolings, normalizations, activations and arithmetic over each other's results,
// with permutations, views, joins and parts in between that change layouts; values with many readers, and
// outputs from the middle.
#include "sweep_maker.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

enum { GRAPHS = 240, MIN_NODES = 4, MAX_NODES = 31 };

static void make(sweep_maker_t *maker) {
  static const sweep_value_t starts[] = {
      {.rank = 4, .dims = {1, 16, 6, 6}}, {.rank = 4, .dims = {2, 3, 7, 5}},
      {.rank = 3, .dims = {2, 5, 16}},    {.rank = 2, .dims = {4, 17}},
      {.rank = 4, .dims = {1, 17, 4, 8}}, {.rank = 4, .dims = {1, 8, 6, 6}},
      {.rank = 4, .dims = {1, 16, 9, 8}}, {.rank = 4, .dims = {2, 32, 7, 7}}};
  sweep_t *sweep = maker->sweep;
  int inputs = 1 + (int)sweep_below(sweep, 2);
  int nodes = MIN_NODES + (int)sweep_below(sweep, MAX_NODES - MIN_NODES + 1);
  for (int k = 0; k < inputs; k++) {
    sweep_maker_input(maker, k, &starts[sweep_below(sweep, COUNT(starts))]);
  }
  while (nodes > 0) {
    nodes -= sweep_maker_step(maker) ? 1 : 0;
  }
  const char *comma = "-> ";
  for (int k = inputs; k < maker->count; k++) {
    if (maker->values[k].uses == 0 || sweep_below(sweep, 8) == 0) {
      cleave_text_format(&maker->text, "%sv%d", comma, k);
      comma = ", ";
    }
  }
}

void sweep_random(sweep_t *sweep) {
  for (int k = 0; k < GRAPHS; k++) {
    sweep_maker_t maker = {.sweep = sweep};
    make(&maker);
    for (int32_t threads = 1; threads <= 2; threads++) {
      sweep_set_threads(sweep, threads);
      sweep_rules(sweep, "%s", cleave_text_get(&maker.text));
      if (k % 2 == threads % 2) {
        sweep_nodes(sweep, "%s", cleave_text_get(&maker.text));
      }
    }
    cleave_text_deinit(&maker.text);
  }
}

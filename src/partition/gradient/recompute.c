// SPDX-License-Identifier: Apache-2.0
// Chooses what is computed again. Two numbers make a choice: nodes that cost more FLOPs per byte than the one
// are kept, and so are nodes with which a set of nodes that are repeated together would exceed the other.
// (Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016, choose segments by the second alone.)
// What a choice costs follows from the lifetimes that it gives to all values; of those that fit the bound,
// the one with the fewest FLOPs wins.
#include "partition/gradient/recompute.h"

#include <math.h>
#include <string.h>

#include "base/sized.h"
#include "partition/gradient/recompute_state.h"

enum { LIMITS = 24 }; /* of sets: each 0.7 of the one before */
static const double LIMIT_STEP = 0.7;

// ---- sets ----

/* The producer of an input, if forward drops the value. */
static recompute_node_t *dropped_producer(const recompute_t *state, cleave_value_t value) {
  cleave_node_t producer =
      cleave_value_exists(value) ? cleave_value_producer(state->graph, value) : CLEAVE_NODE_NONE;
  if (!cleave_recompute_is_forward(state, producer)) {
    return NULL;
  }
  recompute_node_t *node = &state->nodes[producer.index];
  return node->is_dropped && (node->is_view || state->values[value.index].may_drop) ? node : NULL;
}

/* The bytes of a set of the node with all sets that its inputs are in. */
static int64_t joined_bytes(recompute_t *state, cleave_node_t node) {
  int64_t bytes = state->nodes[node.index].bytes;
  for (uint32_t k = 0; k < cleave_node_input_count(state->graph, node); k++) {
    const recompute_node_t *producer = dropped_producer(state, cleave_node_input(state->graph, node, k));
    if (producer != NULL) {
      recompute_node_t *set = &state->nodes[cleave_recompute_set(state, (uint32_t)(producer - state->nodes))];
      bytes += set->stamp == node.index ? 0 : set->set_bytes;
      set->stamp = node.index;
    }
  }
  return bytes;
}

static void join(recompute_t *state, cleave_node_t node) {
  recompute_node_t *own = &state->nodes[node.index];
  own->is_dropped = true;
  own->set_bytes = own->bytes;
  own->set_first = own->first;
  for (uint32_t k = 0; k < cleave_node_input_count(state->graph, node); k++) {
    const recompute_node_t *producer = dropped_producer(state, cleave_node_input(state->graph, node, k));
    if (producer == NULL || producer == own) {
      continue;
    }
    uint32_t index = cleave_recompute_set(state, (uint32_t)(producer - state->nodes));
    recompute_node_t *set = &state->nodes[index];
    if (set != own) {
      set->set = node.index;
      own->set_bytes += set->set_bytes;
      own->set_first = set->set_first < own->set_first ? set->set_first : own->set_first;
    }
  }
}

static void choose(recompute_t *state, double ratio, int64_t limit) {
  for (uint32_t p = 0; p < state->forward_count; p++) {
    cleave_node_t node = state->order[p];
    recompute_node_t *entry = &state->nodes[node.index];
    entry->set = node.index;
    entry->stamp = CLEAVE_INDEX_NONE;
    entry->is_dropped = entry->is_wanted = entry->is_repeated = false;
    if (entry->is_view ? dropped_producer(state, cleave_node_input(state->graph, node, 0)) != NULL
                       : entry->is_eligible && entry->ratio <= ratio && joined_bytes(state, node) <= limit) {
      join(state, node);
    }
  }
}

// ---- what it costs ----

static bool is_read(const recompute_t *state, cleave_node_t node) {
  for (uint32_t k = 0; k < cleave_node_output_count(state->graph, node); k++) {
    const recompute_value_t *value = &state->values[cleave_node_output(state->graph, node, k).index];
    if (value->backward && (state->nodes[node.index].is_view || value->may_drop)) {
      return true;
    }
  }
  return state->nodes[node.index].is_wanted;
}

/* Which dropped nodes are repeated, for backward or for one another, and what these keep alive. */
static void mark_repeated(recompute_t *state, recompute_cost_t *cost) {
  for (uint32_t p = state->forward_count; p-- > 0;) {
    cleave_node_t node = state->order[p];
    recompute_node_t *entry = &state->nodes[node.index];
    if (!entry->is_dropped || !is_read(state, node)) {
      continue;
    }
    uint32_t first = state->nodes[cleave_recompute_set(state, node.index)].set_first;
    entry->is_repeated = true;
    cost->flops += entry->flops;
    cost->repeated++;
    for (uint32_t k = 0; k < cleave_node_input_count(state->graph, node); k++) {
      cleave_value_t value = cleave_node_input(state->graph, node, k);
      recompute_node_t *producer = dropped_producer(state, value);
      if (producer != NULL) {
        producer->is_wanted = true;
      } else if (cleave_value_exists(value)) {
        recompute_value_t *root = &state->values[state->values[value.index].root];
        root->end = root->end < first ? first : root->end;
      }
    }
  }
}

static void live(recompute_t *state, int64_t bytes, uint32_t from, uint32_t to) {
  state->profile[from] += bytes;
  state->profile[to + 1] -= bytes;
}

/* The memory that the values of one node need, its own and its repetition's. */
static void add_lifetimes(recompute_t *state, uint32_t position, recompute_cost_t *cost) {
  cleave_node_t node = state->order[position];
  const recompute_node_t *entry = &state->nodes[node.index];
  for (uint32_t k = 0; k < cleave_node_output_count(state->graph, node); k++) {
    const recompute_value_t *value = &state->values[cleave_node_output(state->graph, node, k).index];
    bool is_dropped = entry->is_dropped && value->may_drop;
    uint32_t end = value->end > value->last ? value->end : value->last;
    if (value->bytes == 0) {
      continue;
    }
    if (!is_dropped && value->last_in != CLEAVE_INDEX_NONE) {
      end = end > value->last_in ? end : value->last_in;
    }
    live(state, value->bytes, position, end);
    cost->kept += end >= state->forward_count ? value->bytes : 0;
    if (is_dropped && entry->is_repeated) {
      uint32_t first = state->nodes[cleave_recompute_set(state, node.index)].set_first;
      bool is_later = value->last_in != CLEAVE_INDEX_NONE && value->last_in > first;
      live(state, value->bytes, first, is_later ? value->last_in : first);
    }
  }
}

static recompute_cost_t evaluate(recompute_t *state, double ratio, int64_t limit) {
  recompute_cost_t cost = {0};
  int64_t now = 0;
  choose(state, ratio, limit);
  for (uint32_t k = 0; k < cleave_graph_value_bound(state->graph); k++) {
    state->values[k].end = 0;
  }
  mark_repeated(state, &cost);
  memcpy(state->profile, state->backward, ((size_t)state->node_count + 1) * sizeof *state->profile);
  for (uint32_t p = 0; p < state->forward_count; p++) {
    add_lifetimes(state, p, &cost);
  }
  for (uint32_t p = 0; p < state->node_count; p++) {
    now += state->profile[p];
    cost.peak = now > cost.peak ? now : cost.peak;
  }
  return cost;
}

// ---- the search ----

typedef struct search {
  recompute_t *state;
  double bound; /* of the peak */
  recompute_cost_t best;
  double ratio; /* of the best */
  int64_t limit;
  bool found;
  int64_t least; /* peak of all choices */
} search_t;

static void try_ratio(search_t *search, double ratio, int64_t total) {
  double limit = (double)total;
  for (int k = 0; k < LIMITS; k++, limit *= LIMIT_STEP) {
    recompute_cost_t cost = evaluate(search->state, ratio, (int64_t)limit);
    bool is_better = !search->found || cost.flops < search->best.flops ||
                     (cost.flops == search->best.flops && cost.peak < search->best.peak);
    search->least = cost.peak < search->least ? cost.peak : search->least;
    if ((double)cost.peak <= search->bound && is_better) {
      search->best = cost;
      search->ratio = ratio;
      search->limit = (int64_t)limit;
      search->found = true;
    }
  }
}

/* Powers of two from the smallest ratio on, as long as they admit more nodes. */
static void try_all(search_t *search) {
  const recompute_t *state = search->state;
  int64_t total = 0;
  bool is_tried[64] = {false};
  for (uint32_t p = 0; p < state->forward_count; p++) {
    const recompute_node_t *node = &state->nodes[state->order[p].index];
    if (node->is_eligible) {
      int power = node->ratio > 0.0 ? (int)ceil(log2(node->ratio)) + 16 : 0;
      is_tried[power < 0 ? 0 : power > 63 ? 63 : power] = true;
      total += node->bytes;
    }
  }
  for (int power = 0; power < 64; power++) {
    if (is_tried[power]) {
      try_ratio(search, power == 63 ? INFINITY : ldexp(1.0, power - 16), total);
    }
  }
}

static cleave_status_t run(recompute_t *state, double share, cleave_recompute_report_t *report,
                           cleave_error_t *error) {
  recompute_cost_t all = evaluate(state, -1.0, 0);
  search_t search = {.state = state, .bound = share * (double)all.peak, .least = all.peak};
  report->kept_bytes_before = report->kept_bytes = all.kept;
  report->peak_bytes_before = report->peak_bytes = all.peak;
  if (share >= 1.0) {
    return CLEAVE_OK;
  }
  try_all(&search);
  if (!search.found) {
    double least = all.peak > 0 ? (double)search.least / (double)all.peak : 1.0;
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT,
                            "recompute: the values of a run need %.1f MiB if all are kept; a share of %g is "
                            "too small, the least that was found is %.2f",
                            (double)all.peak / 1048576.0, share, ceil(least * 100.0) / 100.0);
  }
  (void)evaluate(state, search.ratio, search.limit);
  report->kept_bytes = search.best.kept;
  report->peak_bytes = search.best.peak;
  report->flops_added = search.best.flops;
  report->node_count = search.best.repeated;
  return cleave_recompute_apply(state, error);
}

cleave_status_t cleave_gradient_recompute(cleave_graph_t *graph, uint32_t first_backward, double share,
                                          cleave_recompute_report_t *out_report, cleave_error_t *error) {
  recompute_t state;
  cleave_recompute_report_t report = {0};
  cleave_status_t status = cleave_recompute_init(&state, graph, first_backward, error);
  CLEAVE_THEN(status, run(&state, share, &report, error));
  cleave_recompute_deinit(&state);
  if (status == CLEAVE_OK) {
    CLEAVE_SIZED_OUT(cleave_recompute_report_t, &report, out_report);
  }
  return status;
}

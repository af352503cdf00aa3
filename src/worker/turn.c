// SPDX-License-Identifier: Apache-2.0
// Partitioners of the library at work: the graph and the options stay for the turn, in the request that they
// came with; selectors live in it.
#include <string.h>

#include "worker/worker.h"

enum { MOST_ATTACHED_BYTES = 32 << 20, MOST_ATTACHED_TEXT = 65537 };

/* ---- turns by id ---- */

static size_t find_index(const worker_t *worker, uint32_t id) {
  size_t at = 0;
  while (at < worker->turns.count && worker->turns.items[at]->id != id) {
    at++;
  }
  return at;
}

/* Reads the id. */
static worker_turn_t *find(const worker_t *worker, cleave_wire_in_t *in) {
  size_t at = find_index(worker, cleave_wire_u32(in));
  return at < worker->turns.count ? worker->turns.items[at] : NULL;
}

static void destroy(worker_turn_t *turn) {
  for (size_t k = 0; k < turn->selectors.count; k++) {
    turn->partitioner->destroy_selector(turn->selectors.items[k].own);
  }
  cleave_array_free(&turn->selectors);
  cleave_arena_deinit(&turn->arena);
  cleave_free(turn->message);
  cleave_free(turn);
}

static cleave_status_t begin(worker_t *worker, worker_turn_t *turn, cleave_wire_in_t *in,
                             cleave_message_t *message) {
  turn->id = cleave_wire_u32(in);
  turn->partitioner = worker_partitioner(worker, cleave_wire_u32(in));
  if (turn->partitioner == NULL || find_index(worker, turn->id) < worker->turns.count ||
      !worker_read_pairs(&turn->arena, in, &turn->options, &turn->option_count)) {
    return worker_fail_request(message);
  }
  CLEAVE_TRY(worker_read_region(worker, in, &turn->arena, &turn->graph, message));
  CLEAVE_TRY(cleave_array_reserve(&worker->turns, 1, NULL));
  cleave_array_push_reserved(&worker->turns, turn);
  return CLEAVE_OK;
}

cleave_status_t worker_turn_begin(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  worker_turn_t *turn = cleave_allocate_zeroed(1, sizeof *turn);
  if (turn == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  cleave_status_t status = begin(worker, turn, in, message);
  turn->message = worker_take_request(worker);
  if (status != CLEAVE_OK) {
    destroy(turn);
  }
  return status;
}

cleave_status_t worker_turn_end(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  size_t at = find_index(worker, cleave_wire_u32(in));
  if (at == worker->turns.count) {
    return worker_fail_request(message);
  }
  worker_turn_t *turn = worker->turns.items[at];
  memmove(worker->turns.items + at, worker->turns.items + at + 1,
          (worker->turns.count - at - 1) * sizeof(worker_turn_t *));
  worker->turns.count--;
  destroy(turn);
  return CLEAVE_OK;
}

void worker_turn_end_all(worker_t *worker) {
  for (size_t k = 0; k < worker->turns.count; k++) {
    destroy(worker->turns.items[k]);
  }
  worker->turns.count = 0;
}

/* ---- questions ---- */

cleave_status_t worker_turn_supported(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  const worker_turn_t *turn = find(worker, in);
  uint32_t count = turn == NULL ? 0 : turn->graph.node_count;
  int64_t *groups = cleave_arena_allocate(&worker->arena, count, sizeof *groups);
  if (turn == NULL || groups == NULL || turn->partitioner->supported == NULL) {
    return worker_fail_request(message);
  }
  for (uint32_t k = 0; k < count; k++) {
    groups[k] = -2;
  }
  CLEAVE_TRY(turn->partitioner->supported(&turn->graph, turn->options, turn->option_count, groups, message));
  cleave_wire_put(&worker->reply, groups, count * sizeof *groups, sizeof *groups);
  return CLEAVE_OK;
}

/* What review attaches, in the order in which it does: the parent says what is wrong with it. */
typedef struct attaching {
  cleave_wire_out_t pairs;
  uint32_t count;
} attaching_t;

static void put_limited(cleave_wire_out_t *out, const char *text) {
  if (text == NULL) {
    cleave_wire_put_text(out, NULL);
  } else {
    cleave_wire_put_string(out, text, (uint32_t)strnlen(text, MOST_ATTACHED_TEXT));
  }
}

static void attach(void *context, const char *key, const char *value) {
  attaching_t *attaching = context;
  if (attaching->pairs.length < MOST_ATTACHED_BYTES) {
    attaching->count++;
    put_limited(&attaching->pairs, key);
    put_limited(&attaching->pairs, value);
  }
}

cleave_status_t worker_turn_review(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  const worker_turn_t *turn = find(worker, in);
  cleave_region_view_t region;
  CLEAVE_TRY(worker_read_region(worker, in, &worker->arena, &region, message));
  bool *keep = cleave_arena_allocate(&worker->arena, region.node_count, sizeof *keep);
  if (turn == NULL || keep == NULL || turn->partitioner->review == NULL) {
    return worker_fail_request(message);
  }
  for (uint32_t k = 0; k < region.node_count; k++) {
    keep[k] = true;
  }
  attaching_t attaching = {0};
  cleave_status_t status = turn->partitioner->review(&region, turn->options, turn->option_count, keep, attach,
                                                     &attaching, message);
  cleave_wire_put(&worker->reply, keep, region.node_count, 1);
  cleave_wire_put_u32(&worker->reply, attaching.count);
  cleave_wire_put(&worker->reply, attaching.pairs.data, attaching.pairs.length, sizeof(uint32_t));
  worker->reply.failed = worker->reply.failed || attaching.pairs.failed;
  cleave_wire_deinit(&attaching.pairs);
  return status;
}

/* ---- selectors ---- */

static size_t find_selector(const worker_turn_t *turn, uint32_t id) {
  size_t at = 0;
  while (turn != NULL && at < turn->selectors.count && turn->selectors.items[at].id != id) {
    at++;
  }
  return at;
}

/* Reads turn and selector; NULL where one is not there. */
static worker_turn_t *read_selector(const worker_t *worker, cleave_wire_in_t *in, size_t *out_at) {
  worker_turn_t *turn = find(worker, in);
  *out_at = find_selector(turn, cleave_wire_u32(in));
  return turn != NULL && *out_at < turn->selectors.count ? turn : NULL;
}

cleave_status_t worker_selector_create(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  worker_turn_t *turn = find(worker, in);
  worker_selector_t selector = {.id = cleave_wire_u32(in)};
  if (turn == NULL || in->failed || turn->partitioner->create_selector == NULL ||
      find_selector(turn, selector.id) < turn->selectors.count) {
    return worker_fail_request(message);
  }
  CLEAVE_TRY(cleave_array_reserve(&turn->selectors, 1, NULL));
  CLEAVE_TRY(turn->partitioner->create_selector(&turn->graph, turn->options, turn->option_count,
                                                &selector.own, message));
  cleave_array_push_reserved(&turn->selectors, selector);
  return CLEAVE_OK;
}

cleave_status_t worker_selector_destroy(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  size_t at = 0;
  worker_turn_t *turn = read_selector(worker, in, &at);
  if (turn == NULL) {
    return worker_fail_request(message);
  }
  turn->partitioner->destroy_selector(turn->selectors.items[at].own);
  turn->selectors.items[at] = turn->selectors.items[--turn->selectors.count];
  return CLEAVE_OK;
}

cleave_status_t worker_selector_select(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  size_t at = 0;
  const worker_turn_t *turn = read_selector(worker, in, &at);
  uint32_t question = cleave_wire_index(in, CLEAVE_SELECT_COUNT);
  uint32_t node = cleave_wire_u32(in);
  uint32_t other = cleave_wire_u32(in);
  if (turn == NULL || in->failed) {
    return worker_fail_request(message);
  }
  const cleave_custom_partitioner_t *own = turn->partitioner;
  void *selector = turn->selectors.items[at].own;
  bool yes = question == CLEAVE_SELECT_NODE ? own->select(selector, node)
             : question == CLEAVE_SELECT_INPUT
                 ? own->select_input != NULL && own->select_input(selector, node, other)
                 : own->select_output != NULL && own->select_output(selector, node, other);
  cleave_wire_put_u32(&worker->reply, yes);
  return CLEAVE_OK;
}

cleave_status_t worker_selector_filter(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  size_t at = 0;
  const worker_turn_t *turn = read_selector(worker, in, &at);
  uint32_t count = cleave_wire_count(in, sizeof(uint32_t));
  const uint32_t *candidates = cleave_wire_take(in, count, sizeof *candidates, sizeof *candidates);
  bool *keep = cleave_arena_allocate(&worker->arena, count, sizeof *keep);
  if (turn == NULL || in->failed || keep == NULL || turn->partitioner->filter == NULL) {
    return worker_fail_request(message);
  }
  for (uint32_t k = 0; k < count; k++) {
    keep[k] = true;
  }
  turn->partitioner->filter(turn->selectors.items[at].own, candidates, count, keep);
  cleave_wire_put(&worker->reply, keep, count, 1);
  return CLEAVE_OK;
}

// SPDX-License-Identifier: Apache-2.0
// Partitioners of the library at work: the graph and the options stay for the partitioning, in the request
// that they came with; selectors live in it.
#include <string.h>

#include "worker/worker.h"

enum { MAX_ATTACHED_BYTES = 32 << 20, MAX_ATTACHED_TEXT = 65537 };

/* ---- by id ---- */

static size_t find_index(const worker_t *worker, uint32_t id) {
  size_t at = 0;
  while (at < worker->partitionings.count && worker->partitionings.items[at]->id != id) {
    at++;
  }
  return at;
}

/* Reads the id. */
static worker_partitioning_t *find(const worker_t *worker, cleave_wire_in_t *in) {
  size_t at = find_index(worker, cleave_wire_u32(in));
  return at < worker->partitionings.count ? worker->partitionings.items[at] : NULL;
}

static void destroy(worker_partitioning_t *partitioning) {
  for (size_t k = 0; k < partitioning->selectors.count; k++) {
    partitioning->partitioner->destroy_selector(partitioning->selectors.items[k].own);
  }
  if (partitioning->has_begun && partitioning->partitioner->begin != NULL) {
    partitioning->partitioner->end(partitioning->state);
  }
  cleave_array_free(&partitioning->selectors);
  cleave_arena_deinit(&partitioning->arena);
  cleave_free(partitioning->message);
  cleave_free(partitioning);
}

static cleave_status_t begin(worker_t *worker, worker_partitioning_t *partitioning, cleave_wire_in_t *in,
                             cleave_message_t *message) {
  partitioning->id = cleave_wire_u32(in);
  partitioning->partitioner = worker_partitioner(worker, cleave_wire_u32(in));
  if (partitioning->partitioner == NULL ||
      find_index(worker, partitioning->id) < worker->partitionings.count ||
      !worker_read_pairs(&partitioning->arena, in, &partitioning->options, &partitioning->option_count)) {
    return worker_fail_request(message);
  }
  CLEAVE_TRY(worker_read_region(worker, in, &partitioning->arena, &partitioning->graph, message));
  CLEAVE_TRY(cleave_array_reserve(&worker->partitionings, 1, NULL));
  const cleave_custom_partitioner_t *own = partitioning->partitioner;
  partitioning->state = own->self;
  if (own->begin != NULL) {
    CLEAVE_TRY(own->begin(own->self, &partitioning->graph, partitioning->options, partitioning->option_count,
                          &partitioning->state, message));
  }
  partitioning->has_begun = true;
  cleave_array_push_reserved(&worker->partitionings, partitioning);
  return CLEAVE_OK;
}

cleave_status_t worker_partitioner_begin(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  worker_partitioning_t *partitioning = cleave_allocate_zeroed(1, sizeof *partitioning);
  if (partitioning == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  cleave_status_t status = begin(worker, partitioning, in, message);
  partitioning->message = worker_take_request(worker);
  if (status != CLEAVE_OK) {
    destroy(partitioning);
  }
  return status;
}

cleave_status_t worker_partitioner_end(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  size_t at = find_index(worker, cleave_wire_u32(in));
  if (at == worker->partitionings.count) {
    return worker_fail_request(message);
  }
  worker_partitioning_t *partitioning = worker->partitionings.items[at];
  memmove(worker->partitionings.items + at, worker->partitionings.items + at + 1,
          (worker->partitionings.count - at - 1) * sizeof(worker_partitioning_t *));
  worker->partitionings.count--;
  destroy(partitioning);
  return CLEAVE_OK;
}

void worker_partitioner_end_all(worker_t *worker) {
  for (size_t k = 0; k < worker->partitionings.count; k++) {
    destroy(worker->partitionings.items[k]);
  }
  worker->partitionings.count = 0;
}

/* ---- questions ---- */

cleave_status_t worker_partitioner_supported(worker_t *worker, cleave_wire_in_t *in,
                                             cleave_message_t *message) {
  const worker_partitioning_t *partitioning = find(worker, in);
  uint32_t count = partitioning == NULL ? 0 : partitioning->graph.node_count;
  int64_t *groups = cleave_arena_allocate(&worker->arena, count, sizeof *groups);
  if (partitioning == NULL || groups == NULL || partitioning->partitioner->supported == NULL) {
    return worker_fail_request(message);
  }
  for (uint32_t k = 0; k < count; k++) {
    groups[k] = -2;
  }
  CLEAVE_TRY(partitioning->partitioner->supported(partitioning->state, &partitioning->graph,
                                                  partitioning->options, partitioning->option_count, groups,
                                                  message));
  cleave_wire_put(&worker->reply, groups, count * sizeof *groups, sizeof *groups);
  return CLEAVE_OK;
}

/* Collects what `review` attaches, in order. The parent checks it. */
typedef struct attaching {
  cleave_wire_out_t pairs;
  uint32_t count;
} attaching_t;

static void put_limited(cleave_wire_out_t *out, const char *text) {
  if (text == NULL) {
    cleave_wire_put_text(out, NULL);
  } else {
    cleave_wire_put_string(out, text, (uint32_t)strnlen(text, MAX_ATTACHED_TEXT));
  }
}

static void attach(void *context, const char *key, const char *value) {
  attaching_t *attaching = context;
  if (attaching->pairs.length < MAX_ATTACHED_BYTES) {
    attaching->count++;
    put_limited(&attaching->pairs, key);
    put_limited(&attaching->pairs, value);
  }
}

cleave_status_t worker_partitioner_review(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  const worker_partitioning_t *partitioning = find(worker, in);
  cleave_region_view_t region;
  CLEAVE_TRY(worker_read_region(worker, in, &worker->arena, &region, message));
  bool *keep = cleave_arena_allocate(&worker->arena, region.node_count, sizeof *keep);
  if (partitioning == NULL || keep == NULL || partitioning->partitioner->review == NULL) {
    return worker_fail_request(message);
  }
  for (uint32_t k = 0; k < region.node_count; k++) {
    keep[k] = true;
  }
  attaching_t attaching = {0};
  cleave_status_t status =
      partitioning->partitioner->review(partitioning->state, &region, partitioning->options,
                                        partitioning->option_count, keep, attach, &attaching, message);
  cleave_wire_put(&worker->reply, keep, region.node_count, 1);
  cleave_wire_put_u32(&worker->reply, attaching.count);
  cleave_wire_put(&worker->reply, attaching.pairs.data, attaching.pairs.length, sizeof(uint32_t));
  worker->reply.failed = worker->reply.failed || attaching.pairs.failed;
  cleave_wire_deinit(&attaching.pairs);
  return status;
}

/* ---- selectors ---- */

static size_t find_selector(const worker_partitioning_t *partitioning, uint32_t id) {
  size_t at = 0;
  while (partitioning != NULL && at < partitioning->selectors.count &&
         partitioning->selectors.items[at].id != id) {
    at++;
  }
  return at;
}

/* Reads both ids; NULL if one is not there. */
static worker_partitioning_t *read_selector(const worker_t *worker, cleave_wire_in_t *in, size_t *out_at) {
  worker_partitioning_t *partitioning = find(worker, in);
  *out_at = find_selector(partitioning, cleave_wire_u32(in));
  return partitioning != NULL && *out_at < partitioning->selectors.count ? partitioning : NULL;
}

cleave_status_t worker_selector_create(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  worker_partitioning_t *partitioning = find(worker, in);
  worker_selector_t selector = {.id = cleave_wire_u32(in)};
  if (partitioning == NULL || in->failed || partitioning->partitioner->create_selector == NULL ||
      find_selector(partitioning, selector.id) < partitioning->selectors.count) {
    return worker_fail_request(message);
  }
  CLEAVE_TRY(cleave_array_reserve(&partitioning->selectors, 1, NULL));
  CLEAVE_TRY(partitioning->partitioner->create_selector(partitioning->state, &partitioning->graph,
                                                        partitioning->options, partitioning->option_count,
                                                        &selector.own, message));
  cleave_array_push_reserved(&partitioning->selectors, selector);
  return CLEAVE_OK;
}

cleave_status_t worker_selector_destroy(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  size_t at = 0;
  worker_partitioning_t *partitioning = read_selector(worker, in, &at);
  if (partitioning == NULL) {
    return worker_fail_request(message);
  }
  partitioning->partitioner->destroy_selector(partitioning->selectors.items[at].own);
  partitioning->selectors.items[at] = partitioning->selectors.items[--partitioning->selectors.count];
  return CLEAVE_OK;
}

cleave_status_t worker_selector_select(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  size_t at = 0;
  const worker_partitioning_t *partitioning = read_selector(worker, in, &at);
  uint32_t question = cleave_wire_index(in, CLEAVE_SELECT_COUNT);
  uint32_t node = cleave_wire_u32(in);
  uint32_t other = cleave_wire_u32(in);
  if (partitioning == NULL || in->failed) {
    return worker_fail_request(message);
  }
  const cleave_custom_partitioner_t *own = partitioning->partitioner;
  void *selector = partitioning->selectors.items[at].own;
  bool yes = question == CLEAVE_SELECT_NODE ? own->select(selector, node)
             : question == CLEAVE_SELECT_INPUT
                 ? own->select_input != NULL && own->select_input(selector, node, other)
                 : own->select_output != NULL && own->select_output(selector, node, other);
  cleave_wire_put_u32(&worker->reply, yes);
  return CLEAVE_OK;
}

cleave_status_t worker_selector_filter(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  size_t at = 0;
  const worker_partitioning_t *partitioning = read_selector(worker, in, &at);
  uint32_t count = cleave_wire_count(in, sizeof(uint32_t));
  const uint32_t *candidates = cleave_wire_take(in, count, sizeof *candidates, sizeof *candidates);
  bool *keep = cleave_arena_allocate(&worker->arena, count, sizeof *keep);
  if (partitioning == NULL || in->failed || keep == NULL || partitioning->partitioner->filter == NULL) {
    return worker_fail_request(message);
  }
  for (uint32_t k = 0; k < count; k++) {
    keep[k] = true;
  }
  partitioning->partitioner->filter(partitioning->selectors.items[at].own, candidates, count, keep);
  cleave_wire_put(&worker->reply, keep, count, 1);
  return CLEAVE_OK;
}

// SPDX-License-Identifier: Apache-2.0
// A partitioner of an isolated library at work. The graph is sent once, when it begins; then questions and
// answers are numbers. Answers are handed on as they are: the caller checks them like those of a library in
// this process; only their number is checked here.
#include <stdio.h>
#include <string.h>

#include "backend/isolate/isolate_internal.h"

/* A partitioner at work on a graph. */
typedef struct partitioning {
  const cleave_isolated_partitioner_t *partitioner;
  cleave_worker_t *worker; /* retained */
  uint32_t id;
  uint32_t node_count;
  uint32_t *constants; /* ids that the graph keeps */
  uint32_t constant_count;
} partitioning_t;

typedef struct selector {
  partitioning_t *partitioning;
  uint32_t id;
} selector_t;

static cleave_worker_call_t call_of(const partitioning_t *partitioning, uint32_t kind) {
  return cleave_isolate_call(partitioning->partitioner->isolate, kind,
                             partitioning->partitioner->definition.name);
}

/* ---- beginning and ending ---- */

static cleave_status_t ask_begin(partitioning_t *partitioning, const cleave_region_view_t *graph,
                                 const cleave_key_value_t *options, uint32_t option_count,
                                 cleave_message_t *message) {
  cleave_worker_t *worker = partitioning->worker;
  cleave_worker_call_t call = call_of(partitioning, CLEAVE_FRAME_BEGIN);
  cleave_wire_in_t reply;
  cleave_wire_put_pairs(&worker->request, options, option_count);
  CLEAVE_TRY(cleave_isolate_put_region(worker, graph, message));
  CLEAVE_TRY(cleave_worker_constants_keep(worker, &partitioning->constants, &partitioning->constant_count));
  return cleave_worker_ask(worker, &call, &reply, message);
}

static void destroy(partitioning_t *partitioning) {
  cleave_worker_release(partitioning->worker);
  cleave_free(partitioning->constants);
  cleave_free(partitioning);
}

static cleave_status_t begin(void *self, const cleave_region_view_t *graph, const cleave_key_value_t *options,
                             uint32_t option_count, void **out_state, cleave_message_t *message) {
  const cleave_isolated_partitioner_t *own = self;
  *out_state = NULL;
  partitioning_t *partitioning = cleave_allocate_zeroed(1, sizeof *partitioning);
  if (partitioning == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  partitioning->partitioner = own;
  partitioning->worker = cleave_isolate_worker(own->isolate);
  partitioning->id = cleave_isolate_next_id(own->isolate);
  partitioning->node_count = graph->node_count;
  cleave_status_t status =
      cleave_isolate_begin(partitioning->worker, (uint32_t[]){partitioning->id, own->number}, 2, message);
  if (status == CLEAVE_OK) {
    status = ask_begin(partitioning, graph, options, option_count, message);
    if (status != CLEAVE_OK) {
      cleave_worker_constants_release(partitioning->worker, partitioning->constants,
                                      partitioning->constant_count);
    }
    cleave_worker_end(partitioning->worker);
  }
  CLEAVE_TRY_OR(status, destroy(partitioning));
  *out_state = partitioning;
  return CLEAVE_OK;
}

static void end(void *state) {
  partitioning_t *partitioning = state;
  cleave_message_t message = {.text = ""};
  cleave_wire_in_t reply;
  cleave_worker_call_t call = call_of(partitioning, CLEAVE_FRAME_END);
  if (cleave_isolate_ask(partitioning->worker, &call, &partitioning->id, 1, NULL, &reply, &message) ==
      CLEAVE_OK) {
    cleave_worker_constants_release(partitioning->worker, partitioning->constants,
                                    partitioning->constant_count);
    cleave_worker_end(partitioning->worker);
  }
  destroy(partitioning);
}

bool cleave_isolate_partitioner_is_lost(const void *state, cleave_message_t *message) {
  const partitioning_t *partitioning = state;
  bool is_lost = atomic_load(&partitioning->worker->is_lost);
  if (is_lost) {
    (void)snprintf(message->text, sizeof message->text, "%s", partitioning->worker->reason);
  }
  return is_lost;
}

static cleave_status_t supported(void *state, const cleave_region_view_t *graph,
                                 const cleave_key_value_t *options, uint32_t option_count, int64_t *groups,
                                 cleave_message_t *message) {
  const partitioning_t *partitioning = state;
  (void)graph;
  (void)options;
  (void)option_count;
  cleave_worker_call_t call = call_of(partitioning, CLEAVE_FRAME_SUPPORTED);
  cleave_wire_in_t reply;
  CLEAVE_TRY(cleave_isolate_ask(partitioning->worker, &call, &partitioning->id, 1, NULL, &reply, message));
  const int64_t *found = cleave_wire_take(&reply, partitioning->node_count, sizeof *found, sizeof *found);
  cleave_status_t status = cleave_isolate_check_reply(partitioning->worker, &call, &reply, message);
  if (status == CLEAVE_OK && partitioning->node_count > 0) {
    memcpy(groups, found, partitioning->node_count * sizeof *found);
  }
  cleave_worker_end(partitioning->worker);
  return status;
}

/* Nodes to keep, a byte each. */
static void read_keep(cleave_wire_in_t *reply, uint32_t count, bool *keep) {
  const unsigned char *found = cleave_wire_take(reply, count, 1, 1);
  for (uint32_t k = 0; found != NULL && k < count; k++) {
    keep[k] = found[k] != 0;
  }
}

// Wide: the interface of cleave_custom_partitioner_t.
static cleave_status_t review(void *state, const cleave_region_view_t *region,
                              const cleave_key_value_t *options, uint32_t option_count, bool *keep,
                              void (*attach)(void *context, const char *key, const char *value),
                              void *context, cleave_message_t *message) {
  const partitioning_t *partitioning = state;
  (void)options;
  (void)option_count;
  cleave_worker_call_t call = call_of(partitioning, CLEAVE_FRAME_EXAMINE);
  cleave_wire_in_t reply;
  CLEAVE_TRY(cleave_isolate_ask(partitioning->worker, &call, &partitioning->id, 1, region, &reply, message));
  read_keep(&reply, region->node_count, keep);
  uint32_t count = cleave_wire_count(&reply, 2 * sizeof(uint32_t));
  for (uint32_t k = 0; k < count && !reply.failed; k++) {
    const char *key = cleave_wire_text(&reply);
    const char *value = cleave_wire_text(&reply);
    attach(context, key, value);
  }
  cleave_status_t status = cleave_isolate_check_reply(partitioning->worker, &call, &reply, message);
  cleave_worker_end(partitioning->worker);
  return status;
}

/* ---- selectors ---- */

static cleave_status_t create_selector(void *state, const cleave_region_view_t *graph,
                                       const cleave_key_value_t *options, uint32_t option_count,
                                       void **out_selector, cleave_message_t *message) {
  partitioning_t *partitioning = state;
  (void)graph;
  (void)options;
  (void)option_count;
  cleave_worker_call_t call = call_of(partitioning, CLEAVE_FRAME_SELECTOR);
  cleave_wire_in_t reply;
  *out_selector = NULL;
  selector_t *selector = cleave_allocate_zeroed(1, sizeof *selector);
  if (selector == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  selector->partitioning = partitioning;
  selector->id = cleave_isolate_next_id(partitioning->partitioner->isolate);
  cleave_status_t status = cleave_isolate_ask(
      partitioning->worker, &call, (uint32_t[]){partitioning->id, selector->id}, 2, NULL, &reply, message);
  CLEAVE_TRY_OR(status, cleave_free(selector));
  cleave_worker_end(partitioning->worker);
  *out_selector = selector;
  return CLEAVE_OK;
}

static void destroy_selector(void *memory) {
  selector_t *selector = memory;
  partitioning_t *partitioning = selector->partitioning;
  cleave_worker_call_t call = call_of(partitioning, CLEAVE_FRAME_LEAVE);
  cleave_message_t message = {.text = ""};
  cleave_wire_in_t reply;
  if (cleave_isolate_ask(partitioning->worker, &call, (uint32_t[]){partitioning->id, selector->id}, 2, NULL,
                         &reply, &message) == CLEAVE_OK) {
    cleave_worker_end(partitioning->worker);
  }
  cleave_free(selector);
}

/* A library that is lost says no; the reason comes from cleave_isolate_partitioner_is_lost. */
static bool ask_select(const selector_t *selector, cleave_select_question_t question, uint32_t node,
                       uint32_t other) {
  partitioning_t *partitioning = selector->partitioning;
  cleave_worker_call_t call = call_of(partitioning, CLEAVE_FRAME_SELECT);
  cleave_message_t message = {.text = ""};
  cleave_wire_in_t reply;
  if (cleave_isolate_ask(partitioning->worker, &call,
                         (uint32_t[]){partitioning->id, selector->id, (uint32_t)question, node, other}, 5,
                         NULL, &reply, &message) != CLEAVE_OK) {
    return false;
  }
  bool yes = cleave_wire_u32(&reply) != 0;
  bool is_read = cleave_isolate_check_reply(partitioning->worker, &call, &reply, &message) == CLEAVE_OK;
  cleave_worker_end(partitioning->worker);
  return is_read && yes;
}

static bool select_node(void *selector, uint32_t node) {
  return ask_select(selector, CLEAVE_SELECT_NODE, node, CLEAVE_INDEX_NONE);
}

static bool select_input(void *selector, uint32_t node, uint32_t input) {
  return ask_select(selector, CLEAVE_SELECT_INPUT, node, input);
}

static bool select_output(void *selector, uint32_t node, uint32_t output) {
  return ask_select(selector, CLEAVE_SELECT_OUTPUT, node, output);
}

static void ask_filter(partitioning_t *partitioning, const uint32_t *candidates, uint32_t count, bool *keep,
                       cleave_message_t *message) {
  cleave_worker_call_t call = call_of(partitioning, CLEAVE_FRAME_FILTER);
  cleave_wire_out_t *request = &partitioning->worker->request;
  cleave_wire_in_t reply;
  cleave_wire_put_u32(request, count);
  cleave_wire_put(request, candidates, count * sizeof *candidates, sizeof *candidates);
  if (cleave_worker_ask(partitioning->worker, &call, &reply, message) == CLEAVE_OK) {
    read_keep(&reply, count, keep);
    if (cleave_isolate_check_reply(partitioning->worker, &call, &reply, message) != CLEAVE_OK) {
      return; /* the next call fails and says so */
    }
  }
}

static void filter(void *memory, const uint32_t *candidates, uint32_t count, bool *keep) {
  const selector_t *selector = memory;
  partitioning_t *partitioning = selector->partitioning;
  cleave_message_t message = {.text = ""};
  for (uint32_t k = 0; k < count; k++) {
    keep[k] = true;
  }
  if (cleave_isolate_begin(partitioning->worker, (uint32_t[]){partitioning->id, selector->id}, 2, &message) ==
      CLEAVE_OK) {
    ask_filter(partitioning, candidates, count, keep, &message);
    cleave_worker_end(partitioning->worker);
  }
}

/* ---- the definition ---- */

void cleave_isolate_fill_partitioner(cleave_isolated_partitioner_t *partitioner, uint32_t has) {
  cleave_custom_partitioner_t *own = &partitioner->definition;
  bool lacks_end = (has & CLEAVE_PARTITIONER_HAS_BEGIN) != 0 && (has & CLEAVE_PARTITIONER_HAS_END) == 0;
  own->self = partitioner;
  own->begin = begin;
  own->end = lacks_end ? NULL : end;
  own->supported = has & CLEAVE_PARTITIONER_HAS_SUPPORTED ? supported : NULL;
  own->create_selector = has & CLEAVE_PARTITIONER_HAS_CREATE ? create_selector : NULL;
  own->destroy_selector = has & CLEAVE_PARTITIONER_HAS_DESTROY ? destroy_selector : NULL;
  own->select = has & CLEAVE_PARTITIONER_HAS_SELECT ? select_node : NULL;
  own->select_input = has & CLEAVE_PARTITIONER_HAS_SELECT_INPUT ? select_input : NULL;
  own->select_output = has & CLEAVE_PARTITIONER_HAS_SELECT_OUTPUT ? select_output : NULL;
  own->filter = has & CLEAVE_PARTITIONER_HAS_FILTER ? filter : NULL;
  own->review = has & CLEAVE_PARTITIONER_HAS_REVIEW ? review : NULL;
}

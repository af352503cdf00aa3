// SPDX-License-Identifier: Apache-2.0
// A partitioner of an isolated library at work. The graph goes over once; then questions and answers are
// numbers. Answers are handed on as they are, for whoever asks checks them like those of a library in this
// process; only their number is checked here.
#include "backend/isolate/isolate_extensions.h"

#include <stdio.h>
#include <string.h>

#include "backend/isolate/isolate_internal.h"

struct cleave_isolate_turn {
  const cleave_isolated_partitioner_t *partitioner;
  cleave_worker_t *worker; /* retained */
  uint32_t id;
  uint32_t node_count;
  uint32_t *constants; /* ids that the graph keeps */
  uint32_t constant_count;
};

typedef struct selector {
  cleave_isolate_turn_t *turn;
  uint32_t id;
} selector_t;

static cleave_worker_call_t call_of(const cleave_isolate_turn_t *turn, uint32_t kind) {
  return cleave_isolate_call(turn->partitioner->isolate, kind, turn->partitioner->definition.name);
}

/* ---- the turn ---- */

static cleave_status_t ask_begin(cleave_isolate_turn_t *turn, const cleave_region_view_t *graph,
                                 const cleave_key_value_t *options, uint32_t option_count,
                                 cleave_message_t *message) {
  cleave_worker_t *worker = turn->worker;
  cleave_worker_call_t call = call_of(turn, CLEAVE_FRAME_BEGIN);
  cleave_wire_in_t reply;
  cleave_wire_put_pairs(&worker->request, options, option_count);
  CLEAVE_TRY(cleave_isolate_put_region(worker, graph, message));
  CLEAVE_TRY(cleave_worker_constants_keep(worker, &turn->constants, &turn->constant_count));
  return cleave_worker_ask(worker, &call, &reply, message);
}

static void destroy(cleave_isolate_turn_t *turn) {
  cleave_worker_release(turn->worker);
  cleave_free(turn->constants);
  cleave_free(turn);
}

cleave_status_t cleave_isolate_turn_begin(const cleave_custom_partitioner_t *partitioner,
                                          const cleave_region_view_t *graph,
                                          const cleave_key_value_t *options, uint32_t option_count,
                                          cleave_isolate_turn_t **out_turn, cleave_message_t *message) {
  const cleave_isolated_partitioner_t *own = (const void *)partitioner;
  *out_turn = NULL;
  cleave_isolate_turn_t *turn = cleave_allocate_zeroed(1, sizeof *turn);
  if (turn == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  turn->partitioner = own;
  turn->worker = cleave_isolate_worker(own->isolate);
  turn->id = cleave_isolate_next_id(own->isolate);
  turn->node_count = graph->node_count;
  cleave_status_t status =
      cleave_isolate_begin(turn->worker, (uint32_t[]){turn->id, own->number}, 2, message);
  if (status == CLEAVE_OK) {
    status = ask_begin(turn, graph, options, option_count, message);
    if (status != CLEAVE_OK) {
      cleave_worker_constants_release(turn->worker, turn->constants, turn->constant_count);
    }
    cleave_worker_end(turn->worker);
  }
  if (status != CLEAVE_OK) {
    destroy(turn);
    return status;
  }
  *out_turn = turn;
  return CLEAVE_OK;
}

void cleave_isolate_turn_end(cleave_isolate_turn_t *turn) {
  cleave_message_t message = {.text = ""};
  cleave_wire_in_t reply;
  if (turn == NULL) {
    return;
  }
  cleave_worker_call_t call = call_of(turn, CLEAVE_FRAME_END);
  if (cleave_isolate_ask(turn->worker, &call, &turn->id, 1, NULL, &reply, &message) == CLEAVE_OK) {
    cleave_worker_constants_release(turn->worker, turn->constants, turn->constant_count);
    cleave_worker_end(turn->worker);
  }
  destroy(turn);
}

bool cleave_isolate_turn_is_lost(const cleave_isolate_turn_t *turn, cleave_message_t *message) {
  bool is_lost = atomic_load(&turn->worker->is_lost);
  if (is_lost) {
    (void)snprintf(message->text, sizeof message->text, "%s", turn->worker->reason);
  }
  return is_lost;
}

cleave_status_t cleave_isolate_turn_supported(cleave_isolate_turn_t *turn, int64_t *groups,
                                              cleave_message_t *message) {
  cleave_worker_call_t call = call_of(turn, CLEAVE_FRAME_SUPPORTED);
  cleave_wire_in_t reply;
  CLEAVE_TRY(cleave_isolate_ask(turn->worker, &call, &turn->id, 1, NULL, &reply, message));
  const int64_t *found = cleave_wire_take(&reply, turn->node_count, sizeof *found, sizeof *found);
  cleave_status_t status = cleave_isolate_check_reply(turn->worker, &call, &reply, message);
  if (status == CLEAVE_OK && turn->node_count > 0) {
    memcpy(groups, found, turn->node_count * sizeof *found);
  }
  cleave_worker_end(turn->worker);
  return status;
}

/* Nodes to keep, a byte each. */
static void read_keep(cleave_wire_in_t *reply, uint32_t count, bool *keep) {
  const unsigned char *found = cleave_wire_take(reply, count, 1, 1);
  for (uint32_t k = 0; found != NULL && k < count; k++) {
    keep[k] = found[k] != 0;
  }
}

cleave_status_t cleave_isolate_turn_review(cleave_isolate_turn_t *turn, const cleave_region_view_t *region,
                                           bool *keep,
                                           void (*attach)(void *context, const char *key, const char *value),
                                           void *context, cleave_message_t *message) {
  cleave_worker_call_t call = call_of(turn, CLEAVE_FRAME_EXAMINE);
  cleave_wire_in_t reply;
  CLEAVE_TRY(cleave_isolate_ask(turn->worker, &call, &turn->id, 1, region, &reply, message));
  read_keep(&reply, region->node_count, keep);
  uint32_t count = cleave_wire_count(&reply, 2 * sizeof(uint32_t));
  for (uint32_t k = 0; k < count && !reply.failed; k++) {
    const char *key = cleave_wire_text(&reply);
    const char *value = cleave_wire_text(&reply);
    attach(context, key, value);
  }
  cleave_status_t status = cleave_isolate_check_reply(turn->worker, &call, &reply, message);
  cleave_worker_end(turn->worker);
  return status;
}

/* ---- selectors ---- */

cleave_status_t cleave_isolate_turn_select(cleave_isolate_turn_t *turn, void **out_selector,
                                           cleave_message_t *message) {
  cleave_worker_call_t call = call_of(turn, CLEAVE_FRAME_SELECTOR);
  cleave_wire_in_t reply;
  *out_selector = NULL;
  selector_t *selector = cleave_allocate_zeroed(1, sizeof *selector);
  if (selector == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  selector->turn = turn;
  selector->id = cleave_isolate_next_id(turn->partitioner->isolate);
  cleave_status_t status =
      cleave_isolate_ask(turn->worker, &call, (uint32_t[]){turn->id, selector->id}, 2, NULL, &reply, message);
  if (status != CLEAVE_OK) {
    cleave_free(selector);
    return status;
  }
  cleave_worker_end(turn->worker);
  *out_selector = selector;
  return CLEAVE_OK;
}

static void destroy_selector(void *memory) {
  selector_t *selector = memory;
  cleave_isolate_turn_t *turn = selector->turn;
  cleave_worker_call_t call = call_of(turn, CLEAVE_FRAME_LEAVE);
  cleave_message_t message = {.text = ""};
  cleave_wire_in_t reply;
  if (cleave_isolate_ask(turn->worker, &call, (uint32_t[]){turn->id, selector->id}, 2, NULL, &reply,
                         &message) == CLEAVE_OK) {
    cleave_worker_end(turn->worker);
  }
  cleave_free(selector);
}

/* A library that is lost says no; the reason is told by cleave_isolate_turn_is_lost. */
static bool ask_select(const selector_t *selector, cleave_select_question_t question, uint32_t node,
                       uint32_t other) {
  cleave_isolate_turn_t *turn = selector->turn;
  cleave_worker_call_t call = call_of(turn, CLEAVE_FRAME_SELECT);
  cleave_message_t message = {.text = ""};
  cleave_wire_in_t reply;
  if (cleave_isolate_ask(turn->worker, &call,
                         (uint32_t[]){turn->id, selector->id, (uint32_t)question, node, other}, 5, NULL,
                         &reply, &message) != CLEAVE_OK) {
    return false;
  }
  bool yes = cleave_wire_u32(&reply) != 0;
  bool is_read = cleave_isolate_check_reply(turn->worker, &call, &reply, &message) == CLEAVE_OK;
  cleave_worker_end(turn->worker);
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

static void ask_filter(cleave_isolate_turn_t *turn, const uint32_t *candidates, uint32_t count, bool *keep,
                       cleave_message_t *message) {
  cleave_worker_call_t call = call_of(turn, CLEAVE_FRAME_FILTER);
  cleave_wire_out_t *request = &turn->worker->request;
  cleave_wire_in_t reply;
  cleave_wire_put_u32(request, count);
  cleave_wire_put(request, candidates, count * sizeof *candidates, sizeof *candidates);
  if (cleave_worker_ask(turn->worker, &call, &reply, message) == CLEAVE_OK) {
    read_keep(&reply, count, keep);
    if (cleave_isolate_check_reply(turn->worker, &call, &reply, message) != CLEAVE_OK) {
      return; /* whoever asks next is told so */
    }
  }
}

static void filter(void *memory, const uint32_t *candidates, uint32_t count, bool *keep) {
  const selector_t *selector = memory;
  cleave_isolate_turn_t *turn = selector->turn;
  cleave_message_t message = {.text = ""};
  for (uint32_t k = 0; k < count; k++) {
    keep[k] = true;
  }
  if (cleave_isolate_begin(turn->worker, (uint32_t[]){turn->id, selector->id}, 2, &message) == CLEAVE_OK) {
    ask_filter(turn, candidates, count, keep, &message);
    cleave_worker_end(turn->worker);
  }
}

/* ---- the definition ---- */

/* Those that need the turn are not called. */
static cleave_status_t supported_nothing(const cleave_region_view_t *graph, const cleave_key_value_t *options,
                                         uint32_t option_count, int64_t *groups, cleave_message_t *message) {
  (void)graph;
  (void)options;
  (void)option_count;
  (void)groups;
  (void)snprintf(message->text, sizeof message->text, "an isolated library is asked otherwise");
  return CLEAVE_ERROR_INTERNAL;
}

static cleave_status_t create_nothing(const cleave_region_view_t *graph, const cleave_key_value_t *options,
                                      uint32_t option_count, void **out_selector, cleave_message_t *message) {
  *out_selector = NULL;
  return supported_nothing(graph, options, option_count, NULL, message);
}

static cleave_status_t review_nothing(const cleave_region_view_t *region, const cleave_key_value_t *options,
                                      uint32_t option_count, bool *keep,
                                      void (*attach)(void *context, const char *key, const char *value),
                                      void *context, cleave_message_t *message) {
  (void)keep;
  (void)attach;
  (void)context;
  return supported_nothing(region, options, option_count, NULL, message);
}

void cleave_isolate_fill_partitioner(cleave_isolated_partitioner_t *partitioner, uint32_t has) {
  cleave_custom_partitioner_t *own = &partitioner->definition;
  own->supported = has & CLEAVE_PARTITIONER_HAS_SUPPORTED ? supported_nothing : NULL;
  own->create_selector = has & CLEAVE_PARTITIONER_HAS_CREATE ? create_nothing : NULL;
  own->destroy_selector = has & CLEAVE_PARTITIONER_HAS_DESTROY ? destroy_selector : NULL;
  own->select = has & CLEAVE_PARTITIONER_HAS_SELECT ? select_node : NULL;
  own->select_input = has & CLEAVE_PARTITIONER_HAS_SELECT_INPUT ? select_input : NULL;
  own->select_output = has & CLEAVE_PARTITIONER_HAS_SELECT_OUTPUT ? select_output : NULL;
  own->filter = has & CLEAVE_PARTITIONER_HAS_FILTER ? filter : NULL;
  own->review = has & CLEAVE_PARTITIONER_HAS_REVIEW ? review_nothing : NULL;
}

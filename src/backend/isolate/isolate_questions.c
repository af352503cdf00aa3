// SPDX-License-Identifier: Apache-2.0
// Questions to an isolated library about regions, and its settings. Nothing that the process answers is
// believed: counts and statuses are checked, texts copied.
#include <string.h>

#include "backend/isolate/isolate_internal.h"

/* ---- about regions ---- */

/* Words for a region in messages: its name, or its first operator. */
static const char *label_of(const cleave_region_view_t *region) {
  bool has_name = region->name != NULL && region->name[0] != '\0';
  return has_name ? region->name : region->node_count > 0 ? region->nodes[0].op : "";
}

cleave_status_t cleave_isolate_supports(void *state, const cleave_region_view_t *region,
                                        cleave_message_t *reason) {
  cleave_isolate_t *isolate = state;
  cleave_worker_t *worker = cleave_isolate_worker(isolate);
  cleave_worker_call_t call = cleave_isolate_call(isolate, CLEAVE_FRAME_SUPPORTS, label_of(region));
  cleave_wire_in_t reply;
  cleave_status_t status = cleave_isolate_ask(worker, &call, NULL, 0, region, &reply, reason);
  if (status == CLEAVE_OK) {
    cleave_worker_end(worker);
  }
  cleave_worker_release(worker);
  return status;
}

cleave_status_t cleave_isolate_cost(void *state, const cleave_region_view_t *region, double *out_nanoseconds,
                                    cleave_message_t *message) {
  cleave_isolate_t *isolate = state;
  cleave_worker_t *worker = cleave_isolate_worker(isolate);
  cleave_worker_call_t call = cleave_isolate_call(isolate, CLEAVE_FRAME_COST, label_of(region));
  cleave_wire_in_t reply;
  *out_nanoseconds = 0.0;
  cleave_status_t status = cleave_isolate_ask(worker, &call, NULL, 0, region, &reply, message);
  if (status == CLEAVE_OK) {
    *out_nanoseconds = cleave_wire_f64(&reply);
    status = cleave_isolate_check_reply(worker, &call, &reply, message);
    cleave_worker_end(worker);
  }
  cleave_worker_release(worker);
  return status;
}

static cleave_status_t ask_review(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                  const cleave_region_view_t *region, bool *keep, cleave_message_t *message) {
  cleave_wire_in_t reply;
  CLEAVE_TRY(cleave_isolate_put_region(worker, region, message));
  for (uint32_t k = 0; k < region->node_count; k++) {
    unsigned char kept = keep[k];
    cleave_wire_put(&worker->request, &kept, 1, 1);
  }
  CLEAVE_TRY(cleave_worker_ask(worker, call, &reply, message));
  const unsigned char *kept = cleave_wire_take(&reply, region->node_count, 1, 1);
  CLEAVE_TRY(cleave_isolate_check_reply(worker, call, &reply, message));
  for (uint32_t k = 0; k < region->node_count; k++) {
    keep[k] = keep[k] && kept[k] != 0;
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_isolate_review(void *state, const cleave_region_view_t *region, bool *keep,
                                      cleave_message_t *message) {
  cleave_isolate_t *isolate = state;
  cleave_worker_t *worker = cleave_isolate_worker(isolate);
  cleave_worker_call_t call = cleave_isolate_call(isolate, CLEAVE_FRAME_REVIEW, label_of(region));
  cleave_status_t status = cleave_isolate_begin(worker, NULL, 0, message);
  if (status == CLEAVE_OK) {
    status = ask_review(worker, &call, region, keep, message);
    cleave_worker_end(worker);
  }
  cleave_worker_release(worker);
  return status;
}

/* ---- settings ---- */

/* Copies the pairs. CLEAVE_ERROR_FORMAT if they cannot be read. */
static cleave_status_t copy_pairs(cleave_wire_in_t *in, cleave_arena_t *arena,
                                  const cleave_key_value_t **out_pairs, uint32_t *out_count) {
  uint32_t count = cleave_wire_count(in, 2 * sizeof(uint32_t));
  cleave_key_value_t *pairs = cleave_arena_allocate(arena, count, sizeof *pairs);
  for (uint32_t k = 0; pairs != NULL && k < count && !in->failed; k++) {
    const char *key = cleave_wire_named(in);
    const char *value = cleave_wire_named(in);
    pairs[k].key = cleave_arena_copy_text(arena, key, strlen(key));
    pairs[k].value = cleave_arena_copy_text(arena, value, strlen(value));
    if (pairs[k].key == NULL || pairs[k].value == NULL) {
      return CLEAVE_ERROR_OUT_OF_MEMORY;
    }
  }
  if (in->failed || pairs == NULL) {
    return in->failed ? CLEAVE_ERROR_FORMAT : CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  *out_pairs = pairs;
  *out_count = count;
  return CLEAVE_OK;
}

cleave_status_t cleave_isolate_configure(void *state, const cleave_key_value_t *settings,
                                         uint32_t setting_count, const cleave_key_value_t **out_answers,
                                         uint32_t *out_answer_count, cleave_message_t *message) {
  cleave_isolate_t *isolate = state;
  cleave_worker_t *worker = cleave_isolate_worker(isolate);
  cleave_worker_call_t call = cleave_isolate_call(isolate, CLEAVE_FRAME_CONFIGURE, NULL);
  cleave_wire_in_t reply;
  *out_answers = NULL;
  *out_answer_count = 0;
  cleave_status_t status = cleave_isolate_begin(worker, NULL, 0, message);
  if (status == CLEAVE_OK) {
    cleave_wire_put_pairs(&worker->request, settings, setting_count);
    status = cleave_worker_ask(worker, &call, &reply, message);
    if (status == CLEAVE_OK) {
      cleave_arena_reset(&isolate->answers);
      status = copy_pairs(&reply, &isolate->answers, out_answers, out_answer_count);
      status =
          status == CLEAVE_ERROR_FORMAT ? cleave_worker_answered_nonsense(worker, &call, message) : status;
    }
    cleave_worker_end(worker);
  }
  cleave_worker_release(worker);
  return status;
}

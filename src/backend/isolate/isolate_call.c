// SPDX-License-Identifier: Apache-2.0
// Calls to the worker of an isolated library: how long each may take and what it is called comes from the
// list of messages.
#include <stdio.h>

#include "backend/isolate/isolate_internal.h"
#include "backend/region/region_wire.h"

typedef struct kind {
  size_t limit; /* offset of the option */
  const char *words;
} kind_t;

static const kind_t KINDS[CLEAVE_FRAME_COUNT] = {
#define CLEAVE_REMARK(kind)
#define CLEAVE_REQUEST(kind, function, limit, words) \
  [CLEAVE_FRAME_##kind] = {offsetof(cleave_isolation_options_t, limit), words},
#define CLEAVE_NOTICE(kind, function)
#define CLEAVE_CALLBACK(kind)
#include "backend/process/worker_messages.inc"
};

cleave_worker_call_t cleave_isolate_call(const cleave_isolate_t *isolate, uint32_t kind, const char *about) {
  const void *limit = (const char *)&isolate->options + KINDS[kind].limit;
  return (cleave_worker_call_t){.kind = kind,
                                .limit_ms = *(const uint32_t *)limit,
                                .doing = KINDS[kind].words,
                                .region = about,
                                .fd = -1};
}

uint32_t cleave_isolate_next_id(cleave_isolate_t *isolate) {
  return atomic_fetch_add(&isolate->last_id, 1) + 1;
}

cleave_status_t cleave_isolate_put_region(cleave_worker_t *worker, const cleave_region_view_t *region,
                                          cleave_message_t *message) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t status =
      cleave_region_write(region, cleave_worker_constants_share, worker, &worker->request, &error);
  if (status != CLEAVE_OK) {
    (void)snprintf(message->text, sizeof message->text, "%.*s", (int)sizeof message->text - 1, error.message);
  }
  return status;
}

cleave_status_t cleave_isolate_begin(cleave_worker_t *worker, const uint32_t *numbers, uint32_t count,
                                     cleave_message_t *message) {
  CLEAVE_TRY(cleave_worker_begin(worker, message));
  cleave_worker_constants_begin(worker);
  for (uint32_t k = 0; k < count; k++) {
    cleave_wire_put_u32(&worker->request, numbers[k]);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_isolate_ask(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                   const uint32_t *numbers, uint32_t count,
                                   const cleave_region_view_t *region, cleave_wire_in_t *out_reply,
                                   cleave_message_t *message) {
  CLEAVE_TRY(cleave_isolate_begin(worker, numbers, count, message));
  cleave_status_t status = region == NULL ? CLEAVE_OK : cleave_isolate_put_region(worker, region, message);
  CLEAVE_THEN(status, cleave_worker_ask(worker, call, out_reply, message));
  if (status != CLEAVE_OK) {
    cleave_worker_end(worker);
  }
  return status;
}

cleave_status_t cleave_isolate_check_reply(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                           const cleave_wire_in_t *reply, cleave_message_t *message) {
  return reply->failed ? cleave_worker_answered_nonsense(worker, call, message) : CLEAVE_OK;
}

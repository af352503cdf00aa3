// SPDX-License-Identifier: Apache-2.0
// Requests through the stages. Of request r a stage receives what it needs while it computes request r - 1,
// and sends what it made while it computes request r + 1; process 0 has `concurrency` requests under way.
#include <string.h>

#include "distributed/stage.h"
#include "system/clock.h"

/* Begins the transfers of a slot. */
static cleave_status_t start_all(const cleave_stage_t *stage, cleave_stage_links_t *links, size_t slot,
                                 cleave_error_t *error) {
  for (size_t k = 0; k < links->list.count; k++) {
    cleave_stage_link_t *link = &links->list.items[k];
    for (uint32_t t = 0; t < link->target_count; t++) {
      const cleave_transfer_t transfer = {.size = sizeof transfer,
                                          .kind = link->kind,
                                          .dtype = CLEAVE_DTYPE_U8,
                                          .data = link->slots[slot],
                                          .count = (int64_t)link->bytes,
                                          .peer = link->targets[t].peer,
                                          .tag = link->targets[t].tag};
      CLEAVE_TRY(cleave_communicator_start(stage->communicator, &transfer,
                                           &link->numbers[slot * link->target_count + t], error));
      link->is_going[slot] = true;
    }
  }
  return CLEAVE_OK;
}

/* Waits for the transfers of a slot, if there are any. *out_end_ns (may be NULL): when the last one ended. */
static cleave_status_t finish_all(cleave_stage_t *stage, cleave_stage_links_t *links, size_t slot,
                                  uint64_t *out_end_ns, cleave_error_t *error) {
  uint64_t start = cleave_clock_now();
  for (size_t k = 0; k < links->list.count; k++) {
    cleave_stage_link_t *link = &links->list.items[k];
    for (uint32_t t = 0; t < link->target_count && link->is_going[slot]; t++) {
      cleave_transfer_times_t times = {0};
      CLEAVE_TRY(cleave_communicator_wait(stage->communicator, link->numbers[slot * link->target_count + t],
                                          &times, error));
      if (out_end_ns != NULL && times.end_ns > *out_end_ns) {
        *out_end_ns = times.end_ns;
      }
    }
    link->is_going[slot] = false;
  }
  stage->waited_ms += cleave_clock_ms(start, cleave_clock_now());
  return CLEAVE_OK;
}

static cleave_status_t compute(cleave_stage_t *stage, cleave_session_t *session, int64_t request,
                               cleave_error_t *error) {
  for (size_t k = 0; k < stage->receives.list.count; k++) {
    cleave_stage_link_t *link = &stage->receives.list.items[k];
    link->view.data = link->slots[(size_t)request % link->slot_count];
    CLEAVE_TRY(cleave_session_set_input(session, link->port, &link->view, error));
  }
  for (size_t k = 0; k < stage->sends.list.count; k++) {
    cleave_stage_link_t *link = &stage->sends.list.items[k];
    link->view.data = link->slots[(size_t)request % link->slot_count];
    CLEAVE_TRY(cleave_session_set_output(session, link->port, &link->view, CLEAVE_REQUEST_WRITE, error));
  }
  uint64_t start = cleave_clock_now();
  CLEAVE_TRY(cleave_session_run(session, error));
  stage->compute_ms += cleave_clock_ms(start, cleave_clock_now());
  return CLEAVE_OK;
}

/* Requests of process 0 that are under way. */
typedef struct under_way {
  uint64_t *begin_ns; /* by slot of the results */
  uint64_t *end_ns;   /* of its own part */
  int64_t finished;   /* requests */
} under_way_t;

/* Waits until the next request has its outputs. */
static cleave_status_t finish_request(cleave_stage_t *stage, const cleave_stage_load_t *load,
                                      under_way_t *under_way, cleave_error_t *error) {
  size_t slot = (size_t)(under_way->finished % load->concurrency);
  CLEAVE_TRY(finish_all(stage, &stage->results, slot, &under_way->end_ns[slot], error));
  if (load->times != NULL) {
    load->times[under_way->finished] = cleave_clock_ms(under_way->begin_ns[slot], under_way->end_ns[slot]);
  }
  under_way->finished++;
  return CLEAVE_OK;
}

static cleave_status_t begin_request(cleave_stage_t *stage, const cleave_stage_load_t *load, int64_t request,
                                     under_way_t *under_way, cleave_error_t *error) {
  size_t slot = (size_t)(request % load->concurrency);
  if (request >= load->concurrency) {
    CLEAVE_TRY(finish_request(stage, load, under_way, error));
  }
  under_way->begin_ns[slot] = cleave_clock_now();
  return start_all(stage, &stage->results, slot, error);
}

static cleave_status_t run_requests(cleave_stage_t *stage, cleave_session_t *session,
                                    const cleave_stage_load_t *load, under_way_t *under_way,
                                    cleave_error_t *error) {
  bool is_first = stage->communicator->rank == 0;
  CLEAVE_TRY(load->count > 0 ? start_all(stage, &stage->receives, 0, error) : CLEAVE_OK);
  for (int64_t r = 0; r < load->count; r++) {
    CLEAVE_TRY(is_first ? begin_request(stage, load, r, under_way, error) : CLEAVE_OK);
    CLEAVE_TRY(finish_all(stage, &stage->receives, (size_t)(r % 2), NULL, error));
    CLEAVE_TRY(r + 1 < load->count ? start_all(stage, &stage->receives, (size_t)((r + 1) % 2), error)
                                   : CLEAVE_OK);
    CLEAVE_TRY(finish_all(stage, &stage->sends, (size_t)(r % 2), NULL, error));
    CLEAVE_TRY(compute(stage, session, r, error));
    CLEAVE_TRY(start_all(stage, &stage->sends, (size_t)(r % 2), error));
    if (is_first) {
      under_way->end_ns[r % load->concurrency] = cleave_clock_now();
    }
  }
  while (is_first && under_way->finished < load->count) {
    CLEAVE_TRY(finish_request(stage, load, under_way, error));
  }
  CLEAVE_TRY(finish_all(stage, &stage->sends, 0, NULL, error));
  return finish_all(stage, &stage->sends, 1, NULL, error);
}

/* Shows where the outputs of the last request are. */
static cleave_status_t show_outputs(cleave_stage_t *stage, const cleave_session_t *session, size_t slot,
                                    cleave_error_t *error) {
  for (uint32_t k = 0; k < stage->output_count; k++) {
    if (stage->own_outputs[k] != CLEAVE_INDEX_NONE) {
      CLEAVE_TRY(cleave_session_output(session, stage->own_outputs[k], &stage->outputs[k], error));
    }
  }
  for (size_t k = 0; k < stage->results.list.count; k++) {
    const cleave_stage_link_t *link = &stage->results.list.items[k];
    stage->outputs[link->port] = link->view;
    stage->outputs[link->port].data = link->slots[slot];
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_stage_run(cleave_stage_t *stage, cleave_session_t *session, cleave_stage_load_t *load,
                                 cleave_error_t *error) {
  int64_t numbers[] = {load->count, load->concurrency};
  under_way_t under_way = {0};
  CLEAVE_TRY(cleave_communicator_broadcast(stage->communicator, 0, numbers, sizeof numbers, error));
  load->count = numbers[0];
  load->concurrency = numbers[1];
  under_way.begin_ns = cleave_allocate_zeroed((size_t)load->concurrency, sizeof *under_way.begin_ns);
  under_way.end_ns = cleave_allocate_zeroed((size_t)load->concurrency, sizeof *under_way.end_ns);
  stage->compute_ms = 0.0;
  stage->waited_ms = 0.0;
  uint64_t start = cleave_clock_now();
  cleave_status_t status = under_way.begin_ns == NULL || under_way.end_ns == NULL
                               ? cleave_error_out_of_memory(error)
                               : run_requests(stage, session, load, &under_way, error);
  load->seconds = cleave_clock_ms(start, cleave_clock_now()) * 1e-3;
  cleave_free(under_way.begin_ns);
  cleave_free(under_way.end_ns);
  return status == CLEAVE_OK && load->count > 0
             ? show_outputs(stage, session, (size_t)((load->count - 1) % load->concurrency), error)
             : status;
}

// SPDX-License-Identifier: Apache-2.0
/* Watching rule files behind the embedding API (cleave_rules_watch_* in cleave/cleave.h). */
#ifndef CLEAVE_TOOLS_WATCH_WATCH_H
#define CLEAVE_TOOLS_WATCH_WATCH_H

#include "runtime/session/session.h"
#include "tools/verify/paired.h"

/* cleave_rules_watch_create if some settings have served elsewhere (`known`, as in
 * cleave_rule_list_options_t; may be NULL). */
CLEAVE_STATUS cleave_rules_watch_create_known(cleave_model_t *model,
                                              const cleave_partition_request_t *request, const bool *known,
                                              const cleave_rules_watch_options_t *options,
                                              cleave_rules_watch_t **out_watch, cleave_error_t *error);

/* watch_measure.c: runs two sessions on the inputs that they are set to, and says how their outputs differ
 * and how long they take. */
typedef struct cleave_watch_measure {
  cleave_session_t *before;
  cleave_session_t *after;
  const cleave_graph_t *graph; /* whose outputs have names */
  uint64_t deadline_ns;        /* until which they run alternately, at least once each */
  cleave_paired_t *paired;     /* the times of warm runs: more can be added later */
} cleave_watch_measure_t;

/* Fills in what a reload says about outputs and times. CLEAVE_OK also if outputs differ. */
CLEAVE_STATUS cleave_watch_measure(const cleave_watch_measure_t *measure, cleave_reload_t *reload,
                                   cleave_error_t *error);

/* Adds times to a reload. A plan that decides as before has no change. */
void cleave_watch_note_times(const cleave_paired_t *paired, cleave_reload_t *reload);

#endif /* CLEAVE_TOOLS_WATCH_WATCH_H */

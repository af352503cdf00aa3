// SPDX-License-Identifier: Apache-2.0
/* Times of a profiling session: a Chrome trace (chrome://tracing, Perfetto), and sums per thing. */
#ifndef CLEAVE_TOOLS_PROFILE_PROFILE_H
#define CLEAVE_TOOLS_PROFILE_PROFILE_H

#include "base/containers/array.h"
#include "runtime/session/session.h"

/* One line of the summary: a fusion, or an operator outside of fusions, with all places it occurs in. */
typedef struct cleave_profile_line {
  const char *label;  /* "conv_bn_act" (fusion), "Softmax" (operator), "reorder nchw" (a backend's own step),
                         "copy to mirror:0" */
  const char *region; /* name of the region, or "" for nodes outside of regions */
  const char *backend;
  uint32_t count;  /* steps in one run */
  size_t bytes;    /* of copies, in one run */
  double total_ms; /* mean of the recorded runs */
} cleave_profile_line_t;

/* Sums over recorded runs. All zero is empty. */
typedef struct cleave_profile {
  cleave_arena_t arena;
  CLEAVE_ARRAY(cleave_profile_line_t) lines;   /* per label and backend */
  CLEAVE_ARRAY(cleave_profile_line_t) regions; /* per region; one line for the nodes outside of them */
  uint32_t run_count;
} cleave_profile_t;

/* Adds the times of the session's last run; the session must profile. `plan` NULL: no rules. */
CLEAVE_STATUS cleave_profile_add(cleave_profile_t *profile, const cleave_session_t *session,
                                 const cleave_plan_t *plan, cleave_error_t *error);
/* Divides by the number of runs and sorts by time, longest first. Call once, before reading. */
void cleave_profile_finish(cleave_profile_t *profile);
void cleave_profile_deinit(cleave_profile_t *profile);

/* Writes the last run as a Chrome trace: one event per region or node on the first line, what the backend
 * did inside on the second. */
CLEAVE_STATUS cleave_profile_write_trace(const char *path, const cleave_session_t *session,
                                         const cleave_plan_t *plan, cleave_error_t *error);

#endif /* CLEAVE_TOOLS_PROFILE_PROFILE_H */

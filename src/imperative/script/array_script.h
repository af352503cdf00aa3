// SPDX-License-Identifier: Apache-2.0
/*
 * Scripts that compute with arrays: `local y = nd.Conv(x, w, { pads = { 1, 1, 1, 1 } })`. They are programs
 * of whoever runs them, not rule files: they have all of Lua's libraries, files and other programs included,
 * and no limit of time; Lua's own values may take 256 MiB, arrays what there is.
 */
#ifndef CLEAVE_IMPERATIVE_SCRIPT_ARRAY_SCRIPT_H
#define CLEAVE_IMPERATIVE_SCRIPT_ARRAY_SCRIPT_H

#include "base/status.h"
#include "cleave/array.h"

typedef struct cleave_array_script {
  cleave_context_t *context;
  const char *path;
  const char *const *arguments; /* the script's `arg` */
  size_t argument_count;
  const cleave_imperative_options_t *options;
  const cleave_rule_source_t *rules; /* that partition compiled functions */
  size_t rule_count;
} cleave_array_script_t;

/* Runs the script to its end, and waits for its arrays. An error is one line with file and line. */
CLEAVE_MUST_USE cleave_status_t cleave_array_script_run(const cleave_array_script_t *request,
                                                        cleave_error_t *error);

#endif /* CLEAVE_IMPERATIVE_SCRIPT_ARRAY_SCRIPT_H */

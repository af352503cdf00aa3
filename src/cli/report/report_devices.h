// SPDX-License-Identifier: Apache-2.0
/* What `run` prints about devices with memory of their own: what lies there, and what a run copies. */
#ifndef CLEAVE_CLI_REPORT_REPORT_DEVICES_H
#define CLEAVE_CLI_REPORT_REPORT_DEVICES_H

#include <jansson.h>

#include "runtime/session/session.h"

/* A line per device; nothing if there is none. */
void cleave_report_devices(const cleave_session_t *session);

/* An array of objects with "name", "values", "unshared", "workspace", "constants", "dynamic", "copied_to" and
 * "copied_from", in bytes. */
json_t *cleave_report_devices_json(const cleave_session_t *session);

#endif /* CLEAVE_CLI_REPORT_REPORT_DEVICES_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for the log of whoever embeds cleave (cleave_set_log in cleave/cleave.h); dropped where nobody
 * listens. */
#ifndef CLEAVE_BASE_LOG_H
#define CLEAVE_BASE_LOG_H

#include "base/status.h"

/* One line without its end. Thread-safe; allocates nothing. */
void cleave_log(cleave_log_level_t level, const char *format, ...) CLEAVE_PRINTF(2, 3);

#endif /* CLEAVE_BASE_LOG_H */

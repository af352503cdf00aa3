// SPDX-License-Identifier: Apache-2.0
/* What the two files of the exp_log library share. */
#ifndef EXP_LOG_H
#define EXP_LOG_H

#include "cleave/backend.h"

/* Can the library run this node? CLEAVE_ERROR_UNSUPPORTED, and why not. */
cleave_status_t exp_log_supports_node(const cleave_region_view_t *view, const cleave_node_view_t *node,
                                      cleave_message_t *reason);

extern const cleave_backend_extensions_t exp_log_extensions;

#endif /* EXP_LOG_H */

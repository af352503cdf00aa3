// SPDX-License-Identifier: Apache-2.0
/* Functions that the program needs beside those of cleave/server.h. */
#ifndef CLEAVE_RUNTIME_SERVE_SERVER_H
#define CLEAVE_RUNTIME_SERVE_SERVER_H

#include "cleave/server.h"
#include "runtime/serve/forms.h"

/* cleave_server_create, also for settings that serve the model script and no rule file (source->known). */
CLEAVE_STATUS cleave_server_create_from(const cleave_form_source_t *source,
                                        const cleave_server_options_t *options, cleave_server_t **out_server,
                                        cleave_error_t *error);

#endif /* CLEAVE_RUNTIME_SERVE_SERVER_H */

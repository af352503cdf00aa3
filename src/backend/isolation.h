/* SPDX-License-Identifier: Apache-2.0 */
/* Names of libraries that are to be isolated when they are loaded (cleave_backend_isolate). Thread-safe. */
#ifndef CLEAVE_BACKEND_ISOLATION_H
#define CLEAVE_BACKEND_ISOLATION_H

#include "base/status.h"

/* Is this library to be isolated? `name` NULL: is any? *out_options as they were given. */
bool cleave_isolation_find(const char *name, cleave_isolation_options_t *out_options);

#endif /* CLEAVE_BACKEND_ISOLATION_H */

// SPDX-License-Identifier: Apache-2.0
/*
 * Options that commands share: libraries and their settings, which every command has; and for commands
 * that make sessions, options of backends and the folder of compiled regions.
 */
#ifndef CLEAVE_CLI_COMMON_COMMON_H
#define CLEAVE_CLI_COMMON_COMMON_H

#include "cleave/cleave.h"
#include "cli/common/arguments.h"

/* The table; at its end those of sessions, and --device for such commands that have an option --backend. */
const cleave_option_t *cleave_common_options(const cleave_arguments_t *arguments, size_t *out_count);

/* The context of all models, rule files and backends of the command, once cleave_common_apply was called;
 * NULL before. */
cleave_context_t *cleave_common_context(void);
/* Whether that context has a backend of this name. */
bool cleave_common_has_backend(const char *name);

/* Does what the common options say, once a command line is parsed: loads, then configures; --device also sets
 * the command's --backend. The exit status; an error is printed. */
int cleave_common_apply(const cleave_arguments_t *arguments);
/* Sets whether information that --log leaves out is shown as progress on a terminal from here on. */
void cleave_common_progress(bool shows);
/* From here on --script-time counts, as it did from cleave_common_apply. */
void cleave_common_start_script_time(void);
void cleave_common_free(void);

/* Session options as the command line has them; whoever makes a session fills in the rest. Valid until
 * cleave_common_free. */
cleave_session_options_t cleave_common_session(void);

/* --lenient and --keep-dead, for whoever opens a model. */
bool cleave_common_lenient(void);
bool cleave_common_keep_dead(void);

/* --fix, for whoever opens a model. */
const cleave_fixed_input_t *cleave_common_fixed(size_t *out_count);
/* Fixes an input that --fix does not name, if the model has it. Once, for a name and a value that stay. */
void cleave_common_fix_usually(const char *name, const char *value);

/* --fallback. */
bool cleave_common_fallback(void);

#endif /* CLEAVE_CLI_COMMON_COMMON_H */

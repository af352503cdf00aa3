// SPDX-License-Identifier: Apache-2.0
/* Programs that compute with arrays, as commands run them: a file, or a prompt. */
#ifndef CLEAVE_CLI_COMMON_ARRAYS_H
#define CLEAVE_CLI_COMMON_ARRAYS_H

#include "cli/common/arguments.h"

typedef struct cleave_arrays_options {
  cleave_text_list_t rules; /* partition functions of nd.hybrid */
  const char *backend;      /* or NULL */
  int64_t threads;
  bool is_serial;
} cleave_arrays_options_t;

/* Rows of tables of options, but for the rule files. */
#define CLEAVE_ARRAYS_OPTIONS(arrays)                                      \
  CLEAVE_TEXT(&(arrays)->backend, "backend", "NAME",                       \
              "computes what it supports, and cpu the rest; default cpu"), \
      {"threads",                                                          \
       't',                                                                \
       CLEAVE_OPTION_INT,                                                  \
       "N",                                                                \
       "threads of an operator; default: one for each processor",          \
       &(arrays)->threads},                                                \
      CLEAVE_FLAG(&(arrays)->is_serial, "serial", "run each operator before the program goes on")

/* Runs the file that the first argument names, with the others as its `arg`; without arguments, a prompt. */
CLEAVE_STATUS cleave_arrays_run(const cleave_arrays_options_t *options, const cleave_text_list_t *arguments,
                                cleave_error_t *error);

#endif /* CLEAVE_CLI_COMMON_ARRAYS_H */

// SPDX-License-Identifier: Apache-2.0
// cleave script: a Lua program that computes with arrays.
#include "cli/common/arrays.h"
#include "cli/common/command.h"
#include "cli/common/output.h"

static int run(cleave_arguments_t *arguments) {
  cleave_arrays_options_t arrays = {0};
  const cleave_option_t options[] = {
      {"rules", 'r', CLEAVE_OPTION_LIST, "FILE",
       "rule file that partitions functions of nd.hybrid; may be given again", &arrays.rules},
      CLEAVE_ARRAYS_OPTIONS(&arrays),
  };
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status) &&
      cleave_arrays_run(&arrays, &arguments->found, &error) != CLEAVE_OK) {
    status = cleave_output_error(&error);
  }
  return status;
}

CLEAVE_COMMAND_DEFINE(
    script, 85, "FILE.lua [ARGUMENT]...", run, "run a Lua program that computes with arrays",
    "Runs a Lua program that computes with arrays: nd.Conv, nd.Add and all other operators as functions,\n"
    "nd.array and nd.load for arrays, nd.hybrid for functions that are compiled by rules. Operators run\n"
    "beside the program until it looks at a result. The same at a prompt is 'cleave repl' without a model.\n"
    "The program is trusted, unlike rule files: it may read and write files and start other programs.",
    .min_operands = 1, .max_operands = SIZE_MAX, .makes_sessions = true, .may_exit = true)

// SPDX-License-Identifier: Apache-2.0
// cleave script: a Lua program that computes with arrays, or a prompt for one.
#include "cli/common/arguments.h"
#include "cli/common/command.h"
#include "cli/common/common.h"
#include "cli/common/load.h"
#include "cli/common/output.h"
#include "cli/common/repl_input.h"
#include "imperative/script/array_script.h"

// ---- the prompt ----

static bool run_chunk(void *context, const char *chunk, size_t length) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  bool incomplete = false;
  cleave_status_t status = cleave_array_prompt_run(context, chunk, length, &incomplete, &error);
  (void)fflush(stdout);
  if (status != CLEAVE_OK) {
    cleave_print_error("%s\n", error.message);
  }
  return incomplete;
}

static void interrupt(void *context) {
  cleave_array_prompt_interrupt(context);
}

static cleave_status_t complete(void *context, const char *line, size_t length, size_t *out_start,
                                cleave_text_t *words, cleave_error_t *error) {
  return cleave_array_prompt_complete(context, line, length, out_start, words, error);
}

static cleave_status_t run_prompt(const cleave_array_script_t *request, cleave_error_t *error) {
  cleave_array_prompt_t *prompt = NULL;
  CLEAVE_TRY(cleave_array_prompt_create(request, &prompt, error));
  const cleave_repl_target_t target = {
      .context = prompt, .run = run_chunk, .interrupt = interrupt, .complete = complete};
  if (cleave_repl_input_is_terminal()) {
    cleave_print("arrays are in nd, as in nd.Relu(nd.array { -1, 2 }); Ctrl-D ends\n");
  }
  cleave_status_t status = cleave_repl_input_run(&target, error);
  cleave_array_prompt_destroy(prompt);
  return status;
}

// ---- the command ----

static cleave_status_t run_script(const cleave_arguments_t *arguments, const cleave_text_list_t *rules,
                                  const char *backend, int64_t threads, bool is_serial,
                                  cleave_error_t *error) {
  const cleave_session_options_t session = cleave_common_session();
  const cleave_imperative_options_t options = {
      .size = sizeof options,
      .backend = backend,
      .threads = (int32_t)(threads < INT32_MAX ? threads : INT32_MAX),
      .is_serial = is_serial,
      .backend_options = session.backend_options,
      .backend_option_count = session.backend_option_count};
  cleave_partition_request_t partition;
  CLEAVE_TRY(cleave_rule_request(rules, NULL, &partition, error));
  bool is_prompt = arguments->found.count == 0;
  const cleave_array_script_t request = {.context = cleave_common_context(),
                                         .path = is_prompt ? "prompt" : arguments->found.items[0],
                                         .arguments = is_prompt ? NULL : arguments->found.items + 1,
                                         .argument_count = is_prompt ? 0 : arguments->found.count - 1,
                                         .options = &options,
                                         .rules = partition.sources,
                                         .rule_count = partition.source_count};
  cleave_status_t status = is_prompt ? run_prompt(&request, error) : cleave_array_script_run(&request, error);
  cleave_rule_request_deinit(&partition);
  return status;
}

static int run(cleave_arguments_t *arguments) {
  const char *backend = NULL;
  cleave_text_list_t rules = {0};
  int64_t threads = 0;
  bool is_serial = false;
  const cleave_option_t options[] = {
      CLEAVE_TEXT(&backend, "backend", "NAME", "computes what it supports, and cpu the rest; default cpu"),
      {"rules", 'r', CLEAVE_OPTION_LIST, "FILE",
       "rule file that partitions functions of nd.hybrid; may be given again", &rules},
      {"threads", 't', CLEAVE_OPTION_INT, "N", "threads of an operator; default: one for each processor",
       &threads},
      CLEAVE_FLAG(&is_serial, "serial", "run each operator before the script goes on"),
  };
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status) &&
      run_script(arguments, &rules, backend, threads, is_serial, &error) != CLEAVE_OK) {
    status = cleave_output_error(&error);
  }
  return status;
}

CLEAVE_COMMAND_DEFINE(
    script, 85, "[FILE.lua [ARGUMENT]...]", run, "run a Lua program that computes with arrays",
    "Runs a Lua program that computes with arrays: nd.Conv, nd.Add and all other operators as functions,\n"
    "nd.array and nd.load for arrays, nd.hybrid for functions that are compiled by rules. Operators run\n"
    "beside the program until it looks at a result. Without a file, lines come from a prompt, or from a "
    "pipe.\n"
    "The program is trusted, unlike rule files: it may read and write files and start other programs.",
    .max_operands = SIZE_MAX, .makes_sessions = true)

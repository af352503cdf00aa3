// SPDX-License-Identifier: Apache-2.0
#include "cli/common/arrays.h"

#include "cli/common/common.h"
#include "cli/common/load.h"
#include "cli/common/output.h"
#include "cli/common/repl_input.h"
#include "imperative/script/array_script.h"

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

cleave_status_t cleave_arrays_run(const cleave_arrays_options_t *options, const cleave_text_list_t *arguments,
                                  cleave_error_t *error) {
  const cleave_session_options_t session = cleave_common_session();
  const cleave_imperative_options_t imperative = {
      .size = sizeof imperative,
      .backend = options->backend,
      .threads = (int32_t)(options->threads < INT32_MAX ? options->threads : INT32_MAX),
      .is_serial = options->is_serial,
      .backend_options = session.backend_options,
      .backend_option_count = session.backend_option_count};
  cleave_partition_request_t partition;
  CLEAVE_TRY(cleave_rule_request(&options->rules, NULL, &partition, error));
  bool is_prompt = arguments->count == 0;
  const cleave_array_script_t request = {.context = cleave_common_context(),
                                         .path = is_prompt ? "prompt" : arguments->items[0],
                                         .arguments = is_prompt ? NULL : arguments->items + 1,
                                         .argument_count = is_prompt ? 0 : arguments->count - 1,
                                         .options = &imperative,
                                         .rules = partition.sources,
                                         .rule_count = partition.source_count};
  cleave_status_t status = is_prompt ? run_prompt(&request, error) : cleave_array_script_run(&request, error);
  cleave_rule_request_deinit(&partition);
  return status;
}

// SPDX-License-Identifier: Apache-2.0
// cleave generate: tokens from a model that gives scores of the next one.
#include "cli/common/command.h"
#include "cli/common/common.h"
#include "cli/common/output.h"
#include "cli/generate/report.h"

/* Without --rules (the last if there is this backend) and --state. Names of states are those that exporters
 * write. */
static const char *const default_rules[] = {"canonical", "generation", "onednn"};
static const char *const default_states[] = {"past_key_values.*=present.*", "past*=present*"};

static int check(const cleave_generation_t *generation) {
  if (generation->prompt == NULL) {
    return cleave_arguments_fail("generate", "expected --prompt TOKENS");
  }
  return generation->steps >= 1 ? CLEAVE_EXIT_OK
                                : cleave_arguments_fail("generate", "option '--steps': expected at least 1");
}

/* Long: one table of options. */
static int run_command(cleave_arguments_t *arguments) {
  cleave_generation_t generation = {.steps = 128, .stop = -1};
  cleave_job_options_t *job_options = &generation.job_options;
  cleave_text_list_t rules = {0};
  cleave_text_list_t states = {0};
  int64_t seed = 0;
  bool json = false;
  const cleave_option_t options[] = {
      CLEAVE_TEXT(&generation.prompt, "prompt", "TOKENS",
                  "numbers of the tokens to begin with, with commas between them, or a file with them (.npy, "
                  ".pb; int64 or int32)"),
      CLEAVE_INT(&generation.steps, "steps", "N", "tokens to generate (default: 128)"),
      CLEAVE_INT(&generation.stop, "stop", "TOKEN", "end early, behind this token"),
      CLEAVE_NUMBER(
          &generation.sampler.temperature, "temperature", "T",
          "draw tokens by their scores divided by this (default: 0, the token with the largest score)"),
      CLEAVE_INT(&seed, "seed", "S", "seed of what is drawn (default: 0)"),
      CLEAVE_INT(&generation.capacity, "capacity", "N",
                 "tokens that caches have room for (default: those of the prompt and of --steps)"),
      CLEAVE_LIST(&states, "state", "INPUT=OUTPUT",
                  CLEAVE_STATES_HELP
                  " (default: past_key_values.*=present.* and past*=present*, if there are such)"),
      CLEAVE_TEXT(
          &generation.mask, "mask", "INPUT",
          "the input that says which tokens are there, integers [batch, past and new tokens] (default: "
          "attention_mask, if there is one)"),
      CLEAVE_TEXT(
          &generation.positions, "positions", "INPUT",
          "the input of the tokens' positions, integers [batch, new tokens] (default: position_ids, if "
          "there is one)"),
      CLEAVE_LIST(&rules, "rules", "FILE",
                  "rule file to partition with; may be given many times, they run in order (default: "
                  "canonical, generation, and onednn if cleave was built with it)"),
      CLEAVE_JOB_BACKEND(job_options),
      CLEAVE_LIST(&job_options->settings, "set", "NAME=VALUE",
                  "option of a rule file or of the model script"),
      CLEAVE_INT(&job_options->threads, "threads", "N",
                 "threads to use (default: 0, one per usable processor)"),
      CLEAVE_TEXT(&generation.scores_path, "scores", "FILE",
                  "file for the scores that tokens were drawn from, a row each (.npy, .pb)"),
      CLEAVE_TEXT(&generation.profile_path, "profile", "FILE",
                  "write a Chrome trace of the last token, and print time per region and fusion"),
      CLEAVE_FLAG(&json, "json", "print everything as JSON"),
  };
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    job_options->model = arguments->found.items[0];
    job_options->fallback = cleave_common_fallback();
    size_t default_count = cleave_common_has_backend("onednn") ? 3 : 2;
    job_options->rules =
        rules.count > 0 ? rules : (cleave_text_list_t){(const char **)default_rules, default_count};
    generation.has_states = states.count > 0;
    generation.states = states.count > 0 ? states : (cleave_text_list_t){(const char **)default_states, 2};
    generation.sampler.state = (uint64_t)seed;
    status = check(&generation);
    if (status == CLEAVE_EXIT_OK && cleave_generation_run(&generation, &error) != CLEAVE_OK) {
      status = cleave_output_error(&error);
    } else if (status == CLEAVE_EXIT_OK && json) {
      status = cleave_generation_print_json(&generation);
    } else if (status == CLEAVE_EXIT_OK) {
      cleave_generation_print(&generation);
    }
  }
  cleave_generation_deinit(&generation);
  return status;
}

CLEAVE_COMMAND_DEFINE(
    generate, 12, "MODEL", run_command, "generate tokens with a model, one by one",
    "Generates token by token. The model reads tokens [batch, length] and gives scores of the next one;\n"
    "states, such as keys and values of attention, go from each run to the next without a copy. A cache\n"
    "that grows is given a fixed capacity by rules/generation.lua, so that nothing is compiled per length.",
    .makes_sessions = true, .min_operands = 1)

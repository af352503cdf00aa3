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
static int run_command(int argc, char **argv) {
  cleave_generation_t generation = {.steps = 128, .stop = -1};
  cleave_job_options_t *job_options = &generation.job_options;
  cleave_text_list_t rules = {0};
  cleave_text_list_t states = {0};
  int64_t seed = 0;
  bool json = false;
  const cleave_option_t options[] = {
      {"prompt", 0, CLEAVE_OPTION_TEXT, "TOKENS",
       "numbers of the tokens to begin with, with commas between them, or a file with them (.npy, .pb; int64 "
       "or "
       "int32)",
       &generation.prompt},
      {"steps", 0, CLEAVE_OPTION_INT, "N", "tokens to generate (default: 128)", &generation.steps},
      {"stop", 0, CLEAVE_OPTION_INT, "TOKEN", "end early, behind this token", &generation.stop},
      {"temperature", 0, CLEAVE_OPTION_NUMBER, "T",
       "draw tokens by their scores divided by this (default: 0, the token with the largest score)",
       &generation.sampler.temperature},
      {"seed", 0, CLEAVE_OPTION_INT, "S", "seed of what is drawn (default: 0)", &seed},
      {"capacity", 0, CLEAVE_OPTION_INT, "N",
       "tokens that caches have room for (default: those of the prompt and of --steps)",
       &generation.capacity},
      {"state", 0, CLEAVE_OPTION_LIST, "INPUT=OUTPUT",
       CLEAVE_STATES_HELP " (default: past_key_values.*=present.* and past*=present*, if there are such)",
       &states},
      {"rules", 0, CLEAVE_OPTION_LIST, "FILE",
       "rule file to partition with; may be given many times, they run in order (default: canonical, "
       "generation, and onednn if cleave was built with it)",
       &rules},
      {"set", 0, CLEAVE_OPTION_LIST, "NAME=VALUE", "option of a rule file or of the model script",
       &job_options->settings},
      {"threads", 0, CLEAVE_OPTION_INT, "N", "threads to use (default: 0, one per usable processor)",
       &job_options->threads},
      {"scores", 0, CLEAVE_OPTION_TEXT, "FILE",
       "file for the scores that tokens were drawn from, a row each (.npy, .pb)", &generation.scores_path},
      {"profile", 0, CLEAVE_OPTION_TEXT, "FILE",
       "write a Chrome trace of the last token, and print time per region and fusion",
       &generation.profile_path},
      {"json", 0, CLEAVE_OPTION_FLAG, NULL, "print everything as JSON", &json},
  };
  cleave_arguments_t arguments = {
      .command = "generate",
      .operands = "MODEL",
      .about =
          "Generates token by token. The model reads tokens [batch, length] and gives scores of the next "
          "one;\n"
          "states, such as keys and values of attention, go from each run to the next without a copy. A "
          "cache\n"
          "that grows is given a fixed capacity by rules/generation.lua, so that nothing is compiled per "
          "length.",
      CLEAVE_OPTIONS(options),
      .makes_sessions = true,
      .min_operands = 1};
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (cleave_arguments_parse(&arguments, argc, argv, &status)) {
    job_options->model = arguments.found.items[0];
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
  cleave_arguments_free(&arguments);
  return status;
}

const cleave_command_t cleave_command_generate = {.name = "generate",
                                                  .summary = "generate tokens with a model, one by one",
                                                  .order = 12,
                                                  .run = run_command};

// SPDX-License-Identifier: Apache-2.0
// Tokens and times.
#include "cli/generate/report.h"

#include "cli/common/output.h"
#include "cli/report/report.h"
#include "runtime/model/model.h"
#include "system/threads.h"

/* The times of the tokens after the first. */
typedef struct steps {
  size_t count;
  double total_ms;
  double median_ms;
  double min_ms;
  double p90_ms;
} steps_t;

static steps_t measure(cleave_generation_t *generation) {
  steps_t steps = {.count = (size_t)generation->token_count - 1};
  double *times = generation->times;
  for (size_t k = 0; k < steps.count; k++) {
    steps.total_ms += times[k];
  }
  cleave_times_sort(times, steps.count);
  steps.median_ms = cleave_times_quantile(times, steps.count, 0.5);
  steps.p90_ms = cleave_times_quantile(times, steps.count, 0.9);
  steps.min_ms = steps.count > 0 ? times[0] : 0.0;
  return steps;
}

static double per_second(const steps_t *steps) {
  return steps->total_ms > 0.0 ? (double)steps->count / steps->total_ms * 1e3 : 0.0;
}

static int32_t threads_of(const cleave_generation_t *generation) {
  int32_t threads = (int32_t)generation->job_options.threads;
  return threads > 0 ? threads : cleave_threads_available();
}

void cleave_generation_print(cleave_generation_t *generation) {
  const cleave_job_t *job = &generation->job;
  steps_t steps = measure(generation);
  char buffer[4][32];
  for (int64_t k = 0; k < generation->token_count; k++) {
    cleave_print("%s%lld", k == 0 ? "" : " ", (long long)generation->tokens[k]);
  }
  cleave_print("\n\n  load %s ms, partition %s ms (rule files %s ms), compile %s ms\n",
               cleave_times_format(job->load_ms, buffer[0], sizeof buffer[0]),
               cleave_times_format(job->partition_ms, buffer[1], sizeof buffer[1]),
               cleave_times_format(job->rules_ms, buffer[2], sizeof buffer[2]),
               cleave_times_format(generation->compile_ms, buffer[3], sizeof buffer[3]));
  cleave_print("  prompt of %lld token%s: the first token after %s ms\n",
               (long long)generation->prompt_tokens->count, CLEAVE_PLURAL(generation->prompt_tokens->count),
               cleave_times_format(generation->first_ms, buffer[0], sizeof buffer[0]));
  if (steps.count > 0) {
    cleave_print(
        "  %zu more: %.1f tokens per second; a token takes %s ms (median), min %s, p90 %s (%d thread%s)\n",
        steps.count, per_second(&steps), cleave_times_format(steps.median_ms, buffer[0], sizeof buffer[0]),
        cleave_times_format(steps.min_ms, buffer[1], sizeof buffer[1]),
        cleave_times_format(steps.p90_ms, buffer[2], sizeof buffer[2]), (int)threads_of(generation),
        CLEAVE_PLURAL(threads_of(generation)));
  }
  if (generation->profile_path != NULL) {
    cleave_report_profile(&generation->profile, generation->profile_path);
  }
}

int cleave_generation_print_json(cleave_generation_t *generation) {
  const cleave_job_t *job = &generation->job;
  steps_t steps = measure(generation);
  json_t *tokens = json_array();
  json_t *fixed = json_array();
  const cleave_graph_t *graph = cleave_model_graph(generation->loaded);
  for (size_t k = 0; fixed != NULL && k < graph->fixed_input_count; k++) {
    (void)json_array_append_new(fixed,
                                json_string(cleave_strings_text(&graph->strings, graph->fixed_inputs[k])));
  }
  for (int64_t k = 0; tokens != NULL && k < generation->token_count; k++) {
    (void)json_array_append_new(tokens, json_integer(generation->tokens[k]));
  }
  json_t *json = json_pack(
      "{s:s, s:o, s:I, s:I, s:o, s:i, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "model",
      generation->job_options.model, "fixed", fixed, "prompt_tokens",
      (json_int_t)generation->prompt_tokens->count, "capacity", (json_int_t)generation->capacity, "tokens",
      tokens, "threads", (int)threads_of(generation), "programs", (json_int_t)generation->program_count,
      "load_ms", job->load_ms, "rules_ms", job->rules_ms, "partition_ms", job->partition_ms, "compile_ms",
      generation->compile_ms, "first_token_ms", generation->first_ms, "tokens_per_second", per_second(&steps),
      "token_ms", steps.median_ms, "token_min_ms", steps.min_ms, "token_p90_ms", steps.p90_ms);
  return cleave_output_json(json);
}

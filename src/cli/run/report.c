// SPDX-License-Identifier: Apache-2.0
// Inputs, plan, checks, times, memory and profile of a run.
#include "cli/run/report.h"

#include <math.h>
#include <string.h>

#include "cli/common/common.h"
#include "cli/common/output.h"
#include "cli/report/report.h"
#include "system/resident.h"
#include "system/threads.h"

static double quantile(const cleave_run_t *run, double share) {
  return cleave_times_quantile(run->times.items, run->times.count, share);
}

/* Threads of a session: as asked for, or all. */
static int64_t thread_count(const cleave_run_t *run) {
  return run->options.threads == 0 ? cleave_threads_available() : run->options.threads;
}

static void print_checks(const cleave_run_checks_t *checks, const char *against) {
  if (checks->count == 0) {
    return;
  }
  cleave_print("\n" CLEAVE_TRUSTED "%s" CLEAVE_TRUSTED " against %s\n",
               cleave_output_style(checks->matches ? CLEAVE_STYLE_GOOD : CLEAVE_STYLE_BAD),
               checks->matches ? "all outputs match" : "outputs differ",
               cleave_output_style(CLEAVE_STYLE_PLAIN), against);
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "output\tlargest difference\trelative\tverdict\n");
  for (uint32_t k = 0; k < checks->count; k++) {
    const cleave_run_check_t *line = &checks->lines[k];
    cleave_text_show(&rows, "%s\t%.3g\t%.3g\t%s\n", line->name, line->result.difference.max_absolute,
                     line->result.relative, line->result.matches ? "match" : "differ");
  }
  cleave_output_table(&rows, "lrrl");
  for (uint32_t k = 0; k < checks->count; k++) {
    if (!checks->lines[k].result.matches) {
      cleave_print("  %s\n", cleave_text_get(&checks->lines[k].explanation));
    }
  }
}

static void print_all_checks(const cleave_run_t *run) {
  print_checks(&run->alone, "the same request alone");
  print_checks(&run->data, run->options.data);
  print_checks(&run->reference, "the unpartitioned graph on cpu");
}

static void print_drawn(const cleave_inputs_t *inputs) {
  const char *drawn = cleave_text_get(&inputs->drawn);
  while (*drawn != '\0') {
    size_t length = strcspn(drawn, "\n");
    cleave_print("  input %.*s\n", (int)length, drawn);
    drawn += length + (drawn[length] == '\n' ? 1 : 0);
  }
}

static void print_times(const cleave_run_t *run) {
  char times[4][32];
  cleave_print("first run %s ms", cleave_times_format(run->first_ms, times[0], sizeof times[0]));
  if (run->times.count > 0) {
    cleave_print(", then " CLEAVE_TRUSTED "median %s ms" CLEAVE_TRUSTED
                 ", min %s, p90 %s (%zu run%s, %d thread%s)",
                 cleave_output_style(CLEAVE_STYLE_BOLD),
                 cleave_times_format(quantile(run, 0.5), times[1], sizeof times[1]),
                 cleave_output_style(CLEAVE_STYLE_PLAIN),
                 cleave_times_format(run->times.items[0], times[2], sizeof times[2]),
                 cleave_times_format(quantile(run, 0.9), times[3], sizeof times[3]), run->times.count,
                 CLEAVE_PLURAL(run->times.count), (int)thread_count(run), CLEAVE_PLURAL(thread_count(run)));
  }
  cleave_print("\n");
}

void cleave_run_report_print(const cleave_run_t *run) {
  const cleave_job_t *job = &run->job;
  char bytes[3][32];
  cleave_session_memory_t memory = cleave_session_memory(job->session);
  cleave_print(CLEAVE_TRUSTED "%s" CLEAVE_TRUSTED "\n", cleave_output_style(CLEAVE_STYLE_BOLD),
               run->options.model, cleave_output_style(CLEAVE_STYLE_PLAIN));
  cleave_report_sizes(&job->inputs.sizes);
  print_drawn(&job->inputs);
  if (job->plan_inputs.count > job->inputs.count) { /* rules added some */
    cleave_report_sizes(&job->plan_inputs.sizes);
    print_drawn(&job->plan_inputs);
  }
  cleave_print("\n");
  cleave_report_plan(job->plan, job->options->rules.count > 0);
  if (run->rule_stats) {
    cleave_report_rule_stats(job->plan);
  }
  for (uint32_t k = 0; k < cleave_session_note_count(job->session); k++) {
    cleave_print("  %s\n", cleave_session_note(job->session, k));
  }
  print_all_checks(run);
  cleave_print("\nload %.1f ms, partition %.2f ms (rule files %.1f ms), compile %.1f ms",
               job->load_ms + job->bind_ms, job->partition_ms, job->rules_ms, job->compile_ms);
  const char *folder = cleave_common_session().blob_folder;
  if (folder != NULL) {
    cleave_print(" (%s%u of %u program%s from %s)", job->plan_was_kept ? "the plan and " : "",
                 (unsigned)cleave_session_loaded_count(job->session),
                 (unsigned)cleave_session_program_count(job->session),
                 CLEAVE_PLURAL(cleave_session_program_count(job->session)), folder);
  }
  cleave_print("\n");
  print_times(run);
  cleave_run_requests_print(&run->requests);
  cleave_run_stages_print(&run->stages);
  cleave_print("memory%s: values %s (unshared %s), packed weights %s, peak %.0f MiB\n",
               run->requests.count > 0 ? " of each session" : "",
               cleave_output_bytes((double)(memory.values_bytes + memory.outputs_bytes +
                                            memory.dynamic_bytes + memory.workspace_bytes),
                                   bytes[0], sizeof bytes[0]),
               cleave_output_bytes((double)(memory.unshared_bytes + memory.outputs_bytes +
                                            memory.dynamic_bytes + memory.workspace_bytes),
                                   bytes[1], sizeof bytes[1]),
               cleave_output_bytes((double)memory.persistent_bytes, bytes[2], sizeof bytes[2]),
               cleave_resident_peak());
  cleave_report_devices(job->session);
  if (run->profile_path != NULL) {
    cleave_report_profile(&run->profile, run->profile_path);
  }
}

static json_t *json_checks(const cleave_run_checks_t *checks) {
  if (checks->count == 0) {
    return json_null();
  }
  json_t *outputs = json_array();
  for (uint32_t k = 0; k < checks->count; k++) {
    const cleave_run_check_t *line = &checks->lines[k];
    const cleave_check_result_t *result = &line->result;
    json_t *output = json_pack("{s:s, s:b, s:I}", "name", line->name, "match", result->matches, "mismatches",
                               (json_int_t)result->difference.mismatches);
    bool is_finite = result->difference.same_type && isfinite(result->difference.max_absolute);
    (void)json_object_set_new(output, "max_absolute",
                              is_finite ? json_real(result->difference.max_absolute) : json_null());
    (void)json_object_set_new(output, "max_relative", is_finite ? json_real(result->relative) : json_null());
    if (!result->matches) {
      (void)json_object_set_new(output, "reason", json_string(cleave_text_get(&line->explanation)));
    }
    (void)json_array_append_new(outputs, output);
  }
  return json_pack("{s:b, s:o}", "match", checks->matches, "outputs", outputs);
}

static json_t *json_profile(const cleave_run_t *run) {
  json_t *lines = json_array();
  for (size_t k = 0; k < run->profile.lines.count; k++) {
    const cleave_profile_line_t *line = &run->profile.lines.items[k];
    (void)json_array_append_new(
        lines, json_pack("{s:s, s:s, s:i, s:f, s:I}", "label", line->label, "backend", line->backend, "steps",
                         (int)line->count, "ms", line->total_ms, "bytes", (json_int_t)line->bytes));
  }
  return lines;
}

json_t *cleave_run_report_json(const cleave_run_t *run) {
  const cleave_job_t *job = &run->job;
  cleave_session_memory_t memory = cleave_session_memory(job->session);
  json_t *json = json_pack(
      "{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "model", run->options.model, "load_ms",
      job->load_ms, "bind_ms", job->bind_ms, "rules_ms", job->rules_ms, "partition_ms", job->partition_ms,
      "compile_ms", job->compile_ms, "first_ms", run->first_ms, "median_ms", quantile(run, 0.5), "min_ms",
      run->times.count == 0 ? 0.0 : run->times.items[0], "p90_ms", quantile(run, 0.9), "mean_ms",
      cleave_times_mean(run->times.items, run->times.count), "peak_rss_mb", cleave_resident_peak());
  if (json == NULL) {
    return NULL;
  }
  (void)json_object_set_new(json, "code_rss_mb", json_real(cleave_resident_code()));
  (void)json_object_set_new(json, "runs", json_integer((json_int_t)run->times.count));
  (void)json_object_set_new(json, "threads", json_integer(thread_count(run)));
  (void)json_object_set_new(json, "requests", cleave_run_requests_json(&run->requests));
  (void)json_object_set_new(json, "processes", cleave_run_stages_json(&run->stages));
  (void)json_object_set_new(json, "programs",
                            json_pack("{s:i, s:i}", "count", (int)cleave_session_program_count(job->session),
                                      "loaded", (int)cleave_session_loaded_count(job->session)));
  (void)json_object_set_new(json, "plan_loaded", json_boolean(job->plan_was_kept));
  (void)json_object_set_new(json, "sizes", cleave_sizes_json(&job->inputs.sizes));
  cleave_report_plan_json(job->plan, json);
  (void)json_object_set_new(json, "check", json_checks(&run->data));
  (void)json_object_set_new(json, "verify", json_checks(&run->reference));
  if (run->requests.server != NULL) {
    (void)json_object_set_new(json, "alone", json_checks(&run->alone));
  }
  (void)json_object_set_new(
      json, "memory",
      json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "values", (json_int_t)memory.values_bytes, "unshared",
                (json_int_t)memory.unshared_bytes, "workspace", (json_int_t)memory.workspace_bytes, "outputs",
                (json_int_t)memory.outputs_bytes, "persistent", (json_int_t)memory.persistent_bytes,
                "dynamic", (json_int_t)memory.dynamic_bytes));
  (void)json_object_set_new(json, "devices", cleave_report_devices_json(job->session));
  json_t *notes = json_array();
  for (uint32_t k = 0; k < cleave_session_note_count(job->session); k++) {
    (void)json_array_append_new(notes, json_string(cleave_session_note(job->session, k)));
  }
  (void)json_object_set_new(json, "notes", notes);
  if (run->rule_stats) {
    cleave_report_rule_stats_json(job->plan, json);
  }
  if (run->profile_path != NULL) {
    (void)json_object_set_new(json, "profile", json_profile(run));
  }
  return json;
}

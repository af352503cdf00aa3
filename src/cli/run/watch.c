// SPDX-License-Identifier: Apache-2.0
// Waits for rule files to be saved, or for Ctrl-C. The handler writes into a pipe, since the signal may come
// to a worker thread: what waits is woken either way, and what is being done is finished.
#include "cli/run/watch.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/command.h"
#include "cli/common/common.h"
#include "cli/common/output.h"
#include "tools/watch/watch.h"
#include "tools/watch/watch_files.h"

enum { QUIET_MS = 20 }; /* until a burst of changes counts as over */

static int interrupt_pipe[2] = {-1, -1};

static void interrupted(int number) {
  int before = errno;
  char byte = (char)number;
  ssize_t written = write(interrupt_pipe[1], &byte, 1);
  (void)written; /* a full pipe wakes as well */
  errno = before;
}

static cleave_status_t catch_interrupts(cleave_error_t *error) {
  struct sigaction action;
  if (interrupt_pipe[0] >= 0) {
    return CLEAVE_OK;
  }
  memset(&action, 0, sizeof action);
  action.sa_handler = interrupted;
  (void)sigemptyset(&action.sa_mask);
  if (pipe(interrupt_pipe) != 0 || sigaction(SIGINT, &action, NULL) != 0 ||
      sigaction(SIGTERM, &action, NULL) != 0) {
    return cleave_error_set(error, CLEAVE_ERROR_IO, "interrupts cannot be caught: %s", strerror(errno));
  }
  return CLEAVE_OK;
}

/* ---- reports ---- */

/* A percentage only if it is one: the plans differ, and chance alone would hardly make it. */
static void print_times(const cleave_reload_t *reload) {
  const char *bold = cleave_output_style(CLEAVE_STYLE_BOLD);
  const char *plain = cleave_output_style(CLEAVE_STYLE_PLAIN);
  const char *runs = CLEAVE_BY_COUNT(reload->runs, "run", "runs");
  if (reload->runs == 0) {
    return;
  }
  if (reload->same) {
    cleave_print("  plan unchanged: median " CLEAVE_TRUSTED "%.2f ms" CLEAVE_TRUSTED " (%u %s)\n", bold,
                 reload->after_ms, plain, (unsigned)reload->runs, runs);
    return;
  }
  cleave_print("  median %.2f ms before, " CLEAVE_TRUSTED "%.2f ms" CLEAVE_TRUSTED " now (",
               reload->before_ms, bold, reload->after_ms, plain);
  if (reload->has_change && (reload->change_low > 0.0 || reload->change_high < 0.0)) {
    cleave_print("%+.1f %%, 95 %% interval %+.1f to %+.1f; ", 100.0 * reload->change,
                 100.0 * reload->change_low, 100.0 * reload->change_high);
  } else if (reload->has_change) {
    cleave_print("no measurable difference; ");
  }
  cleave_print("%u %s each)\n", (unsigned)reload->runs, runs);
}

static void print_reload(const cleave_reload_t *reload) {
  const char *plain = cleave_output_style(CLEAVE_STYLE_PLAIN);
  if (reload->status != CLEAVE_OK) {
    cleave_print("\n" CLEAVE_TRUSTED "error" CLEAVE_TRUSTED
                 ": %s\n  the plan before stays in use (%.0f ms after saving)\n",
                 cleave_output_style(CLEAVE_STYLE_BAD), plain, reload->message, reload->total_ms);
    return;
  }
  cleave_print("\n" CLEAVE_TRUSTED "%s" CLEAVE_TRUSTED " was saved\n", cleave_output_style(CLEAVE_STYLE_BOLD),
               reload->path, plain);
  cleave_print(CLEAVE_TRUSTED, reload->changes);
  cleave_print("  %u program%s compiled, %u reused", (unsigned)reload->programs_compiled,
               CLEAVE_PLURAL(reload->programs_compiled), (unsigned)reload->programs_reused);
  if (reload->compared) {
    cleave_print("; outputs differ by at most %.3g (%s, %.1g of its largest value)",
                 reload->largest_difference, reload->largest_output, reload->relative_difference);
  }
  cleave_print("\n");
  print_times(reload);
  cleave_print("  rule files %.1f ms, partition %.1f ms, compile %.1f ms; %.0f ms after saving\n",
               reload->rules_ms, reload->partition_ms, reload->compile_ms, reload->total_ms);
}

static json_t *number_or_null(double number, bool exists) {
  return exists && isfinite(number) ? json_real(number) : json_null();
}

static json_t *reload_json(const cleave_reload_t *reload) {
  bool good = reload->status == CLEAVE_OK;
  json_t *json = json_pack("{s:s, s:s, s:b, s:f}", "event", "reload", "path", reload->path, "ok", good,
                           "total_ms", reload->total_ms);
  if (json == NULL) {
    return NULL;
  }
  if (!good) {
    (void)json_object_set_new(json, "error", json_string(reload->message));
    return json;
  }
  (void)json_object_set_new(json, "same", json_boolean(reload->same));
  (void)json_object_set_new(json, "before_ms", number_or_null(reload->before_ms, reload->runs > 0));
  (void)json_object_set_new(json, "after_ms", number_or_null(reload->after_ms, reload->runs > 0));
  (void)json_object_set_new(json, "change", number_or_null(reload->change, reload->has_change));
  (void)json_object_set_new(json, "change_low", number_or_null(reload->change_low, reload->has_change));
  (void)json_object_set_new(json, "change_high", number_or_null(reload->change_high, reload->has_change));
  (void)json_object_set_new(json, "runs", json_integer((json_int_t)reload->runs));
  (void)json_object_set_new(json, "largest_difference",
                            number_or_null(reload->largest_difference, reload->compared));
  (void)json_object_set_new(json, "relative_difference",
                            number_or_null(reload->relative_difference, reload->compared));
  (void)json_object_set_new(json, "output", json_string(reload->largest_output));
  (void)json_object_set_new(json, "programs_compiled", json_integer((json_int_t)reload->programs_compiled));
  (void)json_object_set_new(json, "programs_reused", json_integer((json_int_t)reload->programs_reused));
  (void)json_object_set_new(json, "rules_ms", json_real(reload->rules_ms));
  (void)json_object_set_new(json, "partition_ms", json_real(reload->partition_ms));
  (void)json_object_set_new(json, "compile_ms", json_real(reload->compile_ms));
  (void)json_object_set_new(json, "changes", json_loads(reload->changes_json, 0, NULL));
  return json;
}

void cleave_run_watch_line(json_t *json) {
  char *line = json == NULL ? NULL : json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(6));
  cleave_output_json_text(line == NULL ? "{\"event\":\"error\",\"error\":\"out of memory\"}" : line);
  cleave_print("\n");
  free(line);
  json_decref(json);
}

/* ---- before the first plan ---- */

typedef struct listening {
  cleave_watch_files_t *files;
  cleave_error_t error;
} listening_t;

static void note_file(void *context, const char *path) {
  listening_t *listening = context;
  cleave_status_t status = cleave_watch_files_add(listening->files, path, &listening->error);
  (void)status; /* `error` has it, and is reported later */
}

/* Files of another name than those that can be watched are not rule files to be mended. */
static bool can_be_mended(const cleave_job_t *job, cleave_status_t status) {
  bool all_there = status != CLEAVE_ERROR_OUT_OF_MEMORY;
  for (size_t k = 0; k < job->options->rules.count; k++) {
    all_there = all_there && access(job->options->rules.items[k], F_OK) == 0;
  }
  return all_there;
}

static cleave_status_t wait_for_save(cleave_watch_files_t *files, bool *out_interrupted,
                                     cleave_error_t *error) {
  struct pollfd waits[2] = {{.fd = cleave_watch_files_descriptor(files), .events = POLLIN},
                            {.fd = interrupt_pipe[0], .events = POLLIN}};
  for (const char *path = NULL; path == NULL;) {
    uint64_t saved_ns = 0;
    if (fflush(stdout) != 0) {
      return cleave_error_set(error, CLEAVE_ERROR_IO, "the output could not be written");
    }
    if (poll(waits, 2, -1) < 0 && errno != EINTR) {
      return cleave_error_set(error, CLEAVE_ERROR_IO, "waiting: %s", strerror(errno));
    }
    *out_interrupted = (waits[1].revents & POLLIN) != 0;
    if (*out_interrupted) {
      return CLEAVE_OK;
    }
    CLEAVE_TRY(cleave_watch_files_poll(files, &path, &saved_ns, error));
  }
  return CLEAVE_OK;
}

static cleave_status_t prepare_once(cleave_job_t *job, cleave_error_t *error) {
  cleave_plan_destroy(job->plan);
  job->plan = NULL;
  CLEAVE_TRY(cleave_job_partition(job, error));
  return cleave_job_compile(job, error);
}

static cleave_status_t prepare(cleave_job_t *job, bool json, const listening_t *listening,
                               bool *out_interrupted, cleave_error_t *error) {
  for (;;) {
    cleave_error_t mistake = CLEAVE_ERROR_INIT;
    cleave_status_t status = prepare_once(job, &mistake);
    if (listening->error.status != CLEAVE_OK || (status != CLEAVE_OK && !can_be_mended(job, status))) {
      *error = listening->error.status != CLEAVE_OK ? listening->error : mistake;
      return error->status;
    }
    if (status == CLEAVE_OK) {
      return CLEAVE_OK;
    }
    if (json) {
      cleave_run_watch_line(json_pack("{s:s, s:s}", "event", "error", "error", mistake.message));
    } else {
      cleave_print(
          CLEAVE_TRUSTED "error" CLEAVE_TRUSTED ": %s\n  waiting for a rule file to be saved; Ctrl-C ends\n",
          cleave_output_style(CLEAVE_STYLE_BAD), cleave_output_style(CLEAVE_STYLE_PLAIN), mistake.message);
    }
    CLEAVE_TRY(wait_for_save(listening->files, out_interrupted, error));
    if (*out_interrupted) {
      return CLEAVE_OK;
    }
  }
}

cleave_status_t cleave_run_watch_prepare(cleave_job_t *job, bool json, bool *out_interrupted,
                                         cleave_error_t *error) {
  listening_t listening = {.error = CLEAVE_ERROR_INIT};
  cleave_rules_listener_t listener = {.note = note_file, .context = &listening};
  *out_interrupted = false;
  CLEAVE_TRY(catch_interrupts(error));
  CLEAVE_TRY(cleave_watch_files_create(QUIET_MS, &listening.files, error));
  job->listener = &listener;
  cleave_status_t status = prepare(job, json, &listening, out_interrupted, error);
  job->listener = NULL;
  cleave_watch_files_destroy(listening.files);
  return status;
}

/* ---- the loop ---- */

/* Pairs of runs behind a reported change of speed if the reload had no time for more. */
enum { ENOUGH_PAIRS = 15 };

/* While nothing else is to do: pairs are added one by one, so that the next save does not wait. */
static cleave_status_t measure_on(cleave_rules_watch_t *watch, bool json, bool *is_open,
                                  cleave_error_t *error) {
  const cleave_reload_t *reload = NULL;
  CLEAVE_TRY(cleave_rules_watch_measure(watch, 1, &reload, error));
  *is_open = reload->runs < ENOUGH_PAIRS;
  if (*is_open) {
    return CLEAVE_OK;
  }
  if (json) {
    cleave_run_watch_line(json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:i}", "event", "timing", "before_ms",
                                    reload->before_ms, "after_ms", reload->after_ms, "change", reload->change,
                                    "change_low", reload->change_low, "change_high", reload->change_high,
                                    "runs", (int)reload->runs));
  } else {
    print_times(reload);
  }
  return CLEAVE_OK;
}

static cleave_status_t loop(cleave_rules_watch_t *watch, bool json, cleave_error_t *error) {
  struct pollfd waits[2] = {{.fd = cleave_rules_watch_descriptor(watch), .events = POLLIN},
                            {.fd = interrupt_pipe[0], .events = POLLIN}};
  bool is_open = false; /* how the last plan compares in speed */
  for (;;) {
    const cleave_reload_t *reload = NULL;
    if (fflush(stdout) != 0) {
      return cleave_error_set(error, CLEAVE_ERROR_IO, "the output could not be written");
    }
    int ready = poll(waits, 2, is_open ? 0 : -1);
    if (ready < 0 && errno != EINTR) {
      return cleave_error_set(error, CLEAVE_ERROR_IO, "waiting: %s", strerror(errno));
    }
    if ((waits[1].revents & POLLIN) != 0) {
      return CLEAVE_OK;
    }
    if (ready == 0) {
      CLEAVE_TRY(measure_on(watch, json, &is_open, error));
      continue;
    }
    cleave_common_start_script_time();
    CLEAVE_TRY(cleave_rules_watch_poll(watch, 0, &reload, error));
    if (reload != NULL) {
      is_open = reload->status == CLEAVE_OK && reload->runs > 0 && !reload->same && !reload->has_change;
    }
    if (reload != NULL && json) {
      cleave_run_watch_line(reload_json(reload));
    } else if (reload != NULL) {
      print_reload(reload);
    }
  }
}

static cleave_status_t create(const cleave_job_t *job, cleave_rules_watch_t **out_watch,
                              cleave_error_t *error) {
  const cleave_job_options_t *options = job->options;
  cleave_partition_request_t request;
  CLEAVE_TRY(cleave_job_request(job, &request, error));
  cleave_session_options_t session = cleave_common_session();
  session.threads = (int32_t)options->threads;
  session.programs = job->programs;
  session.imperative = options->imperative;
  session.workers = (int32_t)options->workers;
  cleave_rules_watch_options_t watch_options = {.size = sizeof watch_options,
                                                .session = &session,
                                                .inputs = job->plan_inputs.pointers,
                                                .input_count = job->plan_inputs.count};
  cleave_status_t status = cleave_rules_watch_create_known(job->model, &request, job->settings.used,
                                                           &watch_options, out_watch, error);
  cleave_rule_request_deinit(&request);
  return status;
}

int cleave_run_watch(cleave_job_t *job, bool json) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_rules_watch_t *watch = NULL;
  cleave_status_t status = catch_interrupts(&error);
  CLEAVE_THEN(status, create(job, &watch, &error));
  if (status == CLEAVE_OK) {
    // The watch has a session of its own, with the same programs.
    cleave_session_destroy(job->session);
    job->session = NULL;
    if (json) {
      cleave_run_watch_line(json_pack("{s:s, s:s}", "event", "watching", "model", job->options->model));
    } else {
      cleave_print("\nwatching %s%s; Ctrl-C ends\n", job->options->rules.items[0],
                   job->options->rules.count > 1 ? " and the others" : "");
    }
    status = loop(watch, json, &error);
  }
  cleave_rules_watch_destroy(watch);
  return status == CLEAVE_OK ? CLEAVE_EXIT_OK : cleave_output_error(&error);
}

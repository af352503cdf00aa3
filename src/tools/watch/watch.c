// SPDX-License-Identifier: Apache-2.0
// Rule files while they are edited. What is in use is a plan with its session; a reload makes the next pair
// beside it, with programs from the common cache, and only when everything has worked does it take the place
// of the one in use, which lives on until the reload after. What fails leaves nothing behind but its message.
#include "tools/watch/watch.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "backend/program/program_cache.h"
#include "base/sized.h"
#include "partition/plan_diff/plan_diff.h"
#include "runtime/model/model.h"
#include "system/clock.h"
#include "tools/watch/watch_files.h"

enum { QUIET_MS = 20, MEASURE_MS = 200 };

typedef struct version {
  cleave_plan_t *plan;
  cleave_session_t *session;
} version_t;

struct cleave_rules_watch {
  cleave_arena_t arena; /* copies of the arguments */
  cleave_model_t *model;
  cleave_partition_request_t request;
  bool *known; /* per setting of the request */
  cleave_rules_listener_t listener;
  size_t input_count;
  const cleave_tensor_view_t **inputs; /* to copies of the views */
  cleave_session_options_t session;
  cleave_program_cache_t *programs; /* retained */
  int32_t measure_ms;
  cleave_watch_files_t *files;
  cleave_error_t watch_error; /* of the listener, which cannot fail */
  version_t current;
  version_t previous;
  cleave_paired_t paired; /* times of `previous` and `current` */
  /* the last report */
  cleave_reload_t reload;
  cleave_error_t failure;
  cleave_text_t changes;
  cleave_text_t changes_json;
};

static void destroy_version(version_t *version) {
  cleave_session_destroy(version->session);
  cleave_plan_destroy(version->plan);
  *version = (version_t){0};
}

/* ---- arguments ---- */

static const char *copy(cleave_rules_watch_t *watch, const char *text, bool *complete) {
  char *made = cleave_arena_copy_text(&watch->arena, text, strlen(text));
  *complete = *complete && made != NULL;
  return made;
}

static cleave_status_t copy_request(cleave_rules_watch_t *watch, const cleave_partition_request_t *from,
                                    const bool *known, cleave_error_t *error) {
  cleave_arena_t *arena = &watch->arena;
  cleave_rule_source_t *sources = cleave_arena_allocate(arena, from->source_count, sizeof *sources);
  cleave_setting_t *settings = cleave_arena_allocate(arena, from->setting_count, sizeof *settings);
  watch->known = cleave_arena_allocate(arena, from->setting_count, sizeof *watch->known);
  bool complete = sources != NULL && settings != NULL && watch->known != NULL;
  for (size_t k = 0; complete && k < from->source_count; k++) {
    if (from->sources[k].path == NULL || from->sources[k].text != NULL ||
        access(from->sources[k].path, R_OK) != 0) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "%s: there is no such file to watch",
                              from->sources[k].path == NULL ? "rules" : from->sources[k].path);
    }
    sources[k] = (cleave_rule_source_t){.path = copy(watch, from->sources[k].path, &complete)};
  }
  for (size_t k = 0; complete && k < from->setting_count; k++) {
    settings[k].name = copy(watch, from->settings[k].name, &complete);
    settings[k].value = copy(watch, from->settings[k].value, &complete);
    watch->known[k] = known != NULL && known[k];
  }
  watch->request = *from;
  watch->request.sources = sources;
  watch->request.settings = settings;
  watch->request.backend = from->backend == NULL ? NULL : copy(watch, from->backend, &complete);
  return complete ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

static cleave_status_t copy_inputs(cleave_rules_watch_t *watch, const cleave_rules_watch_options_t *options,
                                   cleave_error_t *error) {
  cleave_arena_t *arena = &watch->arena;
  size_t count = options->input_count;
  const cleave_tensor_view_t *const *inputs = options->inputs;
  cleave_tensor_view_t *views = cleave_arena_allocate(arena, count, sizeof *views);
  watch->inputs = cleave_arena_allocate(arena, count, sizeof *watch->inputs);
  CLEAVE_TRY_MEMORY(views != NULL && watch->inputs != NULL, error);
  for (size_t k = 0; k < count; k++) {
    if (inputs == NULL || inputs[k] == NULL || inputs[k]->rank < 0 || inputs[k]->rank > CLEAVE_MAX_RANK) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "input %zu is not given", k);
    }
    views[k] = *inputs[k];
    views[k].dims = cleave_arena_copy(arena, inputs[k]->dims, (size_t)inputs[k]->rank * sizeof(int64_t));
    CLEAVE_TRY_MEMORY(views[k].dims, error);
    watch->inputs[k] = &views[k];
  }
  watch->input_count = count;
  return CLEAVE_OK;
}

static cleave_status_t copy_options(cleave_rules_watch_t *watch, const cleave_rules_watch_options_t *options,
                                    cleave_error_t *error) {
  watch->measure_ms = options->measure_ms == 0 ? MEASURE_MS : options->measure_ms;
  watch->session.size = sizeof watch->session;
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_session_options_t, options->session, &watch->session, error));
  if (watch->session.programs != NULL) {
    watch->programs = cleave_program_cache_retain(watch->session.programs);
  } else {
    CLEAVE_TRY(cleave_program_cache_create(&watch->programs, error));
  }
  watch->session.programs = watch->programs;
  int32_t quiet_ms = options->quiet_ms <= 0 ? QUIET_MS : options->quiet_ms;
  return cleave_watch_files_create(quiet_ms, &watch->files, error);
}

/* ---- making a version ---- */

static void note_file(void *context, const char *path) {
  cleave_rules_watch_t *watch = context;
  cleave_status_t status = cleave_watch_files_add(watch->files, path, &watch->watch_error);
  (void)status; /* watch_error has it, and is reported later */
}

/* A file that is gone might have the name of a shipped one, which is not what is meant. */
static cleave_status_t check_files(const cleave_rules_watch_t *watch, cleave_error_t *error) {
  for (size_t k = 0; k < watch->request.source_count; k++) {
    const char *path = watch->request.sources[k].path;
    if (access(path, F_OK) != 0) {
      return cleave_error_set(error, CLEAVE_ERROR_IO, "%s: the file was removed", path);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t make_session(cleave_rules_watch_t *watch, version_t *version, cleave_error_t *error) {
  uint32_t needed = cleave_plan_input_count(version->plan);
  if (needed > watch->input_count) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "the rules give the model %u input%s, there is data for %zu", (unsigned)needed,
                            CLEAVE_PLURAL(needed), watch->input_count);
  }
  CLEAVE_TRY(cleave_session_create(watch->model, version->plan, watch->inputs, needed, &watch->session,
                                   &version->session, error));
  for (uint32_t k = 0; k < needed; k++) {
    CLEAVE_TRY(cleave_session_set_input(version->session, k, watch->inputs[k], error));
  }
  return CLEAVE_OK;
}

static cleave_status_t make_version(cleave_rules_watch_t *watch, version_t *version, cleave_reload_t *reload,
                                    cleave_error_t *error) {
  uint64_t start = cleave_clock_now();
  CLEAVE_TRY(check_files(watch, error));
  cleave_rule_list_options_t options = {.known = watch->known, .listener = &watch->listener};
  CLEAVE_TRY(cleave_graph_partition(cleave_model_graph(watch->model), &watch->request, &options,
                                    &version->plan, &reload->rules_ms, error));
  uint64_t planned = cleave_clock_now();
  reload->partition_ms = cleave_clock_ms(start, planned) - reload->rules_ms;
  CLEAVE_TRY(make_session(watch, version, error));
  reload->compile_ms = cleave_clock_ms(planned, cleave_clock_now());
  reload->programs_reused = cleave_session_reused_count(version->session);
  reload->programs_compiled = cleave_session_program_count(version->session) - reload->programs_reused;
  return CLEAVE_OK;
}

/* Tells the backends of the plan in use whether variants of their programs are to come. What they say to it
 * does not matter. */
static void announce_reloads(const cleave_rules_watch_t *watch, const char *wanted) {
  const cleave_plan_t *plan = watch->current.plan;
  cleave_key_value_t hint = {.key = "hint.recompiles", .value = wanted};
  for (uint32_t k = 0; plan != NULL && k < plan->region_count; k++) {
    const char *backend = plan->regions[k].backend;
    if (k == 0 || strcmp(backend, plan->regions[k - 1].backend) != 0) {
      cleave_status_t status =
          cleave_backend_configure(plan->graph->context, backend, &hint, 1, NULL, NULL, NULL);
      (void)status;
    }
  }
}

/* ---- a reload ---- */

static cleave_status_t describe_changes(cleave_rules_watch_t *watch, const version_t *next,
                                        cleave_reload_t *reload, cleave_error_t *error) {
  cleave_plan_document_t *before = NULL;
  cleave_plan_document_t *after = NULL;
  cleave_plan_diff_t *diff = NULL;
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(cleave_plan_document_create(watch->current.plan, &before, error));
  CLEAVE_TRY_CLEANUP(cleave_plan_document_create(next->plan, &after, error));
  CLEAVE_TRY_CLEANUP(cleave_plan_diff_create(before, after, &diff, error));
  CLEAVE_TRY_CLEANUP(cleave_plan_diff_print_text(diff, &watch->changes, error));
  CLEAVE_TRY_CLEANUP(cleave_plan_diff_print_json(diff, &watch->changes_json, error));
  reload->same = diff->same;
cleanup:
  cleave_plan_diff_destroy(diff);
  cleave_plan_document_destroy(before);
  cleave_plan_document_destroy(after);
  return status;
}

static cleave_status_t take_up(cleave_rules_watch_t *watch, version_t *next, uint64_t saved_ns,
                               cleave_reload_t *reload, cleave_error_t *error) {
  CLEAVE_TRY(make_version(watch, next, reload, error));
  CLEAVE_TRY(describe_changes(watch, next, reload, error));
  if (watch->measure_ms < 0) {
    return CLEAVE_OK;
  }
  cleave_watch_measure_t measure = {.before = watch->current.session,
                                    .after = next->session,
                                    .graph = next->plan->graph,
                                    .deadline_ns = saved_ns + (uint64_t)watch->measure_ms * 1000000,
                                    .paired = &watch->paired};
  return cleave_watch_measure(&measure, reload, error);
}

static void take_over(cleave_rules_watch_t *watch, const char *path, uint64_t saved_ns) {
  version_t next = {0};
  cleave_reload_t reload = {.size = sizeof reload, .path = path, .largest_output = "", .message = ""};
  watch->paired.count = 0;
  watch->changes.length = 0;
  watch->changes_json.length = 0;
  cleave_error_clear(&watch->failure);
  reload.status = take_up(watch, &next, saved_ns, &reload, &watch->failure);
  if (reload.status == CLEAVE_OK) {
    // Until now, so that an edit that is taken back finds all that was compiled before it.
    destroy_version(&watch->previous);
    watch->previous = watch->current;
    watch->current = next;
    announce_reloads(watch, "1");
    reload.changes = cleave_text_get(&watch->changes);
    reload.changes_json = cleave_text_get(&watch->changes_json);
  } else {
    destroy_version(&next);
    reload = (cleave_reload_t){.size = sizeof reload,
                               .status = reload.status,
                               .message = watch->failure.message,
                               .path = path,
                               .changes = "",
                               .changes_json = "",
                               .largest_output = ""};
  }
  uint64_t now = cleave_clock_now();
  reload.total_ms = now > saved_ns ? cleave_clock_ms(saved_ns, now) : 0.0;
  watch->reload = reload;
}

/* ---- the watch ---- */

static cleave_status_t start(cleave_rules_watch_t *watch, const cleave_partition_request_t *request,
                             const bool *known, const cleave_rules_watch_options_t *options,
                             cleave_error_t *error) {
  cleave_reload_t ignored = {0};
  if (request->source_count == 0) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "there is no rule file to watch");
  }
  watch->listener = (cleave_rules_listener_t){.note = note_file, .context = watch};
  CLEAVE_TRY(copy_options(watch, options, error));
  CLEAVE_TRY(copy_request(watch, request, known, error));
  CLEAVE_TRY(copy_inputs(watch, options, error));
  CLEAVE_TRY(make_version(watch, &watch->current, &ignored, error));
  if (watch->watch_error.status != CLEAVE_OK) {
    return cleave_error_set(error, watch->watch_error.status, "%s", watch->watch_error.message);
  }
  announce_reloads(watch, "1");
  /* A first run is slower than those that follow: the first reload shall not compare with it. */
  return watch->measure_ms < 0 ? CLEAVE_OK : cleave_session_run(watch->current.session, error);
}

cleave_status_t cleave_rules_watch_create_known(cleave_model_t *model,
                                                const cleave_partition_request_t *request, const bool *known,
                                                const cleave_rules_watch_options_t *options,
                                                cleave_rules_watch_t **out_watch, cleave_error_t *error) {
  cleave_rules_watch_options_t own = {.size = sizeof own};
  cleave_partition_request_t rules;
  *out_watch = NULL;
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_rules_watch_options_t, options, &own, error));
  CLEAVE_TRY(cleave_partition_request_read(request, &rules, error));
  cleave_rules_watch_t *watch = cleave_allocate_zeroed(1, sizeof *watch);
  CLEAVE_TRY_MEMORY(watch, error);
  watch->model = cleave_model_retain(model);
  CLEAVE_TRY_OR(start(watch, &rules, known, &own, error), cleave_rules_watch_destroy(watch));
  *out_watch = watch;
  return CLEAVE_OK;
}

cleave_status_t cleave_rules_watch_create(cleave_model_t *model, const cleave_partition_request_t *request,
                                          const cleave_rules_watch_options_t *options,
                                          cleave_rules_watch_t **out_watch, cleave_error_t *error) {
  return cleave_rules_watch_create_known(model, request, NULL, options, out_watch, error);
}

void cleave_rules_watch_destroy(cleave_rules_watch_t *watch) {
  if (watch == NULL) {
    return;
  }
  announce_reloads(watch, "0");
  destroy_version(&watch->current);
  destroy_version(&watch->previous);
  cleave_program_cache_release(watch->programs);
  cleave_watch_files_destroy(watch->files);
  cleave_text_deinit(&watch->changes);
  cleave_text_deinit(&watch->changes_json);
  cleave_arena_deinit(&watch->arena);
  cleave_model_release(watch->model);
  cleave_free(watch);
}

int cleave_rules_watch_descriptor(const cleave_rules_watch_t *watch) {
  return cleave_watch_files_descriptor(watch->files);
}

const cleave_plan_t *cleave_rules_watch_plan(const cleave_rules_watch_t *watch) {
  return watch->current.plan;
}

cleave_session_t *cleave_rules_watch_session(const cleave_rules_watch_t *watch) {
  return watch->current.session;
}

cleave_status_t cleave_rules_watch_poll(cleave_rules_watch_t *watch, int32_t timeout_ms,
                                        const cleave_reload_t **out_reload, cleave_error_t *error) {
  uint64_t start_ns = cleave_clock_now();
  *out_reload = NULL;
  for (;;) {
    const char *path = NULL;
    uint64_t saved_ns = 0;
    CLEAVE_TRY(cleave_watch_files_poll(watch->files, &path, &saved_ns, error));
    if (path != NULL) {
      take_over(watch, path, saved_ns);
      *out_reload = &watch->reload;
      return CLEAVE_OK;
    }
    double left = (double)timeout_ms - cleave_clock_ms(start_ns, cleave_clock_now());
    if (timeout_ms >= 0 && left <= 0.0) {
      return CLEAVE_OK;
    }
    struct pollfd wait = {.fd = cleave_watch_files_descriptor(watch->files), .events = POLLIN};
    if (poll(&wait, 1, timeout_ms < 0 ? -1 : (int)left + 1) < 0) {
      return CLEAVE_OK; /* a signal: the caller may want to know */
    }
  }
}

cleave_status_t cleave_rules_watch_measure(cleave_rules_watch_t *watch, uint32_t pairs,
                                           const cleave_reload_t **out_reload, cleave_error_t *error) {
  *out_reload = NULL;
  if (watch->reload.runs == 0 || watch->reload.status != CLEAVE_OK) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "no reload has measured plans");
  }
  for (uint32_t k = 0; k < pairs; k++) {
    CLEAVE_TRY(cleave_paired_run(&watch->paired, watch->previous.session, watch->current.session, error));
  }
  if (watch->paired.count > 0) {
    cleave_watch_note_times(&watch->paired, &watch->reload);
  }
  *out_reload = &watch->reload;
  return CLEAVE_OK;
}

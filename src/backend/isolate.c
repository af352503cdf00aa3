// SPDX-License-Identifier: Apache-2.0
// The table of an isolated library: questions without programs. Nothing that the process answers is believed:
// texts are copied, counts and statuses checked, and the table has the functions of this file whatever the
// library had.
#include "backend/isolate.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/isolate_internal.h"
#include "backend/region_wire.h"

enum {
  ASK_MS = 10 * 1000,
  COMPILE_MS = 120 * 1000,
  RUN_MS = 30 * 1000,
  MOST_MS = 24 * 3600 * 1000,
  MOST_TEXT = 256
};

static cleave_worker_t *get_worker(cleave_isolate_t *isolate) {
  (void)pthread_mutex_lock(&isolate->lock);
  cleave_worker_t *worker = cleave_worker_retain(isolate->worker);
  (void)pthread_mutex_unlock(&isolate->lock);
  return worker;
}

/* A copy of this process made by fork gets a worker of its own when it first wants one; where it gets none,
 * the calls fail and say so. */
cleave_worker_t *cleave_isolate_worker(cleave_isolate_t *isolate) {
  cleave_worker_t *worker = get_worker(isolate);
  if (worker->owner == getpid()) {
    return worker;
  }
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_worker_release(worker);
  if (cleave_isolate_restart(isolate, &error) != CLEAVE_OK) {
    cleave_log(isolate->log, CLEAVE_LOG_WARNING, "%s", error.message);
  }
  return get_worker(isolate);
}

cleave_status_t cleave_isolate_put_region(cleave_worker_t *worker, const cleave_region_view_t *region,
                                          cleave_message_t *message) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t status =
      cleave_region_write(region, cleave_worker_constants_share, worker, &worker->request, &error);
  if (status != CLEAVE_OK) {
    (void)snprintf(message->text, sizeof message->text, "%.*s", (int)sizeof message->text - 1, error.message);
  }
  return status;
}

/* ---- questions about regions ---- */

/* Begins a call with the region; on failure nothing is to be ended. */
static cleave_status_t begin_with(cleave_worker_t *worker, const cleave_region_view_t *region,
                                  cleave_message_t *message) {
  CLEAVE_TRY(cleave_worker_begin(worker, message));
  cleave_worker_constants_begin(worker);
  cleave_status_t status = cleave_isolate_put_region(worker, region, message);
  if (status != CLEAVE_OK) {
    cleave_worker_end(worker);
  }
  return status;
}

/* Words for a region in messages: its name, or its first operator. */
static const char *label_of(const cleave_region_view_t *region) {
  bool has_name = region->name != NULL && region->name[0] != '\0';
  return has_name ? region->name : region->node_count > 0 ? region->nodes[0].op : "";
}

static cleave_worker_call_t call_about(const cleave_isolate_t *isolate, uint32_t kind, const char *doing,
                                       const cleave_region_view_t *region) {
  return (cleave_worker_call_t){.kind = kind,
                                .limit_ms = isolate->options.ask_ms,
                                .doing = doing,
                                .region = region == NULL ? NULL : label_of(region),
                                .fd = -1};
}

static cleave_status_t supports(void *state, const cleave_region_view_t *region, cleave_message_t *reason) {
  cleave_isolate_t *isolate = state;
  cleave_worker_t *worker = cleave_isolate_worker(isolate);
  cleave_worker_call_t call = call_about(isolate, CLEAVE_FRAME_SUPPORTS, "asked about", region);
  cleave_wire_in_t reply;
  cleave_status_t status = begin_with(worker, region, reason);
  if (status == CLEAVE_OK) {
    status = cleave_worker_ask(worker, &call, &reply, reason);
    cleave_worker_end(worker);
  }
  cleave_worker_release(worker);
  return status;
}

static cleave_status_t cost(void *state, const cleave_region_view_t *region, double *out_nanoseconds,
                            cleave_message_t *message) {
  cleave_isolate_t *isolate = state;
  cleave_worker_t *worker = cleave_isolate_worker(isolate);
  cleave_worker_call_t call = call_about(isolate, CLEAVE_FRAME_COST, "telling the cost of region", region);
  cleave_wire_in_t reply;
  *out_nanoseconds = 0.0;
  cleave_status_t status = begin_with(worker, region, message);
  if (status == CLEAVE_OK) {
    status = cleave_worker_ask(worker, &call, &reply, message);
    if (status == CLEAVE_OK) {
      *out_nanoseconds = cleave_wire_f64(&reply);
      status = reply.failed ? cleave_worker_answered_nonsense(worker, &call, message) : CLEAVE_OK;
    }
    cleave_worker_end(worker);
  }
  cleave_worker_release(worker);
  return status;
}

static cleave_status_t ask_review(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                  const cleave_region_view_t *region, bool *keep, cleave_message_t *message) {
  cleave_wire_in_t reply;
  for (uint32_t k = 0; k < region->node_count; k++) {
    unsigned char kept = keep[k];
    cleave_wire_put(&worker->request, &kept, 1, 1);
  }
  CLEAVE_TRY(cleave_worker_ask(worker, call, &reply, message));
  const unsigned char *kept = cleave_wire_take(&reply, region->node_count, 1, 1);
  if (reply.failed) {
    return cleave_worker_answered_nonsense(worker, call, message);
  }
  for (uint32_t k = 0; k < region->node_count; k++) {
    keep[k] = keep[k] && kept[k] != 0;
  }
  return CLEAVE_OK;
}

static cleave_status_t review(void *state, const cleave_region_view_t *region, bool *keep,
                              cleave_message_t *message) {
  cleave_isolate_t *isolate = state;
  cleave_worker_t *worker = cleave_isolate_worker(isolate);
  cleave_worker_call_t call = call_about(isolate, CLEAVE_FRAME_REVIEW, "reviewing region", region);
  cleave_status_t status = begin_with(worker, region, message);
  if (status == CLEAVE_OK) {
    status = ask_review(worker, &call, region, keep, message);
    cleave_worker_end(worker);
  }
  cleave_worker_release(worker);
  return status;
}

/* ---- configure ---- */

/* Copies the pairs. CLEAVE_ERROR_FORMAT where they cannot be read. */
static cleave_status_t copy_pairs(cleave_wire_in_t *in, cleave_arena_t *arena,
                                  const cleave_key_value_t **out_pairs, uint32_t *out_count) {
  uint32_t count = cleave_wire_count(in, 2 * sizeof(uint32_t));
  cleave_key_value_t *pairs = cleave_arena_allocate(arena, count, sizeof *pairs);
  for (uint32_t k = 0; pairs != NULL && k < count && !in->failed; k++) {
    const char *key = cleave_wire_named(in);
    const char *value = cleave_wire_named(in);
    pairs[k].key = cleave_arena_copy_text(arena, key, strlen(key));
    pairs[k].value = cleave_arena_copy_text(arena, value, strlen(value));
    if (pairs[k].key == NULL || pairs[k].value == NULL) {
      return CLEAVE_ERROR_OUT_OF_MEMORY;
    }
  }
  if (in->failed || pairs == NULL) {
    return in->failed ? CLEAVE_ERROR_FORMAT : CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  *out_pairs = pairs;
  *out_count = count;
  return CLEAVE_OK;
}

static cleave_status_t configure(void *state, const cleave_key_value_t *settings, uint32_t setting_count,
                                 const cleave_key_value_t **out_answers, uint32_t *out_answer_count,
                                 cleave_message_t *message) {
  cleave_isolate_t *isolate = state;
  cleave_worker_t *worker = cleave_isolate_worker(isolate);
  cleave_worker_call_t call = call_about(isolate, CLEAVE_FRAME_CONFIGURE, "being configured", NULL);
  cleave_wire_in_t reply;
  *out_answers = NULL;
  *out_answer_count = 0;
  cleave_status_t status = cleave_worker_begin(worker, message);
  if (status == CLEAVE_OK) {
    cleave_wire_put_pairs(&worker->request, settings, setting_count);
    status = cleave_worker_ask(worker, &call, &reply, message);
    if (status == CLEAVE_OK) {
      cleave_arena_reset(&isolate->answers);
      status = copy_pairs(&reply, &isolate->answers, out_answers, out_answer_count);
      status =
          status == CLEAVE_ERROR_FORMAT ? cleave_worker_answered_nonsense(worker, &call, message) : status;
    }
    cleave_worker_end(worker);
  }
  cleave_worker_release(worker);
  return status;
}

/* ---- the table ---- */

/* Takes the place of functions that are called otherwise here, so that the table is complete. */
static cleave_status_t initialise_nothing(const cleave_host_t *host, void **out_state,
                                          cleave_message_t *message) {
  (void)host;
  (void)out_state;
  (void)snprintf(message->text, sizeof message->text, "isolated libraries are initialised otherwise");
  return CLEAVE_ERROR_INTERNAL;
}

static void destroy_nothing(void *state) {
  (void)state;
}

static const char *keep_text(cleave_isolate_t *isolate, const char *text) {
  const char *copy =
      text == NULL ? NULL : cleave_arena_copy_text(&isolate->arena, text, strnlen(text, MOST_TEXT));
  isolate->lacks_memory = isolate->lacks_memory || (text != NULL && copy == NULL);
  return copy;
}

static void fill_functions(cleave_isolate_t *isolate) {
  cleave_backend_t *table = &isolate->table;
  uint32_t has = isolate->functions;
  table->initialise = has & CLEAVE_HAS_INITIALISE ? initialise_nothing : NULL;
  table->destroy = has & CLEAVE_HAS_DESTROY ? destroy_nothing : NULL;
  table->supports = has & CLEAVE_HAS_SUPPORTS ? supports : NULL;
  table->compile = has & CLEAVE_HAS_COMPILE ? cleave_isolate_compile : NULL;
  table->unload = has & CLEAVE_HAS_UNLOAD ? cleave_isolate_unload : NULL;
  table->info = has & CLEAVE_HAS_INFO ? cleave_isolate_info : NULL;
  table->run = has & CLEAVE_HAS_RUN ? cleave_isolate_run : NULL;
  table->profile = has & CLEAVE_HAS_PROFILE ? cleave_isolate_profile : NULL;
  table->cost = has & CLEAVE_HAS_COST ? cost : NULL;
  table->review = has & CLEAVE_HAS_REVIEW ? review : NULL;
  table->configure = has & CLEAVE_HAS_CONFIGURE ? configure : NULL;
  table->devices = has & CLEAVE_HAS_DEVICES ? &cleave_isolate_devices : NULL;
  table->adds = (has & CLEAVE_HAS_ADDS) != 0;
  table->takes_sparse = (has & CLEAVE_HAS_SPARSE) != 0;
}

/* Reads the reply to OPEN. The size is the library's own, so that who checks it sees what it said; texts of
 * a struct that is too small are not there. */
static bool read_table(cleave_isolate_t *isolate, cleave_wire_in_t *reply) {
  cleave_backend_t *table = &isolate->table;
  *table = (cleave_backend_t){.size = (size_t)cleave_wire_u64(reply)};
  table->size = table->size > sizeof *table ? sizeof *table : table->size;
  table->abi_major = cleave_wire_u32(reply);
  table->abi_minor = cleave_wire_u32(reply);
  isolate->functions = cleave_wire_u32(reply);
  table->name = keep_text(isolate, cleave_wire_text(reply));
  table->version = keep_text(isolate, cleave_wire_text(reply));
  table->description = keep_text(isolate, cleave_wire_text(reply));
  uint32_t count = cleave_wire_count(reply, sizeof(uint32_t));
  for (uint32_t k = 0; k < count && !reply->failed; k++) {
    const char *file = keep_text(isolate, cleave_wire_text(reply));
    if (file != NULL && isolate->extensions.rule_file_count < CLEAVE_ISOLATE_RULE_FILES) {
      isolate->rule_files[isolate->extensions.rule_file_count++] = file;
    }
  }
  isolate->extensions.size = sizeof isolate->extensions;
  isolate->extensions.rule_files = isolate->rule_files;
  table->extensions = isolate->extensions.rule_file_count > 0 ? &isolate->extensions : NULL;
  fill_functions(isolate);
  return !reply->failed;
}

const cleave_backend_t *cleave_isolate_table(const cleave_isolate_t *isolate) {
  return &isolate->table;
}

/* ---- opening ---- */

static uint32_t limit_or(uint32_t given, uint32_t otherwise) {
  return given == 0 ? otherwise : given > MOST_MS ? MOST_MS : given;
}

static void set_options(cleave_isolate_t *isolate, const cleave_isolation_options_t *given) {
  cleave_isolation_options_t options = {.size = sizeof options};
  if (given != NULL) {
    memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
  }
  options.ask_ms = limit_or(options.ask_ms, ASK_MS);
  options.compile_ms = limit_or(options.compile_ms, COMPILE_MS);
  options.run_ms = limit_or(options.run_ms, RUN_MS);
  isolate->options = options;
}

/* A message of a worker as an error about the file, which it may name already. */
static cleave_status_t fail_open(const cleave_isolate_t *isolate, cleave_status_t status,
                                 const cleave_message_t *message, cleave_error_t *error) {
  if (status == CLEAVE_ERROR_OUT_OF_MEMORY && message->text[0] == '\0') {
    return cleave_error_out_of_memory(error);
  }
  const char *text = message->text[0] == '\0' ? "no reason given" : message->text;
  size_t length = strlen(isolate->absolute);
  if (strncmp(text, isolate->absolute, length) == 0 && strncmp(text + length, ": ", 2) == 0) {
    text += length + 2;
  }
  return cleave_error_set(error, status, "%s: %s", isolate->path, text);
}

/* Starts a worker and opens the library in it; `read` takes the table over. */
static cleave_status_t open_worker(cleave_isolate_t *isolate, cleave_worker_t **out_worker,
                                   uint32_t *out_functions, bool reads, cleave_error_t *error) {
  cleave_worker_t *worker = NULL;
  cleave_message_t message = {.text = ""};
  cleave_wire_in_t reply;
  cleave_worker_call_t call = call_about(isolate, CLEAVE_FRAME_OPEN, "being loaded", NULL);
  *out_worker = NULL;
  CLEAVE_TRY(cleave_worker_start(isolate->name, isolate->log, &worker, error));
  cleave_status_t status = cleave_worker_begin(worker, &message);
  if (status == CLEAVE_OK) {
    cleave_wire_put_text(&worker->request, isolate->absolute);
    status = cleave_worker_ask(worker, &call, &reply, &message);
    bool is_read = true;
    if (status == CLEAVE_OK && reads) {
      is_read = read_table(isolate, &reply);
      *out_functions = isolate->functions;
    } else if (status == CLEAVE_OK) {
      (void)cleave_wire_u64(&reply); /* size */
      (void)cleave_wire_u32(&reply); /* version */
      (void)cleave_wire_u32(&reply);
      *out_functions = cleave_wire_u32(&reply);
      is_read = !reply.failed;
    }
    if (!is_read) {
      status = cleave_worker_answered_nonsense(worker, &call, &message);
    }
    cleave_worker_end(worker);
  }
  status = status == CLEAVE_OK && isolate->lacks_memory ? CLEAVE_ERROR_OUT_OF_MEMORY : status;
  if (status != CLEAVE_OK) {
    status = fail_open(isolate, status, &message, error);
    cleave_worker_release(worker);
    return status;
  }
  *out_worker = worker;
  return CLEAVE_OK;
}

static void free_isolate(cleave_isolate_t *isolate) {
  cleave_arena_deinit(&isolate->arena);
  cleave_arena_deinit(&isolate->answers);
  (void)pthread_mutex_destroy(&isolate->lock);
  cleave_free(isolate->path);
  cleave_free(isolate->absolute);
  cleave_free(isolate);
}

cleave_status_t cleave_isolate_open(const char *path, const char *absolute, const char *name,
                                    cleave_log_t *log, const cleave_isolation_options_t *options,
                                    cleave_isolate_t **out_isolate, cleave_error_t *error) {
  *out_isolate = NULL;
  cleave_isolate_t *isolate = cleave_allocate_zeroed(1, sizeof *isolate);
  if (isolate == NULL || pthread_mutex_init(&isolate->lock, NULL) != 0) {
    cleave_free(isolate);
    return cleave_error_out_of_memory(error);
  }
  isolate->log = log;
  set_options(isolate, options);
  cleave_isolate_rename(isolate, name);
  isolate->path = cleave_copy_text(path, strlen(path));
  isolate->absolute = cleave_copy_text(absolute, strlen(absolute));
  bool is_complete = isolate->path != NULL && isolate->absolute != NULL;
  cleave_status_t status = is_complete ? CLEAVE_OK : cleave_error_out_of_memory(error);
  if (status == CLEAVE_OK) {
    status = open_worker(isolate, &isolate->worker, &isolate->functions, true, error);
  }
  if (status == CLEAVE_OK && (isolate->functions & CLEAVE_HAS_EXTENSIONS) != 0) {
    status =
        cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                         "%s: adds operators, partitioners or passes to cleave, which an isolated library "
                         "cannot: load it without isolation",
                         path);
    cleave_worker_release(isolate->worker);
  }
  if (status != CLEAVE_OK) {
    free_isolate(isolate);
    return status;
  }
  *out_isolate = isolate;
  return CLEAVE_OK;
}

void cleave_isolate_destroy(cleave_isolate_t *isolate) {
  if (isolate == NULL) {
    return;
  }
  cleave_worker_release(isolate->worker);
  free_isolate(isolate);
}

void cleave_isolate_rename(cleave_isolate_t *isolate, const char *name) {
  (void)snprintf(isolate->name, sizeof isolate->name, "%s", name);
  if (isolate->worker != NULL) {
    (void)snprintf(isolate->worker->library, sizeof isolate->worker->library, "%s", name);
  }
}

/* ---- starting, and starting again ---- */

static cleave_status_t initialise(cleave_isolate_t *isolate, cleave_worker_t *worker,
                                  cleave_message_t *message) {
  cleave_worker_call_t call = call_about(isolate, CLEAVE_FRAME_INITIALISE, "initialising", NULL);
  cleave_wire_in_t reply;
  CLEAVE_TRY(cleave_worker_begin(worker, message));
  cleave_status_t status = cleave_worker_ask(worker, &call, &reply, message);
  if (status == CLEAVE_OK && !isolate->is_initialised) {
    cleave_isolate_read_devices(isolate, &reply);
    isolate->is_initialised = !reply.failed;
    status = reply.failed ? cleave_worker_answered_nonsense(worker, &call, message) : CLEAVE_OK;
  }
  cleave_worker_end(worker);
  return status;
}

cleave_status_t cleave_isolate_initialise(cleave_isolate_t *isolate, cleave_message_t *message) {
  return initialise(isolate, isolate->worker, message);
}

cleave_status_t cleave_isolate_restart(cleave_isolate_t *isolate, cleave_error_t *error) {
  cleave_worker_t *worker = get_worker(isolate);
  bool is_usable = worker->owner == getpid() && !atomic_load(&worker->is_lost);
  cleave_worker_release(worker);
  if (is_usable) {
    return CLEAVE_OK;
  }
  cleave_message_t message = {.text = ""};
  uint32_t functions = 0;
  CLEAVE_TRY(open_worker(isolate, &worker, &functions, false, error));
  cleave_status_t status = CLEAVE_OK;
  if (functions != isolate->functions) {
    status =
        cleave_error_set(error, CLEAVE_ERROR_BACKEND, "%s: is another library than before: unload '%s' first",
                         isolate->path, isolate->name);
  } else {
    status = initialise(isolate, worker, &message);
    status = status == CLEAVE_OK ? CLEAVE_OK : fail_open(isolate, status, &message, error);
  }
  if (status != CLEAVE_OK) {
    cleave_worker_release(worker);
    return status;
  }
  (void)pthread_mutex_lock(&isolate->lock);
  cleave_worker_t *before = isolate->worker;
  isolate->worker = worker;
  (void)pthread_mutex_unlock(&isolate->lock);
  cleave_worker_release(before);
  return CLEAVE_OK;
}

/* ---- what it is ---- */

void cleave_isolate_describe(cleave_isolate_t *isolate, cleave_isolation_t *out_description) {
  cleave_worker_t *worker = cleave_isolate_worker(isolate);
  cleave_isolation_t description = {.size = sizeof description,
                                    .is_isolated = true,
                                    .is_lost = atomic_load(&worker->is_lost),
                                    .process = atomic_load(&worker->process)};
  if (description.is_lost) {
    (void)snprintf(description.reason, sizeof description.reason, "%s", worker->reason);
  }
  *out_description = description;
  cleave_worker_release(worker);
}

bool cleave_isolate_is_lost(cleave_isolate_t *isolate) {
  cleave_worker_t *worker = get_worker(isolate);
  bool is_lost = atomic_load(&worker->is_lost);
  cleave_worker_release(worker);
  return is_lost;
}

bool cleave_isolate_falls_back(const cleave_isolate_t *isolate) {
  return isolate->options.fallback;
}

// SPDX-License-Identifier: Apache-2.0
// Requests, one after the other. The library is called in the one thread that reads them; what it leaves in
// messages and tables is copied with care, since it may have filled them in wrongly without crashing.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/region_json.h"
#include "backend/region_wire.h"
#include "base/threads.h"
#include "worker/worker.h"

enum { MOST_RULE_FILES = 64, MOST_ANSWERS = 4096 };

static worker_t *served; /* for the log; there is one in a process */

void worker_end(void) {
  if (fcntl(CLEAVE_WORKER_SOCKET, F_GETFD) < 0) {
    _exit(CLEAVE_WORKER_EXIT_CLOSED);
  }
  (void)kill(0, SIGKILL);
  _exit(0);
}

void worker_send(worker_t *worker, uint32_t kind, const cleave_wire_out_t *frame) {
  (void)pthread_mutex_lock(&worker->sending);
  cleave_frame_status_t sent =
      frame->failed ? CLEAVE_FRAME_NO_MEMORY
                    : cleave_channel_send(&worker->channel, kind, frame->data, frame->length, -1);
  (void)pthread_mutex_unlock(&worker->sending);
  if (sent != CLEAVE_FRAME_OK) {
    worker_end();
  }
}

static void log_line(const cleave_host_t *its_host, int32_t level, const char *line) {
  (void)its_host;
  cleave_wire_out_t frame = {0};
  char text[1024];
  (void)snprintf(text, sizeof text, "%s", line == NULL ? "" : line);
  cleave_wire_put_u32(&frame, level < 0 ? UINT32_MAX : (uint32_t)level);
  cleave_wire_put_text(&frame, text);
  if (!frame.failed) {
    worker_send(served, CLEAVE_FRAME_LOG, &frame);
  }
  cleave_wire_deinit(&frame);
}

static const cleave_host_t host = {.size = sizeof(cleave_host_t),
                                   .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
                                   .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
                                   .version = CLEAVE_VERSION,
                                   .parallel_for = cleave_parallel_for,
                                   .log = log_line,
                                   .region_to_json = cleave_host_region_to_json,
                                   .free_json = cleave_host_free_json,
                                   .region_from_json = cleave_host_region_from_json,
                                   .free_region = cleave_host_free_region};

cleave_status_t worker_fail(const cleave_error_t *error, cleave_message_t *message) {
  (void)snprintf(message->text, sizeof message->text, "%.*s", (int)sizeof message->text - 1, error->message);
  return error->status;
}

bool worker_read_pairs(worker_t *worker, cleave_wire_in_t *in, const cleave_key_value_t **out_pairs,
                       uint32_t *out_count) {
  *out_count = cleave_wire_count(in, 2 * sizeof(uint32_t));
  cleave_key_value_t *pairs = cleave_arena_allocate(&worker->arena, *out_count, sizeof *pairs);
  for (uint32_t k = 0; pairs != NULL && k < *out_count; k++) {
    pairs[k].key = cleave_wire_named(in);
    pairs[k].value = cleave_wire_text(in);
  }
  *out_pairs = pairs;
  return pairs != NULL && !in->failed;
}

static cleave_status_t fail_malformed(cleave_message_t *message) {
  (void)snprintf(message->text, sizeof message->text, "a request cannot be read");
  return CLEAVE_ERROR_INTERNAL;
}

/* ---- opening ---- */

static uint32_t functions_of(const cleave_backend_t *table) {
  const cleave_backend_extensions_t *extensions = table->extensions;
  bool extends = extensions != NULL && (extensions->operator_count > 0 || extensions->partitioner_count > 0 ||
                                        extensions->pass_count > 0);
  const struct {
    bool is_there;
    uint32_t bit;
  } FUNCTIONS[] = {{table->initialise != NULL, CLEAVE_HAS_INITIALISE},
                   {table->destroy != NULL, CLEAVE_HAS_DESTROY},
                   {table->supports != NULL, CLEAVE_HAS_SUPPORTS},
                   {table->compile != NULL, CLEAVE_HAS_COMPILE},
                   {table->unload != NULL, CLEAVE_HAS_UNLOAD},
                   {table->info != NULL, CLEAVE_HAS_INFO},
                   {table->run != NULL, CLEAVE_HAS_RUN},
                   {table->profile != NULL, CLEAVE_HAS_PROFILE},
                   {table->cost != NULL, CLEAVE_HAS_COST},
                   {table->review != NULL, CLEAVE_HAS_REVIEW},
                   {table->configure != NULL, CLEAVE_HAS_CONFIGURE},
                   {table->adds, CLEAVE_HAS_ADDS},
                   {table->takes_sparse, CLEAVE_HAS_SPARSE},
                   {table->devices != NULL, CLEAVE_HAS_DEVICES},
                   {extends, CLEAVE_HAS_EXTENSIONS}};
  uint32_t functions = 0;
  for (size_t k = 0; k < sizeof FUNCTIONS / sizeof FUNCTIONS[0]; k++) {
    functions |= FUNCTIONS[k].is_there ? FUNCTIONS[k].bit : 0;
  }
  return functions;
}

/* The table as the library filled it in, as far as both know it: of one that is too small or of another
 * version, only what says so. */
static void put_table(worker_t *worker, const cleave_backend_t *backend) {
  cleave_wire_out_t *reply = &worker->reply;
  cleave_backend_t *table = &worker->table;
  bool has_head = backend->size >= offsetof(cleave_backend_t, name);
  bool has_names = backend->size >= CLEAVE_BACKEND_SIZE_1_0;
  if (has_names && backend->abi_major == CLEAVE_BACKEND_ABI_MAJOR) {
    memcpy(table, backend, backend->size < sizeof *table ? backend->size : sizeof *table);
  }
  cleave_wire_put_u64(reply, backend->size);
  cleave_wire_put_u32(reply, has_head ? backend->abi_major : 0);
  cleave_wire_put_u32(reply, has_head ? backend->abi_minor : 0);
  cleave_wire_put_u32(reply, functions_of(table));
  cleave_wire_put_text(reply, has_names ? backend->name : NULL);
  cleave_wire_put_text(reply, table->version);
  cleave_wire_put_text(reply, table->description);
  const cleave_backend_extensions_t *extensions = table->extensions;
  uint32_t count = extensions == NULL ? 0 : extensions->rule_file_count;
  count = count > MOST_RULE_FILES ? MOST_RULE_FILES : count;
  cleave_wire_put_u32(reply, count);
  for (uint32_t k = 0; k < count; k++) {
    cleave_wire_put_text(reply, extensions->rule_files[k]);
  }
}

static cleave_status_t open_library(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  const char *path = cleave_wire_named(in);
  if (in->failed || worker->library.handle != NULL) {
    return fail_malformed(message);
  }
  if (cleave_library_open(path, &worker->library, &error) != CLEAVE_OK) {
    return worker_fail(&error, message);
  }
  const cleave_backend_t *backend =
      worker->library.enter(CLEAVE_BACKEND_ABI_MAJOR, CLEAVE_BACKEND_ABI_MINOR, message);
  if (backend == NULL) {
    return CLEAVE_ERROR_BACKEND;
  }
  message->text[0] = '\0';
  put_table(worker, backend);
  return CLEAVE_OK;
}

static void put_devices(worker_t *worker) {
  const cleave_backend_devices_t *devices = worker->table.devices;
  uint32_t count = devices == NULL || devices->count == NULL ? 0 : devices->count(worker->state);
  count = count > CLEAVE_MOST_DEVICES ? CLEAVE_MOST_DEVICES : count;
  cleave_wire_put_u32(&worker->reply, count);
  for (uint32_t k = 0; k < count; k++) {
    cleave_device_properties_t properties = {.size = sizeof properties};
    cleave_message_t message = {.text = ""};
    if (devices->properties == NULL ||
        devices->properties(worker->state, k, &properties, &message) != CLEAVE_OK) {
      (void)snprintf(properties.name, sizeof properties.name, "device %u", (unsigned)k);
    }
    properties.name[sizeof properties.name - 1] = '\0';
    cleave_wire_put_text(&worker->reply, properties.name);
    cleave_wire_put_u64(&worker->reply, properties.memory_bytes);
  }
}

static cleave_status_t initialise(worker_t *worker, cleave_message_t *message) {
  if (worker->table.initialise == NULL || worker->is_initialised) {
    return fail_malformed(message);
  }
  CLEAVE_TRY(worker->table.initialise(&host, &worker->state, message));
  worker->is_initialised = true;
  put_devices(worker);
  return CLEAVE_OK;
}

/* ---- questions ---- */

static cleave_status_t read_region(worker_t *worker, cleave_wire_in_t *in, cleave_region_view_t *region,
                                   cleave_message_t *message) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t status =
      cleave_region_read(in, &worker->arena, worker_constants_find, &worker->constants, region, &error);
  return status == CLEAVE_OK ? CLEAVE_OK : worker_fail(&error, message);
}

static cleave_status_t answer_cost(worker_t *worker, const cleave_region_view_t *region,
                                   cleave_message_t *message) {
  double nanoseconds = 0.0;
  if (worker->table.cost == NULL) {
    return fail_malformed(message);
  }
  CLEAVE_TRY(worker->table.cost(worker->state, region, &nanoseconds, message));
  cleave_wire_put_f64(&worker->reply, nanoseconds);
  return CLEAVE_OK;
}

static cleave_status_t answer_review(worker_t *worker, cleave_wire_in_t *in,
                                     const cleave_region_view_t *region, cleave_message_t *message) {
  const unsigned char *kept = cleave_wire_take(in, region->node_count, 1, 1);
  bool *keep = cleave_arena_allocate(&worker->arena, region->node_count, sizeof *keep);
  if (kept == NULL || keep == NULL || worker->table.review == NULL) {
    return fail_malformed(message);
  }
  for (uint32_t k = 0; k < region->node_count; k++) {
    keep[k] = kept[k] != 0;
  }
  CLEAVE_TRY(worker->table.review(worker->state, region, keep, message));
  for (uint32_t k = 0; k < region->node_count; k++) {
    unsigned char byte = keep[k];
    cleave_wire_put(&worker->reply, &byte, 1, 1);
  }
  return CLEAVE_OK;
}

static cleave_status_t answer_configure(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  const cleave_key_value_t *settings = NULL;
  const cleave_key_value_t *answers = NULL;
  uint32_t count = 0;
  uint32_t answer_count = 0;
  if (!worker_read_pairs(worker, in, &settings, &count) || worker->table.configure == NULL) {
    return fail_malformed(message);
  }
  CLEAVE_TRY(worker->table.configure(worker->state, settings, count, &answers, &answer_count, message));
  if (answer_count > MOST_ANSWERS || (answers == NULL && answer_count > 0)) {
    (void)snprintf(message->text, sizeof message->text, "configure gave %u answers, which is not possible",
                   (unsigned)answer_count);
    return CLEAVE_ERROR_BACKEND;
  }
  cleave_wire_put_pairs(&worker->reply, answers, answer_count);
  return CLEAVE_OK;
}

static cleave_status_t answer_about(worker_t *worker, uint32_t kind, cleave_wire_in_t *in,
                                    cleave_message_t *message) {
  cleave_region_view_t region;
  CLEAVE_TRY(read_region(worker, in, &region, message));
  if (kind == CLEAVE_FRAME_SUPPORTS) {
    return worker->table.supports(worker->state, &region, message);
  }
  return kind == CLEAVE_FRAME_COST ? answer_cost(worker, &region, message)
                                   : answer_review(worker, in, &region, message);
}

/* ---- constants ---- */

/* A constant that cannot be had is missed by the next region that uses it. */
static void take_constant(worker_t *worker, cleave_wire_in_t *in) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  uint32_t id = cleave_wire_u32(in);
  uint64_t bytes = cleave_wire_u64(in);
  if (!in->failed && worker->request.fd >= 0 &&
      worker_constants_add(&worker->constants, id, (size_t)bytes, worker->request.fd, &error) != CLEAVE_OK) {
    log_line(NULL, 1, error.message);
  }
}

/* ---- the whole ---- */

static void close_all(worker_t *worker) {
  worker_program_unload_all(worker);
  if (worker->is_initialised && worker->table.destroy != NULL) {
    worker->table.destroy(worker->state);
  }
  cleave_library_close(&worker->library);
  worker_constants_deinit(&worker->constants);
  worker_scratch_free(&worker->scratch);
}

static cleave_status_t answer(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  uint32_t kind = worker->request.kind;
  bool needs_library =
      kind != CLEAVE_FRAME_OPEN && kind != CLEAVE_FRAME_INITIALISE && kind != CLEAVE_FRAME_CLOSE;
  if (needs_library && !worker->is_initialised) {
    return fail_malformed(message);
  }
  switch (kind) {
    case CLEAVE_FRAME_OPEN: return open_library(worker, in, message);
    case CLEAVE_FRAME_INITIALISE: return initialise(worker, message);
    case CLEAVE_FRAME_SUPPORTS:
    case CLEAVE_FRAME_COST:
    case CLEAVE_FRAME_REVIEW: return answer_about(worker, kind, in, message);
    case CLEAVE_FRAME_CONFIGURE: return answer_configure(worker, in, message);
    case CLEAVE_FRAME_COMPILE: return worker_program_compile(worker, in, message);
    case CLEAVE_FRAME_RUN: return worker_program_run(worker, in, message);
    case CLEAVE_FRAME_UNLOAD: return worker_program_unload(worker, in, message);
    case CLEAVE_FRAME_CLOSE: close_all(worker); return CLEAVE_OK;
    default: return fail_malformed(message);
  }
}

/* Puts status and message before what was answered; after a failure that is left out. */
static void send_reply(worker_t *worker, cleave_status_t status, cleave_message_t *message) {
  cleave_wire_out_t *frame = &worker->frame;
  message->text[sizeof message->text - 1] = '\0';
  cleave_wire_reset(frame);
  cleave_wire_put_u32(frame, (uint32_t)status);
  cleave_wire_put_u32(frame, (uint32_t)message->code);
  cleave_wire_put_text(frame, message->text);
  if (status == CLEAVE_OK) {
    cleave_wire_put(frame, worker->reply.data, worker->reply.length, CLEAVE_REPLY_ALIGNMENT);
    frame->failed = frame->failed || worker->reply.failed;
  }
  worker_send(worker, CLEAVE_FRAME_REPLY, frame);
}

bool worker_serve(worker_t *worker) {
  served = worker;
  if (cleave_channel_receive(&worker->channel, &worker->request) != CLEAVE_FRAME_OK) {
    worker_end();
  }
  cleave_wire_in_t in = cleave_wire_read(worker->request.data, worker->request.length);
  uint32_t kind = worker->request.kind;
  if (kind == CLEAVE_FRAME_SHARE) {
    take_constant(worker, &in);
  } else if (kind == CLEAVE_FRAME_DROP) {
    worker_constants_drop(&worker->constants, cleave_wire_u32(&in));
  } else {
    cleave_message_t message = {.text = ""};
    cleave_wire_reset(&worker->reply);
    send_reply(worker, answer(worker, &in, &message), &message);
    cleave_arena_reset(&worker->arena);
  }
  if (worker->request.fd >= 0) {
    (void)close(worker->request.fd);
  }
  if (kind == CLEAVE_FRAME_CLOSE) {
    cleave_wire_deinit(&worker->reply);
    cleave_wire_deinit(&worker->frame);
    cleave_arena_deinit(&worker->arena);
    cleave_free(worker->request.data);
    cleave_array_free(&worker->programs);
  }
  return kind != CLEAVE_FRAME_CLOSE;
}

// SPDX-License-Identifier: Apache-2.0
// The library of the worker: opened, started, asked, closed. What it leaves in messages and tables is copied
// with care, since it may have filled them in wrongly without crashing.
#include <stdio.h>
#include <string.h>

#include "backend/region/region_json.h"
#include "system/file.h"
#include "system/threads.h"
#include "worker/worker.h"

enum { MAX_ANSWERS = 4096 };

static const cleave_host_t host = {.size = sizeof(cleave_host_t),
                                   .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
                                   .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
                                   .version = CLEAVE_VERSION,
                                   .parallel_for = cleave_parallel_for,
                                   .log = worker_log,
                                   .region_to_json = cleave_host_region_to_json,
                                   .free_json = cleave_host_free_json,
                                   .region_from_json = cleave_host_region_from_json,
                                   .free_region = cleave_host_free_region,
                                   .constant_packed = cleave_file_drop_pages};

/* ---- opening ---- */

static bool has_executors(const cleave_backend_t *table) {
  const cleave_backend_imperative_t *own = table->imperative;
  return own != NULL && own->size >= sizeof *own && own->get_executor != NULL &&
         own->release_executor != NULL && own->execute != NULL;
}

static bool has_blobs(const cleave_backend_t *table) {
  const cleave_backend_blobs_t *own = table->blobs;
  return own != NULL && own->size >= sizeof *own && own->save != NULL && own->check != NULL &&
         own->load != NULL;
}

static uint32_t functions_of(const cleave_backend_t *table) {
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
                   {has_executors(table), CLEAVE_HAS_IMPERATIVE},
                   {has_blobs(table), CLEAVE_HAS_BLOBS}};
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
  bool has_names = backend->size >= CLEAVE_BACKEND_SIZE_REQUIRED;
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
  worker_put_extensions(worker);
  worker_put_option_keys(worker);
}

cleave_status_t worker_open(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  const char *path = cleave_wire_named(in);
  if (in->failed || worker->library.handle != NULL) {
    return worker_fail_request(message);
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
  count = count > CLEAVE_MAX_DEVICES ? CLEAVE_MAX_DEVICES : count;
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

cleave_status_t worker_initialise(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  (void)in;
  if (worker->table.initialise == NULL || worker->is_initialised) {
    return worker_fail_request(message);
  }
  CLEAVE_TRY(worker->table.initialise(&host, &worker->state, message));
  worker->is_initialised = true;
  put_devices(worker);
  return CLEAVE_OK;
}

/* The library stays mapped until the process ends, since threads of its own may still run in it. */
cleave_status_t worker_close(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  (void)in;
  (void)message;
  worker_partitioner_end_all(worker);
  worker_program_unload_all(worker);
  if (worker->is_initialised && worker->table.destroy != NULL) {
    worker->table.destroy(worker->state);
  }
  worker_constants_deinit(&worker->constants);
  worker_scratch_free(&worker->scratch);
  cleave_array_free(&worker->programs);
  cleave_array_free(&worker->partitionings);
  return CLEAVE_OK;
}

/* ---- questions ---- */

cleave_status_t worker_supports(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  cleave_region_view_t region;
  CLEAVE_TRY(worker_read_region(worker, in, &worker->arena, &region, message));
  return worker->table.supports(worker->state, &region, message);
}

cleave_status_t worker_cost(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  cleave_region_view_t region;
  double nanoseconds = 0.0;
  CLEAVE_TRY(worker_read_region(worker, in, &worker->arena, &region, message));
  if (worker->table.cost == NULL) {
    return worker_fail_request(message);
  }
  CLEAVE_TRY(worker->table.cost(worker->state, &region, &nanoseconds, message));
  cleave_wire_put_f64(&worker->reply, nanoseconds);
  return CLEAVE_OK;
}

cleave_status_t worker_review(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  cleave_region_view_t region;
  CLEAVE_TRY(worker_read_region(worker, in, &worker->arena, &region, message));
  const unsigned char *kept = cleave_wire_take(in, region.node_count, 1, 1);
  bool *keep = cleave_arena_allocate(&worker->arena, region.node_count, sizeof *keep);
  if (kept == NULL || keep == NULL || worker->table.review == NULL) {
    return worker_fail_request(message);
  }
  for (uint32_t k = 0; k < region.node_count; k++) {
    keep[k] = kept[k] != 0;
  }
  CLEAVE_TRY(worker->table.review(worker->state, &region, keep, message));
  cleave_wire_put(&worker->reply, keep, region.node_count, 1);
  return CLEAVE_OK;
}

cleave_status_t worker_configure(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  const cleave_key_value_t *settings = NULL;
  const cleave_key_value_t *answers = NULL;
  uint32_t count = 0;
  uint32_t answer_count = 0;
  if (!worker_read_pairs(&worker->arena, in, &settings, &count) || worker->table.configure == NULL) {
    return worker_fail_request(message);
  }
  CLEAVE_TRY(worker->table.configure(worker->state, settings, count, &answers, &answer_count, message));
  if (answer_count > MAX_ANSWERS || (answers == NULL && answer_count > 0)) {
    (void)snprintf(message->text, sizeof message->text, "configure gave %u answer%s, more than allowed",
                   (unsigned)answer_count, CLEAVE_PLURAL(answer_count));
    return CLEAVE_ERROR_BACKEND;
  }
  cleave_wire_put_pairs(&worker->reply, answers, answer_count);
  return CLEAVE_OK;
}

/* ---- constants ---- */

/* A constant that cannot be had is missed by the next region that uses it. */
cleave_status_t worker_share(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  uint32_t id = cleave_wire_u32(in);
  uint64_t bytes = cleave_wire_u64(in);
  (void)message;
  if (!in->failed && worker->request.fd >= 0 &&
      worker_constants_add(&worker->constants, id, (size_t)bytes, worker->request.fd, &error) != CLEAVE_OK) {
    worker_log(NULL, 1, error.message);
  }
  return CLEAVE_OK;
}

cleave_status_t worker_drop(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  (void)message;
  worker_constants_drop(&worker->constants, cleave_wire_u32(in));
  return CLEAVE_OK;
}

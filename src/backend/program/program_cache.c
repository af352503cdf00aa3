// SPDX-License-Identifier: Apache-2.0
// Programs by their identity. The cache's lock guards the chains and the counts of references, never a
// compile or a run; a program whose last reference goes leaves its chain under the lock, so that nobody finds
// it dying.
#include "backend/program/program_cache.h"

#include <stdio.h>
#include <string.h>

#include "backend/program/backend_options.h"
#include "backend/program/blob_key.h"
#include "backend/program/blob_store.h"
#include "base/hash.h"
#include "base/memory.h"

enum { BUCKETS = 1024 };

struct cleave_program_cache {
  pthread_mutex_t lock;
  uint32_t references; /* by sessions, programs and the user */
  uint32_t count;
  cleave_program_t *buckets[BUCKETS];
};

/* ---- the cache ---- */

cleave_status_t cleave_program_cache_create(cleave_program_cache_t **out_cache, cleave_error_t *error) {
  *out_cache = NULL;
  cleave_program_cache_t *cache = cleave_allocate_zeroed(1, sizeof *cache);
  CLEAVE_TRY_MEMORY(cache, error);
  if (pthread_mutex_init(&cache->lock, NULL) != 0) {
    cleave_free(cache);
    return cleave_error_out_of_memory(error);
  }
  cache->references = 1;
  *out_cache = cache;
  return CLEAVE_OK;
}

cleave_program_cache_t *cleave_program_cache_retain(cleave_program_cache_t *cache) {
  (void)pthread_mutex_lock(&cache->lock);
  cache->references++;
  (void)pthread_mutex_unlock(&cache->lock);
  return cache;
}

void cleave_program_cache_release(cleave_program_cache_t *cache) {
  if (cache == NULL) {
    return;
  }
  (void)pthread_mutex_lock(&cache->lock);
  bool is_last = --cache->references == 0;
  (void)pthread_mutex_unlock(&cache->lock);
  if (is_last) {
    (void)pthread_mutex_destroy(&cache->lock);
    cleave_free(cache);
  }
}

uint32_t cleave_program_cache_count(cleave_program_cache_t *cache) {
  (void)pthread_mutex_lock(&cache->lock);
  uint32_t count = cache->count;
  (void)pthread_mutex_unlock(&cache->lock);
  return count;
}

/* ---- programs ---- */

/* Executors need no memory but their inputs and outputs. */
static const cleave_program_info_t executor_info = {.size = sizeof executor_info};

static uint64_t hash_name(const char *name) {
  return cleave_hash_bytes(CLEAVE_HASH_SEED, name, strlen(name));
}

/* Hash of what a program depends on besides the view: options, and settings of configure. */
static uint64_t hash_options(const cleave_program_request_t *request) {
  return cleave_hash_combine(cleave_compile_options_hash(request->options),
                             atomic_load(request->handle->settings));
}

bool cleave_program_fits(const cleave_program_t *program, const cleave_program_request_t *request) {
  const cleave_view_t *view = request->view;
  return program->hash == view->region.hash && program->handle == request->handle &&
         program->value_count == view->region.value_count &&
         program->input_count == view->region.input_count &&
         program->output_count == view->region.output_count &&
         program->constant_count == view->constant_count && program->options_hash == hash_options(request) &&
         program->is_executor == request->is_executor && !program->is_private && !request->is_private &&
         program->name_hash == hash_name(request->name) &&
         (view->constant_count == 0 || memcmp(program->constant_versions, view->constant_versions,
                                              view->constant_count * sizeof *view->constant_versions) == 0);
}

static void destroy(cleave_program_t *program) {
  const cleave_backend_t *backend = program->handle->backend;
  if (program->program != NULL && program->is_executor) {
    backend->imperative->release_executor(program->program);
  } else if (program->program != NULL) {
    backend->unload(program->program);
  }
  if (program->program != NULL) {
    cleave_registry_release(program->handle);
  }
  if (program->cache != NULL) {
    (void)pthread_mutex_destroy(&program->running);
    cleave_program_cache_release(program->cache);
  }
  cleave_blob_deinit(&program->blob);
  cleave_free(program->constant_versions);
  cleave_free(program);
}

/* ---- blobs ---- */

/* The blob functions of a backend that has them all, or NULL. */
static const cleave_backend_blobs_t *find_blobs(const cleave_program_request_t *request) {
  const cleave_backend_blobs_t *blobs = request->handle->backend->blobs;
  bool is_complete = request->blobs != NULL && !request->is_private && !request->is_executor &&
                     blobs != NULL &&
                     blobs->size >= offsetof(cleave_backend_blobs_t, load) + sizeof blobs->load &&
                     blobs->save != NULL && blobs->check != NULL && blobs->load != NULL;
  return is_complete ? blobs : NULL;
}

/* Whatever the backend does not take is refused, and compiled. */
static bool load_blob(cleave_program_t *program, const cleave_program_request_t *request, const char *key) {
  const cleave_backend_blobs_t *blobs = request->handle->backend->blobs;
  void *state = request->handle->state;
  cleave_message_t reason = {.text = ""};
  cleave_blob_t blob;
  if (!cleave_blob_store_read(request->blobs, key, request->options->threads, &blob)) {
    return false;
  }
  cleave_status_t status = blobs->check(state, request->options->device, blob.data, blob.bytes, &reason);
  CLEAVE_THEN(status, blobs->load(state, &request->view->region, request->options, blob.data, blob.bytes,
                                  &program->program, &reason));
  if (status != CLEAVE_OK || program->program == NULL) {
    cleave_blob_deinit(&blob);
    program->program = NULL;
    reason.text[sizeof reason.text - 1] = '\0';
    cleave_blob_store_refuse(request->blobs, key, reason.text[0] == '\0' ? "no reason given" : reason.text);
    return false;
  }
  program->blob = blob;
  program->is_loaded = true;
  return true;
}

static cleave_status_t load_or_compile(cleave_program_t *program, const cleave_program_request_t *request,
                                       cleave_message_t *message) {
  const cleave_backend_handle_t *handle = request->handle;
  const cleave_backend_blobs_t *blobs = find_blobs(request);
  cleave_text_t key = {0};
  if (blobs != NULL && !cleave_blob_key_build(request, &key)) {
    blobs = NULL;
  }
  cleave_status_t status = CLEAVE_OK;
  if (blobs == NULL || !load_blob(program, request, cleave_text_get(&key))) {
    status = handle->backend->compile(handle->state, &request->view->region, request->options,
                                      &program->program, message);
    if (status == CLEAVE_OK && blobs != NULL && program->program != NULL) {
      cleave_blob_store_write(request->blobs, cleave_text_get(&key), blobs->save, program->program);
    }
  }
  cleave_text_deinit(&key);
  return status;
}

/* ---- making ---- */

/* Has the backend make the program. */
static cleave_status_t make(cleave_program_t *program, const cleave_program_request_t *request,
                            cleave_message_t *message) {
  const cleave_backend_handle_t *handle = request->handle;
  if (request->is_executor) {
    program->info = &executor_info;
    return handle->backend->imperative->get_executor(handle->state, &request->view->region, request->options,
                                                     &program->program, message);
  }
  CLEAVE_TRY(load_or_compile(program, request, message));
  program->info = program->program == NULL ? NULL : handle->backend->info(program->program);
  return CLEAVE_OK;
}

/* A backend that reports success has to have made a program, and lists what it counts. */
static cleave_status_t check_made(const cleave_program_t *program, cleave_message_t *message) {
  const cleave_program_info_t *info = program->info;
  bool is_made = program->program != NULL && info != NULL;
  if (is_made && (info->inplace_count == 0 || info->inplace != NULL)) {
    return CLEAVE_OK;
  }
  if (is_made) {
    (void)snprintf(message->text, sizeof message->text,
                   "the backend's program has %u pair%s in place, expected a list of them, found NULL",
                   (unsigned)info->inplace_count, CLEAVE_PLURAL(info->inplace_count));
  } else {
    (void)snprintf(message->text, sizeof message->text, "the backend made no program and gave no reason");
  }
  if (program->program != NULL) { /* only now: the description is the program's */
    program->handle->backend->unload(program->program);
  }
  return CLEAVE_ERROR_BACKEND;
}

cleave_status_t cleave_program_compile(const cleave_program_request_t *request,
                                       cleave_program_t **out_program, cleave_message_t *message) {
  const cleave_view_t *view = request->view;
  const cleave_backend_handle_t *handle = request->handle;
  *out_program = NULL;
  message->text[0] = '\0';
  cleave_program_t *program = cleave_allocate_zeroed(1, sizeof *program);
  uint64_t *versions = cleave_allocate(view->constant_count, sizeof *versions);
  if (program == NULL || versions == NULL) {
    cleave_free(program);
    cleave_free(versions);
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  if (view->constant_count > 0) {
    memcpy(versions, view->constant_versions, view->constant_count * sizeof *versions);
  }
  *program = (cleave_program_t){.handle = handle,
                                .hash = view->region.hash,
                                .name_hash = hash_name(request->name),
                                .value_count = view->region.value_count,
                                .input_count = view->region.input_count,
                                .output_count = view->region.output_count,
                                .constant_count = view->constant_count,
                                .constant_versions = versions,
                                .options_hash = hash_options(request),
                                .is_executor = request->is_executor,
                                .is_private = request->is_private,
                                .references = 1};
  cleave_status_t status = make(program, request, message);
  CLEAVE_THEN(status, check_made(program, message));
  message->text[sizeof message->text - 1] = '\0';
  if (status != CLEAVE_OK) {
    program->program = NULL;
    destroy(program);
    return status;
  }
  cleave_registry_retain(handle);
  *out_program = program;
  return CLEAVE_OK;
}

/* The chain that an equal view's program would be in. */
static cleave_program_t **find_chain(cleave_program_cache_t *cache, uint64_t hash) {
  return &cache->buckets[hash % BUCKETS];
}

/* Finds the program, with a reference for the caller, or NULL. The lock is held. */
static cleave_program_t *find(cleave_program_cache_t *cache, const cleave_program_request_t *request) {
  cleave_program_t *program = *find_chain(cache, request->view->region.hash);
  while (program != NULL && !cleave_program_fits(program, request)) {
    program = program->next;
  }
  if (program != NULL) {
    program->references++;
  }
  return program;
}

cleave_status_t cleave_program_cache_get(cleave_program_cache_t *cache,
                                         const cleave_program_request_t *request,
                                         cleave_program_t **out_program, bool *out_reused,
                                         cleave_message_t *message) {
  message->text[0] = '\0';
  if (request->is_private) {
    *out_reused = false;
    return cleave_program_compile(request, out_program, message);
  }
  (void)pthread_mutex_lock(&cache->lock);
  *out_program = find(cache, request);
  (void)pthread_mutex_unlock(&cache->lock);
  *out_reused = *out_program != NULL;
  if (*out_reused) {
    return CLEAVE_OK;
  }
  cleave_program_t *made = NULL;
  CLEAVE_TRY(cleave_program_compile(request, &made, message));
  if (pthread_mutex_init(&made->running, NULL) != 0) {
    destroy(made);
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  made->cache = cleave_program_cache_retain(cache);
  (void)pthread_mutex_lock(&cache->lock);
  *out_program = find(cache, request);
  *out_reused = *out_program != NULL;
  if (!*out_reused) {
    cleave_program_t **chain = find_chain(cache, made->hash);
    made->next = *chain;
    *chain = made;
    cache->count++;
    *out_program = made;
  }
  (void)pthread_mutex_unlock(&cache->lock);
  if (*out_reused) {
    destroy(made); /* another thread was faster */
  }
  return CLEAVE_OK;
}

void cleave_program_release(cleave_program_t *program) {
  if (program == NULL) {
    return;
  }
  cleave_program_cache_t *cache = program->cache;
  if (cache == NULL) {
    destroy(program);
    return;
  }
  (void)pthread_mutex_lock(&cache->lock);
  bool is_last = --program->references == 0;
  if (is_last) {
    cleave_program_t **link = find_chain(cache, program->hash);
    while (*link != program) {
      link = &(*link)->next;
    }
    *link = program->next;
    cache->count--;
  }
  (void)pthread_mutex_unlock(&cache->lock);
  if (is_last) {
    destroy(program);
  }
}

void cleave_program_lock(cleave_program_t *program) {
  if (program->cache != NULL) {
    (void)pthread_mutex_lock(&program->running);
  }
}

void cleave_program_unlock(cleave_program_t *program) {
  if (program->cache != NULL) {
    (void)pthread_mutex_unlock(&program->running);
  }
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Compiled programs, and a cache through which sessions share them: a session made while another one lives
 * gets the other's program for every region that is the same, down to the versions of its constants. A
 * program lives as long as a session uses it; the cache itself keeps none.
 *
 * A program runs one call at a time. One that came from a cache is locked while it runs, so that sessions
 * that share it may run on different threads: they wait for each other there, region by region, and each
 * brings its own inputs, outputs and workspace.
 */
#ifndef CLEAVE_BACKEND_PROGRAM_PROGRAM_CACHE_H
#define CLEAVE_BACKEND_PROGRAM_PROGRAM_CACHE_H

#include <pthread.h>

#include "backend/blob/blob_file.h"
#include "backend/region/view.h"
#include "backend/registry/registry.h"

struct cleave_blob_store;

/* A view to compile, and how. Equal views with equal names get one program. */
typedef struct cleave_program_request {
  const cleave_backend_handle_t *handle;
  const cleave_view_t *view;
  const cleave_compile_options_t *options; /* device and options of the backend among them */
  const char *name; /* of a single node, so that its messages and profiles keep it; "" for regions */
  bool is_executor; /* of a single node: get_executor in place of compile; the view has constant inputs */
  bool is_private;  /* it keeps something between runs: a program of its own, whoever else asks */
  struct cleave_blob_store *blobs; /* where programs are kept between processes; NULL: nowhere */
} cleave_program_request_t;

typedef struct cleave_program {
  const cleave_backend_handle_t *handle;
  void *program;
  const cleave_program_info_t *info;
  /* identity, for sharing */
  uint64_t hash;
  uint64_t name_hash;
  uint32_t value_count;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t constant_count;
  uint64_t *constant_versions; /* owned */
  uint64_t options_hash;
  bool is_executor; /* of a single operator: `program` is for the backend's `imperative` */
  bool is_private;
  bool is_loaded;     /* from a blob: nothing was compiled */
  cleave_blob_t blob; /* that it was loaded from: the backend's program may read it */
  /* sharing between sessions */
  cleave_program_cache_t *cache; /* NULL: one session has it alone */
  struct cleave_program *next;   /* of the same bucket; under the cache's lock */
  uint32_t references;           /* under the cache's lock */
  pthread_mutex_t running;       /* initialised if there is a cache */
} cleave_program_t;

/* Is it a program for this request, and may be shared? */
bool cleave_program_fits(const cleave_program_t *program, const cleave_program_request_t *request);

/* Compiles, or gets an executor; the caller owns the program. A failure is the backend's, with its message.
 */
CLEAVE_STATUS cleave_program_compile(const cleave_program_request_t *request, cleave_program_t **out_program,
                                     cleave_message_t *message);

/* The program for an equal request that lives in the cache (*out_reused), or a new one, which other sessions
 * find from now on unless it is private. Thread-safe; compiling holds no lock. */
CLEAVE_STATUS cleave_program_cache_get(cleave_program_cache_t *cache, const cleave_program_request_t *request,
                                       cleave_program_t **out_program, bool *out_reused,
                                       cleave_message_t *message);

/* Runs a program or executor, which the caller has locked. */
CLEAVE_MUST_USE static inline cleave_status_t cleave_program_run(const cleave_program_t *program,
                                                                 const cleave_run_args_t *args,
                                                                 cleave_message_t *message) {
  const cleave_backend_t *backend = program->handle->backend;
  return program->is_executor ? backend->imperative->execute(program->program, args, message)
                              : backend->run(program->program, args, message);
}

/* Unloads it if nothing else uses it; NULL is a no-op. */
void cleave_program_release(cleave_program_t *program);

/* Callers put these around running a program and reading its profile, so that no other session runs it
 * meanwhile. They do nothing if it is not shared. */
void cleave_program_lock(cleave_program_t *program);
void cleave_program_unlock(cleave_program_t *program);

cleave_program_cache_t *cleave_program_cache_retain(cleave_program_cache_t *cache);
/* Programs that live in it now. */
uint32_t cleave_program_cache_count(cleave_program_cache_t *cache);

#endif /* CLEAVE_BACKEND_PROGRAM_PROGRAM_CACHE_H */

// SPDX-License-Identifier: Apache-2.0
/*
 * The surroundings of models: errors, the process's allocator, contexts and their backends. Include
 * cleave/cleave.h, which has the rest and says what holds for all functions.
 */
#ifndef CLEAVE_CONTEXT_H
#define CLEAVE_CONTEXT_H

#include "cleave/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A remedy for an error. Hosts say how it is done there (the program cleave names its options). */
typedef enum cleave_hint {
  CLEAVE_HINT_NONE = 0,
  CLEAVE_HINT_LOAD = 1,      /* load the library of the backend (cleave_backend_load) */
  CLEAVE_HINT_PARTITION = 2, /* partition the model, by rules or for a backend (cleave_model_partition) */
  CLEAVE_HINT_PLAN = 3       /* the file is a plan: take it up with its model (cleave_plan_load) */
} cleave_hint_t;

/* An error: one lower-case line with place, expected and found. Start from CLEAVE_ERROR_INIT. */
typedef struct cleave_error {
  cleave_status_t status; /* CLEAVE_OK: nothing was written yet */
  int line;               /* in `file`; 0 if there is none */
  char file[192];         /* of the rule, script or model; "" if there is none */
  char rule[64];          /* rule at work; "" if there is none */
  char message[768];      /* whole line for people, file:line included */
  cleave_hint_t hint;
} cleave_error_t;

#define CLEAVE_ERROR_INIT \
  { CLEAVE_OK, 0, "", "", "", CLEAVE_HINT_NONE }

/* Version of the library: "0.1.0". */
const char *cleave_version(void);

/* A status in words, "out of memory", if there is no message. Static. */
const char *cleave_status_text(cleave_status_t status);

/* Back to CLEAVE_ERROR_INIT. */
void cleave_error_clear(cleave_error_t *error);

/* Frees a text that a function of this header handed out; NULL is a no-op. */
void cleave_text_free(char *text);

/* ---- the process ---------------------------------------------------------------------------------- */

/* The library, and Lua in it, take their memory from this; oneDNN, jansson and accelerator libraries have
 * their own. All functions may be called from several threads at once. */
typedef struct cleave_allocator {
  size_t size; /* sizeof(cleave_allocator_t) */
  /* `bytes` > 0, not zeroed, aligned to `alignment`, a power of two from 16 on; NULL: there is none. */
  void *(*allocate)(void *context, size_t bytes, size_t alignment);
  /* Resizes memory with alignment 16; NULL: it stays as it was. */
  void *(*reallocate)(void *context, void *memory, size_t bytes);
  void (*free)(void *context, void *memory); /* never NULL */
  void *context;
} cleave_allocator_t;

/* Sets the allocator of the process, for good; copied. CLEAVE_ERROR_INVALID_ARGUMENT if a function is
 * missing, or if cleave has allocated something already: call it before any other function. */
CLEAVE_MUST_USE cleave_status_t cleave_set_allocator(const cleave_allocator_t *allocator,
                                                     cleave_error_t *error);

typedef enum cleave_log_level {
  CLEAVE_LOG_ERROR = 0,
  CLEAVE_LOG_WARNING = 1,
  CLEAVE_LOG_INFORMATION = 2,
  CLEAVE_LOG_DETAIL = 3
} cleave_log_level_t;

/* Gets one line, without its end, valid during the call. It must not call cleave. */
typedef void (*cleave_log_function_t)(void *context, cleave_log_level_t level, const char *line);

/* ---- contexts ------------------------------------------------------------------------------------- */

/* Shared by reference count: models and rule files retain theirs. With the last of them its backends end, and
 * its libraries are closed. Contexts know nothing of each other: each may load a library of the same name, or
 * the same library, which is then started once in each. Only the names of operators that libraries bring are
 * the process's: two contexts cannot give one name to different operators. */
typedef struct cleave_context cleave_context_t;

typedef struct cleave_context_options {
  size_t size;               /* sizeof(cleave_context_options_t) */
  cleave_log_function_t log; /* as for cleave_context_set_log; may be NULL */
  void *log_context;         /* of `log` */
  /* Folders with libraries that are found by name, separated by ':'; "": none. NULL: those of the
   * environment's CLEAVE_BACKEND_PATH, then the folder of the installation. */
  const char *backend_folders;
} cleave_context_options_t;

/* `options` may be NULL; what it points to is copied. */
CLEAVE_MUST_USE cleave_status_t cleave_context_create(const cleave_context_options_t *options,
                                                      cleave_context_t **out_context, cleave_error_t *error);
/* Both take NULL, and do nothing then. */
cleave_context_t *cleave_context_retain(cleave_context_t *context);
void cleave_context_release(cleave_context_t *context);

/* Sets the listener of what cleave and accelerator libraries have to say besides their errors; NULL: nobody
 * listens. The listener before is not called any more. From any thread; one listener at a time. */
void cleave_context_set_log(cleave_context_t *context, cleave_log_function_t function, void *log_context);

/* Most that the rule files and model scripts of the context may take from now on: milliseconds by the clock,
 * of all their calls together. Once that is spent, what would run them fails with CLEAVE_ERROR_LIMIT. 0, as
 * at first: there is no such limit, and only each single call has one. From any thread; starts to count anew.
 */
void cleave_context_set_script_time(cleave_context_t *context, uint64_t milliseconds);

/* ---- backends ------------------------------------------------------------------------------------- */

/* Backends of a context by name: those that are linked in, in a fixed order ("cpu", "onednn", ...), then
 * libraries that were loaded or found in its folders. */
uint32_t cleave_backend_count(cleave_context_t *context);
/* "" beyond the last. Valid until the backend is unloaded. */
const char *cleave_backend_name(cleave_context_t *context, uint32_t index);

/* A description of a backend. Texts live until it is unloaded. */
typedef struct cleave_backend_info {
  size_t size; /* sizeof(cleave_backend_info_t) */
  const char *name;
  const char *version;     /* of the library behind it */
  const char *description; /* one line */
  const char *path;        /* of its file; "" if it is linked in */
  uint32_t device_count;   /* that it names; 0: it computes in host memory */
  bool is_ready;           /* it started; otherwise `reason`, and no version or description */
  char reason[256];
} cleave_backend_info_t;

/* Starts the backend, if nobody has yet. CLEAVE_ERROR_INVALID_ARGUMENT beyond the last. Thread-safe. */
CLEAVE_MUST_USE cleave_status_t cleave_backend_describe(cleave_context_t *context, uint32_t index,
                                                        cleave_backend_info_t *out_info,
                                                        cleave_error_t *error);

/* Loads an accelerator library (cleave/backend.h), whose code runs in this process. `name` takes the place of
 * its own name; NULL: keeps it. The same file again under the same name is not an error. CLEAVE_ERROR_FORMAT:
 * no library for this machine; CLEAVE_ERROR_BACKEND: it does not fit or does not start, with its reason;
 * CLEAVE_ERROR_INVALID_ARGUMENT: the name is taken. Thread-safe. */
CLEAVE_MUST_USE cleave_status_t cleave_backend_load(cleave_context_t *context, const char *path,
                                                    const char *name, cleave_error_t *error);

/* Limits of a library in a process of its own; a field that is 0 has its default. */
typedef struct cleave_isolation_options {
  size_t size;         /* sizeof(cleave_isolation_options_t) */
  uint32_t ask_ms;     /* to load, start, answer a question, unload a program; default 10 s */
  uint32_t compile_ms; /* to compile a region; default 120 s */
  uint32_t run_ms;     /* to run one; default 30 s */
  bool fallback; /* when its process is lost, `cpu` runs its regions, and it is asked no more; the log says so
                  */
} cleave_isolation_options_t;

/* The state of an isolated library. */
typedef struct cleave_isolation {
  size_t size; /* sizeof(cleave_isolation_t) */
  bool is_isolated;
  bool is_lost;     /* crashed, hung, or wrote out of bounds */
  int64_t process;  /* its number, or -1 */
  char reason[256]; /* of the loss: one line */
} cleave_isolation_t;

/* Loads a backend as cleave_backend_load does, but the library's code runs in a process of its own (the
 * program cleave_worker, of the installation or named by CLEAVE_WORKER), which has no file and no memory of
 * this one: it gets copies of constants and inputs that it cannot write, and its outputs are checked and
 * copied. If it crashes, does not answer within a limit, or writes beyond its buffers, its process is ended,
 * and the call at hand and all later ones fail with CLEAVE_ERROR_BACKEND and the reason, or go to `cpu`
 * (`fallback`). The same file loaded again so under the same name starts a new process if the one before is
 * lost: settings of cleave_backend_configure are to be made again, and sessions too. Calls to one library run
 * one at a time. Operators, partitioners and passes that it adds are asked there, too; `cpu` cannot take over
 * from an operator or a pass. What it may do to files and the network is what this user may. `options` may be
 * NULL.
 */
CLEAVE_MUST_USE cleave_status_t cleave_backend_load_isolated(cleave_context_t *context, const char *path,
                                                             const char *name,
                                                             const cleave_isolation_options_t *options,
                                                             cleave_error_t *error);

/* Libraries that are loaded from now on, or found in folders, and have or are given this name, are isolated.
 * CLEAVE_ERROR_INVALID_ARGUMENT if a backend of this name is there already. */
CLEAVE_MUST_USE cleave_status_t cleave_backend_isolate(cleave_context_t *context, const char *name,
                                                       const cleave_isolation_options_t *options,
                                                       cleave_error_t *error);

/* The backend of this name now. CLEAVE_ERROR_UNSUPPORTED if there is none. */
CLEAVE_MUST_USE cleave_status_t cleave_backend_isolation(cleave_context_t *context, const char *name,
                                                         cleave_isolation_t *out_isolation,
                                                         cleave_error_t *error);

/* CLEAVE_ERROR_INVALID_ARGUMENT if sessions still use it. Nobody may be partitioning with it meanwhile. */
CLEAVE_MUST_USE cleave_status_t cleave_backend_unload(cleave_context_t *context, const char *name,
                                                      cleave_error_t *error);

/* Sets or reads settings of a backend by key, all in one call. Its library defines the keys. A setting whose
 * value is NULL is only read, and without settings all that there are are read. `out_answers` (may be NULL)
 * are copies of the library's answers: free them with cleave_answers_free.
 * CLEAVE_ERROR_UNSUPPORTED: the backend is unknown, or has nothing to configure, or does not know a key, with
 * the library's reason. Programs compiled before are not compiled again; sessions that are made from now on
 * share none of them, unless all keys begin with "hint.", which change nothing about programs. Thread-safe.
 */
CLEAVE_MUST_USE cleave_status_t cleave_backend_configure(cleave_context_t *context, const char *name,
                                                         const cleave_key_value_t *settings,
                                                         uint32_t setting_count,
                                                         cleave_key_value_t **out_answers,
                                                         uint32_t *out_answer_count, cleave_error_t *error);
/* NULL is a no-op. */
void cleave_answers_free(cleave_key_value_t *answers);

#ifdef __cplusplus
}
#endif

#endif /* CLEAVE_CONTEXT_H */

// SPDX-License-Identifier: Apache-2.0
/*
 * A folder of compiled regions, and of plans, a file each (blob_file.h), named by the digest of its key
 * (blob_key.h). Any number of processes and threads may use it at once: files appear whole, by renaming, and
 * whoever reads one that another removes goes on reading it. The folder holds at most its limit in bytes:
 * after a file was added, those that were not used for the longest time go. Nothing in the folder is trusted,
 * and nothing that is wrong with it is an error: the log says it, and the region is compiled.
 */
#ifndef CLEAVE_BACKEND_PROGRAM_BLOB_STORE_H
#define CLEAVE_BACKEND_PROGRAM_BLOB_STORE_H

#include "backend/blob/blob_file.h"
#include "backend/program/program_cache.h"
#include "system/log.h"

#define CLEAVE_BLOB_LIMIT (UINT64_C(2) << 30) /* bytes, if none is given */

typedef struct cleave_blob_store cleave_blob_store_t;

/* Makes the folder if it is missing, for the user alone. An error if it cannot be one. `limit` 0:
 * CLEAVE_BLOB_LIMIT. `log` outlives the store. */
CLEAVE_STATUS cleave_blob_store_open(const char *folder, uint64_t limit, cleave_log_t *log,
                                     cleave_blob_store_t **out_store, cleave_error_t *error);
/* NULL is a no-op. */
void cleave_blob_store_close(cleave_blob_store_t *store);
const char *cleave_blob_store_folder(const cleave_blob_store_t *store);

/* The content for a key, looked through by at most `threads` threads; false if there is none that can be
 * used. */
bool cleave_blob_store_read(cleave_blob_store_t *store, const char *key, int32_t threads,
                            cleave_blob_t *out_blob);
/* Logs that a backend or another reader refused what is there for this key. */
void cleave_blob_store_refuse(cleave_blob_store_t *store, const char *key, const char *reason);

/* Keeps what `save` writes. */
typedef cleave_status_t (*cleave_blob_save_t)(const void *program,
                                              cleave_status_t (*write)(void *context, const void *data,
                                                                       size_t bytes),
                                              void *context, cleave_message_t *message);
void cleave_blob_store_write(cleave_blob_store_t *store, const char *key, cleave_blob_save_t save,
                             const void *program);

/* One file, for lists. */
typedef struct cleave_blob_entry {
  char name[48];
  bool is_plan; /* of runtime/plans/kept_plan.h; otherwise a compiled region */
  uint64_t bytes;
  int64_t used_ns; /* since 1970: when it was written or read last */
  char *key;       /* NULL: it has none that can be read. Owned */
} cleave_blob_entry_t;
typedef CLEAVE_ARRAY(cleave_blob_entry_t) cleave_blob_list_t;

/* All files of the store, the one that was used last first; keys if they are asked for. */
CLEAVE_STATUS cleave_blob_store_list(const cleave_blob_store_t *store, bool with_keys,
                                     cleave_blob_list_t *out_list, cleave_error_t *error);
void cleave_blob_list_deinit(cleave_blob_list_t *list);

/* Removes all files of the store; nothing else that may be in its folder. */
CLEAVE_STATUS cleave_blob_store_clear(cleave_blob_store_t *store, cleave_error_t *error);

#endif /* CLEAVE_BACKEND_PROGRAM_BLOB_STORE_H */

// SPDX-License-Identifier: Apache-2.0
// The folder is looked through when the first file is added and whenever the limit may be reached; in between
// a store counts what it adds itself. Names are made of hexadecimal digits only, so that nothing else that
// lies in the folder is ever touched.
#include "backend/program/blob_store.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backend/blob/blob_seen.h"
#include "backend/program/blob_key.h"

#define EXTENSION ".blob"
#define PLAN_EXTENSION ".plan"
_Static_assert(sizeof EXTENSION == sizeof PLAN_EXTENSION, "all names are of one length");

enum { DIGITS = 32, ABANDONED_SECONDS = 3600 };

struct cleave_blob_store {
  cleave_log_t *log;
  pthread_mutex_t lock;
  char *folder; /* absolute */
  uint64_t limit;
  uint64_t bytes;  /* in the folder, as far as it is known */
  bool is_counted; /* `bytes` says something */
};

/* ---- the folder ---- */

/* The folder and those above it, as far as they are missing. */
static int make_folders(char *path) {
  for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    int made = mkdir(path, 0700);
    int reason = errno;
    *slash = '/';
    if (made != 0 && reason != EEXIST && reason != EACCES && reason != EROFS) {
      return reason;
    }
  }
  return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : errno;
}

static cleave_status_t find_folder(const char *folder, char **out_path, cleave_error_t *error) {
  char *copy = cleave_copy_text(folder, strlen(folder));
  CLEAVE_TRY_MEMORY(copy, error);
  char resolved[PATH_MAX];
  struct stat info;
  int reason = folder[0] == '\0' ? ENOENT : make_folders(copy);
  cleave_free(copy);
  if (reason == 0 && (realpath(folder, resolved) == NULL || stat(resolved, &info) != 0)) {
    reason = errno;
  }
  if (reason == 0 && !S_ISDIR(info.st_mode)) {
    reason = ENOTDIR;
  }
  if (reason != 0) {
    return cleave_error_set(error, CLEAVE_ERROR_IO, "folder for compiled regions '%s': %s", folder,
                            strerror(reason));
  }
  *out_path = cleave_copy_text(resolved, strlen(resolved));
  return *out_path == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}

cleave_status_t cleave_blob_store_open(const char *folder, uint64_t limit, cleave_log_t *log,
                                       cleave_blob_store_t **out_store, cleave_error_t *error) {
  *out_store = NULL;
  cleave_blob_store_t *store = cleave_allocate_zeroed(1, sizeof *store);
  CLEAVE_TRY_MEMORY(store, error);
  store->log = log;
  store->limit = limit == 0 ? CLEAVE_BLOB_LIMIT : limit;
  cleave_status_t status = find_folder(folder, &store->folder, error);
  if (status == CLEAVE_OK && pthread_mutex_init(&store->lock, NULL) != 0) {
    status = cleave_error_out_of_memory(error);
  }
  if (status != CLEAVE_OK) {
    cleave_free(store->folder);
    cleave_free(store);
    return status;
  }
  *out_store = store;
  return CLEAVE_OK;
}

void cleave_blob_store_close(cleave_blob_store_t *store) {
  if (store == NULL) {
    return;
  }
  (void)pthread_mutex_destroy(&store->lock);
  cleave_free(store->folder);
  cleave_free(store);
}

const char *cleave_blob_store_folder(const cleave_blob_store_t *store) {
  return store->folder;
}

static char *join(const cleave_blob_store_t *store, const char *name) {
  cleave_text_t text = {0};
  cleave_text_format(&text, "%s/%s", store->folder, name);
  return text.failed ? NULL : text.data;
}

static bool is_plan_key(const char *key) {
  return strncmp(key, CLEAVE_BLOB_KEY_PLAN, sizeof CLEAVE_BLOB_KEY_PLAN - 1) == 0;
}

/* Says what is done if the file of a key cannot be used. */
static const char *say_instead(const char *key) {
  return is_plan_key(key) ? "the rules run" : "the region is compiled again";
}

/* Path of the file for a key; NULL without memory. */
static char *find_path(const cleave_blob_store_t *store, const char *key) {
  char name[DIGITS + sizeof EXTENSION];
  cleave_digest_t digest = cleave_digest_bytes(key, strlen(key));
  (void)snprintf(name, sizeof name, "%016" PRIx64 "%016" PRIx64 "%s", digest.words[0], digest.words[1],
                 is_plan_key(key) ? PLAN_EXTENSION : EXTENSION);
  return join(store, name);
}

/* ---- lists ---- */

static bool has_name(const char *name, const char *extension) {
  return strspn(name, "0123456789abcdef") == DIGITS && strcmp(name + DIGITS, extension) == 0;
}

/* The small file beside a large one (blob_seen.h). */
static bool is_seen(const char *name) {
  return has_name(name, EXTENSION CLEAVE_BLOB_SEEN_EXTENSION);
}

static bool is_temporary(const char *name) {
  return strncmp(name, CLEAVE_BLOB_TEMPORARY, sizeof CLEAVE_BLOB_TEMPORARY - 1) == 0;
}

static int compare_used(const void *a, const void *b) {
  const cleave_blob_entry_t *left = a;
  const cleave_blob_entry_t *right = b;
  if (left->used_ns != right->used_ns) {
    return left->used_ns < right->used_ns ? 1 : -1;
  }
  return strcmp(left->name, right->name);
}

void cleave_blob_list_deinit(cleave_blob_list_t *list) {
  for (size_t k = 0; k < list->count; k++) {
    cleave_free(list->items[k].key);
  }
  cleave_array_free(list);
}

static int64_t nanoseconds(const struct timespec *time) {
  return (int64_t)time->tv_sec * INT64_C(1000000000) + time->tv_nsec;
}

/* When a file was used last: its own time, or that of the small file beside it. */
static int64_t used_ns(const char *path, const struct stat *info) {
  struct stat seen;
  cleave_text_t name = {0};
  cleave_text_format(&name, "%s" CLEAVE_BLOB_SEEN_EXTENSION, path);
  int64_t own = nanoseconds(&info->st_mtim);
  bool has_seen = info->st_size >= CLEAVE_BLOB_SEEN_BYTES && !name.failed && lstat(name.data, &seen) == 0;
  int64_t other = has_seen ? nanoseconds(&seen.st_mtim) : own;
  cleave_text_deinit(&name);
  return other > own ? other : own;
}

/* Removes a small file whose large one is gone. */
static void remove_orphan(const char *path) {
  struct stat info;
  char *large = cleave_copy_text(path, strlen(path) - (sizeof CLEAVE_BLOB_SEEN_EXTENSION - 1));
  if (large != NULL && lstat(large, &info) != 0 && errno == ENOENT) {
    (void)unlink(path);
  }
  cleave_free(large);
}

/* One name of the folder. What a process that is gone was writing, or `all`, is removed. */
static cleave_status_t visit(const cleave_blob_store_t *store, const char *name, bool all,
                             cleave_blob_list_t *list, cleave_error_t *error) {
  struct stat info;
  bool is_plan = has_name(name, PLAN_EXTENSION);
  if (!is_plan && !has_name(name, EXTENSION) && !is_temporary(name) && !is_seen(name)) {
    return CLEAVE_OK;
  }
  char *path = join(store, name);
  CLEAVE_TRY_MEMORY(path, error);
  cleave_status_t status = CLEAVE_OK;
  if (lstat(path, &info) != 0 || S_ISDIR(info.st_mode)) {
    cleave_free(path);
    return CLEAVE_OK;
  }
  if (is_temporary(name)) {
    if (all || info.st_mtim.tv_sec + ABANDONED_SECONDS < time(NULL)) {
      (void)unlink(path);
    }
  } else if (is_seen(name)) {
    remove_orphan(path);
  } else {
    cleave_blob_entry_t entry = {.is_plan = is_plan,
                                 .bytes = S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0,
                                 .used_ns = used_ns(path, &info)};
    memcpy(entry.name, name, DIGITS + sizeof EXTENSION);
    status = cleave_array_reserve(list, 1, error);
    if (status == CLEAVE_OK) {
      cleave_array_push_reserved(list, entry);
    }
  }
  cleave_free(path);
  return status;
}

static cleave_status_t look_through(const cleave_blob_store_t *store, bool all, cleave_blob_list_t *list,
                                    cleave_error_t *error) {
  *list = (cleave_blob_list_t){0};
  DIR *folder = opendir(store->folder);
  if (folder == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_IO, "folder for compiled regions '%s': %s", store->folder,
                            strerror(errno));
  }
  cleave_status_t status = CLEAVE_OK;
  for (const struct dirent *entry = readdir(folder); entry != NULL && status == CLEAVE_OK;
       entry = readdir(folder)) {
    status = visit(store, entry->d_name, all, list, error);
  }
  (void)closedir(folder);
  CLEAVE_TRY_OR(status, cleave_blob_list_deinit(list));
  cleave_array_sort(list, compare_used);
  return CLEAVE_OK;
}

cleave_status_t cleave_blob_store_list(const cleave_blob_store_t *store, bool with_keys,
                                       cleave_blob_list_t *out_list, cleave_error_t *error) {
  CLEAVE_TRY(look_through(store, false, out_list, error));
  for (size_t k = 0; with_keys && k < out_list->count; k++) {
    cleave_blob_entry_t *entry = &out_list->items[k];
    char *path = join(store, entry->name);
    if (path == NULL) {
      cleave_blob_list_deinit(out_list);
      return cleave_error_out_of_memory(error);
    }
    if (cleave_blob_read_key(path, &entry->key, NULL) != CLEAVE_OK) {
      entry->key = NULL;
    }
    cleave_free(path);
  }
  return CLEAVE_OK;
}

/* True: it is not there any more; others may have removed it. */
static bool remove_entry(const cleave_blob_store_t *store, const cleave_blob_entry_t *entry) {
  char *path = join(store, entry->name);
  bool is_gone = path != NULL && (unlink(path) == 0 || errno == ENOENT);
  cleave_text_t seen = {0};
  cleave_text_format(&seen, "%s" CLEAVE_BLOB_SEEN_EXTENSION, path == NULL ? "" : path);
  if (is_gone && entry->bytes >= CLEAVE_BLOB_SEEN_BYTES && !seen.failed) {
    (void)unlink(seen.data);
  }
  cleave_text_deinit(&seen);
  cleave_free(path);
  return is_gone;
}

cleave_status_t cleave_blob_store_clear(cleave_blob_store_t *store, cleave_error_t *error) {
  cleave_blob_list_t list;
  CLEAVE_TRY(look_through(store, true, &list, error));
  size_t left = 0; /* what other processes write meanwhile does not count */
  for (size_t k = 0; k < list.count; k++) {
    left += remove_entry(store, &list.items[k]) ? 0 : 1;
  }
  cleave_blob_list_deinit(&list);
  return left == 0 ? CLEAVE_OK
                   : cleave_error_set(error, CLEAVE_ERROR_IO,
                                      "folder for compiled regions '%s': %zu file%s cannot be removed",
                                      store->folder, left, CLEAVE_PLURAL(left));
}

/* Under the lock. Counts, and removes what is too much, oldest first. */
static void make_room(cleave_blob_store_t *store) {
  cleave_blob_list_t list;
  if (look_through(store, false, &list, NULL) != CLEAVE_OK) {
    return;
  }
  store->bytes = 0;
  store->is_counted = true;
  bool is_full = false;
  for (size_t k = 0; k < list.count; k++) {
    is_full = is_full || list.items[k].bytes > store->limit - store->bytes;
    if (is_full) {
      (void)remove_entry(store, &list.items[k]);
    } else {
      store->bytes += list.items[k].bytes;
    }
  }
  cleave_blob_list_deinit(&list);
}

/* ---- reading and writing ---- */

bool cleave_blob_store_read(cleave_blob_store_t *store, const char *key, int32_t threads,
                            cleave_blob_t *out_blob) {
  const cleave_blob_reading_t reading = {.key = key, .limit = store->limit, .threads = threads};
  cleave_error_t error = CLEAVE_ERROR_INIT;
  bool exists = false;
  char *path = find_path(store, key);
  bool good = path != NULL && cleave_blob_read(path, &reading, out_blob, &exists, &error) == CLEAVE_OK;
  if (!good && exists) {
    cleave_log(store->log, CLEAVE_LOG_WARNING, "%s: not used: %s; %s", path, error.message, say_instead(key));
  }
  cleave_free(path);
  return good;
}

void cleave_blob_store_refuse(cleave_blob_store_t *store, const char *key, const char *reason) {
  char *path = find_path(store, key);
  size_t length = 0;
  const char *backend = cleave_blob_key_find(key, "backend", &length);
  cleave_log(store->log, CLEAVE_LOG_INFORMATION, "%s: refused%s%.*s: %s; %s",
             path == NULL ? "a kept file" : path, length > 0 ? " by " : "", (int)length, backend, reason,
             say_instead(key));
  cleave_free(path);
}

/* Under the lock: one more file of this size. */
static void count(cleave_blob_store_t *store, uint64_t bytes) {
  store->bytes += bytes;
  if (!store->is_counted || store->bytes > store->limit) {
    make_room(store);
  }
}

static void write_file(cleave_blob_store_t *store, const char *path, const char *key, cleave_blob_save_t save,
                       const void *program) {
  cleave_blob_writer_t writer;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_message_t message = {.text = ""};
  uint64_t bytes = 0;
  cleave_blob_writer_start(&writer, store->folder, key, store->limit);
  cleave_status_t saved = writer.error.status == CLEAVE_OK
                              ? save(program, cleave_blob_writer_write, &writer, &message)
                              : CLEAVE_OK;
  message.text[sizeof message.text - 1] = '\0';
  bool is_refused = saved != CLEAVE_OK && writer.error.status == CLEAVE_OK;
  cleave_status_t status = cleave_blob_writer_end(&writer, is_refused ? NULL : path, &bytes, &error);
  if (is_refused) {
    cleave_log(store->log, CLEAVE_LOG_DETAIL, "%s: not written: %s", path,
               message.text[0] == '\0' ? "the backend gives no reason" : message.text);
    return;
  }
  (void)pthread_mutex_lock(&store->lock);
  if (status == CLEAVE_OK) {
    count(store, bytes);
  }
  (void)pthread_mutex_unlock(&store->lock);
  if (status != CLEAVE_OK) {
    cleave_log(store->log, CLEAVE_LOG_WARNING, "%s: not written: %s", path, error.message);
  }
}

void cleave_blob_store_write(cleave_blob_store_t *store, const char *key, cleave_blob_save_t save,
                             const void *program) {
  char *path = find_path(store, key);
  if (path != NULL) {
    write_file(store, path, key, save, program);
  }
  cleave_free(path);
}

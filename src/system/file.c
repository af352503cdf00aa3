// SPDX-License-Identifier: Apache-2.0
/* Files with a reference count, mapped so that weights can point into them, or read; atomic writes. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "system/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct cleave_file {
  atomic_int references;
  unsigned char *data;
  size_t size;
  char *path;
  bool is_copy;    /* `data` was read, not mapped */
  bool is_settled; /* `identity` says what the content is */
  cleave_file_identity_t identity;
  struct cleave_file *mapped; /* the next one in the list of mapped files */
};

/* All mapped files, for cleave_file_drop_pages. */
static pthread_mutex_t mapped_lock = PTHREAD_MUTEX_INITIALIZER;
static cleave_file_t *mapped_files;

static void list_mapped(cleave_file_t *file) {
  (void)pthread_mutex_lock(&mapped_lock);
  file->mapped = mapped_files;
  mapped_files = file;
  (void)pthread_mutex_unlock(&mapped_lock);
}

static void unlist_mapped(const cleave_file_t *file) {
  (void)pthread_mutex_lock(&mapped_lock);
  cleave_file_t **at = &mapped_files;
  while (*at != file) {
    at = &(*at)->mapped;
  }
  *at = file->mapped;
  (void)pthread_mutex_unlock(&mapped_lock);
}

static cleave_status_t map_content(int descriptor, cleave_file_t *file, cleave_error_t *error) {
  void *data = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (data == MAP_FAILED) {
    return cleave_error_set_at(error, CLEAVE_ERROR_IO, file->path, 0, "cannot map: %s", strerror(errno));
  }
  file->data = data;
  list_mapped(file);
  return CLEAVE_OK;
}

/* Reads what is there: less than `size` if the file has become shorter. */
static cleave_status_t read_content(int descriptor, cleave_file_t *file, cleave_error_t *error) {
  file->is_copy = true;
  file->data = cleave_allocate(file->size, 1);
  CLEAVE_TRY_MEMORY(file->data, error);
  size_t length = 0;
  while (length < file->size) {
    ssize_t count = read(descriptor, file->data + length, file->size - length);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return cleave_error_set_at(error, CLEAVE_ERROR_IO, file->path, 0, "cannot read: %s", strerror(errno));
    }
    if (count == 0) {
      break;
    }
    length += (size_t)count;
  }
  file->size = length;
  return CLEAVE_OK;
}

static int64_t nanoseconds(const struct timespec *time) {
  return (int64_t)time->tv_sec * INT64_C(1000000000) + time->tv_nsec;
}

/* Does the identity say what the content is? */
static bool identify(const struct stat *info, cleave_file_identity_t *out_identity) {
  const int64_t settled_ns = INT64_C(2000000000);
  struct timespec now;
  *out_identity = (cleave_file_identity_t){.device = (uint64_t)info->st_dev,
                                           .inode = (uint64_t)info->st_ino,
                                           .size = (uint64_t)info->st_size,
                                           .written_ns = nanoseconds(&info->st_mtim),
                                           .changed_ns = nanoseconds(&info->st_ctim)};
  return clock_gettime(CLOCK_REALTIME, &now) == 0 &&
         nanoseconds(&now) - out_identity->changed_ns > settled_ns &&
         nanoseconds(&now) - out_identity->written_ns > settled_ns;
}

bool cleave_file_identify_open(int descriptor, cleave_file_identity_t *out_identity) {
  struct stat info;
  *out_identity = (cleave_file_identity_t){0};
  return fstat(descriptor, &info) == 0 && identify(&info, out_identity);
}

/* `limit` 0: map it, whatever its size. */
static cleave_status_t open_content(int descriptor, size_t limit, cleave_file_t *file,
                                    cleave_error_t *error) {
  struct stat info;
  if (fstat(descriptor, &info) != 0) {
    return cleave_error_set_at(error, CLEAVE_ERROR_IO, file->path, 0, "cannot read: %s", strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    return cleave_error_set_at(error, CLEAVE_ERROR_IO, file->path, 0, "cannot read: not a regular file");
  }
  file->size = (size_t)info.st_size;
  file->is_settled = identify(&info, &file->identity);
  if (limit > 0 && file->size > limit) {
    return cleave_error_set_at(error, CLEAVE_ERROR_LIMIT, file->path, 0,
                               "a file of %zu KiB, expected at most %zu KiB", file->size >> 10, limit >> 10);
  }
  if (file->size == 0) {
    return CLEAVE_OK;
  }
  return limit > 0 ? read_content(descriptor, file, error) : map_content(descriptor, file, error);
}

/* Takes the descriptor over; `path` is for messages. */
static cleave_status_t open_take(int descriptor, const char *path, size_t limit, cleave_file_t **out_file,
                                 cleave_error_t *error) {
  if (descriptor < 0) {
    return cleave_error_set_at(error, CLEAVE_ERROR_IO, path, 0, "cannot open: %s", strerror(errno));
  }
  cleave_file_t *file = cleave_allocate_zeroed(1, sizeof *file);
  char *copy = cleave_copy_text(path, strlen(path));
  if (file == NULL || copy == NULL) {
    cleave_free(file);
    cleave_free(copy);
    (void)close(descriptor);
    return cleave_error_out_of_memory(error);
  }
  atomic_init(&file->references, 1);
  file->path = copy;
  cleave_status_t status = open_content(descriptor, limit, file, error);
  (void)close(descriptor);
  CLEAVE_TRY_OR(status, cleave_file_release(file));
  *out_file = file;
  return CLEAVE_OK;
}

/* Neither pipes nor terminals can make the caller wait. */
enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK };

cleave_status_t cleave_file_open(const char *path, cleave_file_t **out_file, cleave_error_t *error) {
  *out_file = NULL;
  return open_take(open(path, OPEN_FLAGS), path, 0, out_file, error);
}

cleave_status_t cleave_file_read(const char *path, size_t limit, cleave_file_t **out_file,
                                 cleave_error_t *error) {
  *out_file = NULL;
  return open_take(open(path, OPEN_FLAGS), path, limit, out_file, error);
}

bool cleave_path_stays_below(const char *name) {
  if (name[0] == '\0' || name[0] == '/') {
    return false;
  }
  for (const char *part = name; part != NULL;) {
    const char *slash = strchr(part, '/');
    size_t length = slash != NULL ? (size_t)(slash - part) : strlen(part);
    if (length == 2 && part[0] == '.' && part[1] == '.') {
      return false;
    }
    part = slash != NULL ? slash + 1 : NULL;
  }
  return true;
}

static bool is_inside(const char *resolved, const char *folder) {
  size_t length = strlen(folder);
  length -= length > 0 && folder[length - 1] == '/' ? 1 : 0;
  return strncmp(resolved, folder, length) == 0 && resolved[length] == '/';
}

/* The path of the file `name` in `folder`, all links resolved, if it lies below that folder or below `other`
 * (with its links resolved; may be NULL). To be freed with free(). */
static cleave_status_t resolve_below(const char *folder, const char *other, const char *name,
                                     char **out_resolved, cleave_error_t *error) {
  size_t size = strlen(folder) + strlen(name) + 2;
  char *path = cleave_allocate(size, 1);
  CLEAVE_TRY_MEMORY(path, error);
  (void)snprintf(path, size, "%s/%s", folder, name);
  char *root = realpath(folder, NULL);
  char *resolved = realpath(path, NULL);
  bool is_found = root != NULL && resolved != NULL;
  cleave_status_t status = CLEAVE_OK;
  if (!cleave_path_stays_below(name) ||
      (is_found && !is_inside(resolved, root) && (other == NULL || !is_inside(resolved, other)))) {
    status = cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "'%s' leads out of the folder '%s'", name,
                              folder);
  } else if (!is_found) {
    status = cleave_error_set(error, CLEAVE_ERROR_IO, "'%s' cannot be opened: %s", name, strerror(errno));
  }
  free(root);
  cleave_free(path);
  if (status != CLEAVE_OK) {
    free(resolved);
    return status;
  }
  *out_resolved = resolved;
  return CLEAVE_OK;
}

cleave_status_t cleave_file_read_below(const char *folder, const char *name, size_t limit,
                                       cleave_file_t **out_file, cleave_error_t *error) {
  char *resolved = NULL;
  *out_file = NULL;
  CLEAVE_TRY(resolve_below(folder[0] == '\0' ? "." : folder, NULL, name, &resolved, error));
  cleave_status_t status =
      open_take(open(resolved, OPEN_FLAGS | O_NOFOLLOW), resolved, limit, out_file, error);
  free(resolved);
  return status;
}

/* The folder in the path of a file, as a text of its own. */
static char *copy_folder(const char *path) {
  size_t length = 0;
  (void)cleave_path_folder(path, &length);
  return cleave_copy_text(length > 0 ? path : ".", length > 0 ? length : 1);
}

cleave_status_t cleave_file_open_beside(const char *path, const char *name, cleave_file_t **out_file,
                                        cleave_error_t *error) {
  char *resolved = NULL;
  char *folder = copy_folder(path);
  char *real = realpath(path, NULL);
  char *real_folder = real != NULL ? copy_folder(real) : NULL;
  *out_file = NULL;
  cleave_status_t status = folder != NULL && (real == NULL || real_folder != NULL)
                               ? resolve_below(folder, real_folder, name, &resolved, error)
                               : cleave_error_out_of_memory(error);
  CLEAVE_THEN(status, open_take(open(resolved, OPEN_FLAGS | O_NOFOLLOW), resolved, 0, out_file, error));
  cleave_free(folder);
  cleave_free(real_folder);
  free(real);
  free(resolved);
  return status;
}

cleave_file_t *cleave_file_retain(cleave_file_t *file) {
  atomic_fetch_add_explicit(&file->references, 1, memory_order_relaxed);
  return file;
}

void cleave_file_release(cleave_file_t *file) {
  if (file == NULL || atomic_fetch_sub_explicit(&file->references, 1, memory_order_acq_rel) != 1) {
    return;
  }
  if (file->is_copy) {
    cleave_free(file->data);
  } else if (file->data != NULL) {
    unlist_mapped(file);
    (void)munmap(file->data, file->size);
  }
  cleave_free(file->path);
  cleave_free(file);
}

const unsigned char *cleave_file_data(const cleave_file_t *file) {
  static const unsigned char nothing[1];
  return file->data != NULL ? file->data : nothing;
}

size_t cleave_file_size(const cleave_file_t *file) {
  return file->size;
}

const char *cleave_file_path(const cleave_file_t *file) {
  return file->path;
}

enum { AROUND = 64 << 10 /* that Linux maps at once around a page that is read */ };

void cleave_file_drop_pages(const void *data, size_t bytes) {
  uintptr_t first = (uintptr_t)data / AROUND * AROUND;
  uintptr_t last = ((uintptr_t)data + bytes + AROUND - 1) / AROUND * AROUND;
  if (bytes == 0) {
    return;
  }
  /* The lock keeps files from being unmapped meanwhile. */
  (void)pthread_mutex_lock(&mapped_lock);
  for (const cleave_file_t *file = mapped_files; file != NULL; file = file->mapped) {
    uintptr_t start = (uintptr_t)file->data;
    uintptr_t begin = first < start ? start : first;
    uintptr_t end = last > start + file->size ? start + file->size : last;
    if (begin < end) {
      (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
    }
  }
  (void)pthread_mutex_unlock(&mapped_lock);
}

bool cleave_file_identify(const void *data, size_t bytes, cleave_file_identity_t *out_identity) {
  const unsigned char *begin = data;
  bool is_known = false;
  (void)pthread_mutex_lock(&mapped_lock);
  for (const cleave_file_t *file = mapped_files; file != NULL && !is_known; file = file->mapped) {
    if (begin >= file->data && begin < file->data + file->size &&
        bytes <= file->size - (size_t)(begin - file->data)) {
      is_known = file->is_settled;
      *out_identity = file->identity;
      out_identity->offset = (uint64_t)(begin - file->data);
    }
  }
  (void)pthread_mutex_unlock(&mapped_lock);
  return is_known;
}

static bool write_all(int descriptor, const char *data, size_t length) {
  while (length > 0) {
    ssize_t written = write(descriptor, data, length);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return false;
    }
    data += written;
    length -= (size_t)written;
  }
  return true;
}

/* Devices and pipes (/dev/stdout) cannot be replaced by renaming: they are written in place. */
static bool is_special(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

static bool write_parts(int descriptor, const cleave_file_part_t *parts, size_t count) {
  bool good = true;
  for (size_t k = 0; k < count && good; k++) {
    good = write_all(descriptor, parts[k].data, parts[k].size);
  }
  return good;
}

cleave_status_t cleave_folder_make(const char *path, cleave_error_t *error) {
  struct stat info;
  if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode))) {
    return CLEAVE_OK;
  }
  return cleave_error_set(error, CLEAVE_ERROR_IO, "%s: cannot make this folder: %s", path, strerror(errno));
}

cleave_status_t cleave_file_write(const char *path, const void *data, size_t length, cleave_error_t *error) {
  cleave_file_part_t part = {.data = data, .size = length};
  return cleave_file_write_parts(path, &part, 1, false, error);
}

/* ---- the file that takes the place of another ---- */

/* A file without a name, in the folder of `path`: nothing is left of it if the process is ended while it
 * writes. -1 if the system has no such files. */
static int open_unnamed(const char *path) {
#ifdef O_TMPFILE
  char *folder = copy_folder(path);
  bool can_be_named = folder != NULL && access("/proc/self/fd", X_OK) == 0;
  int descriptor = can_be_named ? open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
  cleave_free(folder);
  return descriptor;
#else
  (void)path;
  return -1;
#endif
}

/* The name of `path` is on the disk. File systems that cannot say so about a folder have it there anyway. */
static bool sync_folder(const char *path) {
  char *folder = copy_folder(path);
  int descriptor = folder != NULL ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  bool good = descriptor >= 0 && (fsync(descriptor) == 0 || errno == EINVAL);
  if (descriptor >= 0) {
    (void)close(descriptor);
  }
  cleave_free(folder);
  return good;
}

/* Names the file of `descriptor` for the moment until it is renamed, or, with -1, makes one and sets it.
 * `temporary` ends in XXXXXX and gets the name. */
static bool give_name(int *descriptor, char *temporary) {
  static atomic_uint counter;
  enum { DIGITS = 6, TRIES = 1000 };
  char unnamed[64];
  bool is_there = *descriptor >= 0;
  (void)snprintf(unnamed, sizeof unnamed, "/proc/self/fd/%d", *descriptor);
  char *digits = temporary + strlen(temporary) - DIGITS;
  for (int k = 0; k < TRIES; k++) {
    unsigned number = ((unsigned)getpid() * 7919u + atomic_fetch_add(&counter, 1u)) % 1000000u;
    (void)snprintf(digits, DIGITS + 1, "%06u", number);
    if (!is_there) {
      *descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    if (is_there ? linkat(AT_FDCWD, unnamed, AT_FDCWD, temporary, AT_SYMLINK_FOLLOW) == 0
                 : *descriptor >= 0) {
      return true;
    }
    if (errno != EEXIST) {
      return false;
    }
  }
  return false;
}

/* A file that is replaced keeps who may read and write it. A new one has what the process gives (umask). */
static bool keep_mode(int descriptor, const char *path) {
  struct stat info;
  return stat(path, &info) != 0 || fchmod(descriptor, info.st_mode & 0777) == 0;
}

/* `path` leads to the file itself, and not to a link. */
static cleave_status_t replace(const char *path, const cleave_file_part_t *parts, size_t count, bool lasts,
                               cleave_error_t *error) {
  bool in_place = is_special(path);
  size_t path_length = strlen(path);
  char *temporary = cleave_allocate(path_length + 16, 1);
  CLEAVE_TRY_MEMORY(temporary, error);
  (void)snprintf(temporary, path_length + 16, in_place ? "%s" : "%s.XXXXXX", path);
  int descriptor = in_place ? open(path, O_WRONLY | O_CLOEXEC) : open_unnamed(path);
  bool is_named = !in_place && descriptor < 0 && give_name(&descriptor, temporary);
  bool good = descriptor >= 0 && (in_place || keep_mode(descriptor, path)) &&
              write_parts(descriptor, parts, count) && (!lasts || in_place || fsync(descriptor) == 0);
  if (good && !in_place && !is_named) {
    is_named = good = give_name(&descriptor, temporary);
  }
  int reason = errno;
  if (descriptor >= 0 && close(descriptor) != 0 && good) {
    good = false;
    reason = errno;
  }
  if (good && !in_place && (rename(temporary, path) != 0 || (lasts && !sync_folder(path)))) {
    good = false;
    reason = errno;
  }
  if (!good && is_named) {
    (void)unlink(temporary);
  }
  cleave_free(temporary);
  return good ? CLEAVE_OK
              : cleave_error_set_at(error, CLEAVE_ERROR_IO, path, 0, "cannot write: %s", strerror(reason));
}

cleave_status_t cleave_file_write_parts(const char *path, const cleave_file_part_t *parts, size_t count,
                                        bool lasts, cleave_error_t *error) {
  char *target = is_special(path) ? NULL : realpath(path, NULL); /* NULL: it is new, too */
  cleave_status_t status = replace(target != NULL ? target : path, parts, count, lasts, error);
  free(target);
  return status;
}

const char *cleave_path_folder(const char *path, size_t *out_length) {
  const char *slash = strrchr(path, '/');
  *out_length = slash != NULL ? (size_t)(slash - path) + 1 : 0;
  return path;
}

const char *cleave_path_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

bool cleave_path_has_extension(const char *path, const char *extension) {
  size_t path_length = strlen(path);
  size_t length = strlen(extension);
  return path_length > length && strcasecmp(path + path_length - length, extension) == 0;
}

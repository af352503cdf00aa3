// SPDX-License-Identifier: Apache-2.0
// What is opened is looked at through its descriptor, so that nothing can take its place in between.
#include "backend/blob/blob_own.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "system/clock.h"

cleave_status_t cleave_blob_open_own(const char *path, int *out_descriptor, uint64_t *out_size,
                                     bool *out_exists, cleave_error_t *error) {
  struct stat info;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  *out_exists = descriptor >= 0 || errno != ENOENT;
  if (!*out_exists) {
    return CLEAVE_ERROR_IO;
  }
  const char *reason = NULL;
  if (descriptor < 0 || fstat(descriptor, &info) != 0) {
    reason = strerror(errno);
  } else if (!S_ISREG(info.st_mode)) {
    reason = "not a regular file";
  } else if (info.st_uid != geteuid() && info.st_uid != 0) {
    reason = "it belongs to another user";
  } else if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    reason = "other users may write to it";
  } else {
    *out_descriptor = descriptor;
    *out_size = (uint64_t)info.st_size;
    return CLEAVE_OK;
  }
  if (descriptor >= 0) {
    (void)close(descriptor);
  }
  return cleave_error_set(error, CLEAVE_ERROR_IO, "%s", reason);
}

cleave_status_t cleave_blob_read_all(int descriptor, void *memory, size_t size, cleave_error_t *error) {
  for (size_t done = 0; done < size;) {
    ssize_t count = read(descriptor, (char *)memory + done, size - done);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return cleave_error_set(error, CLEAVE_ERROR_IO, "%s", count == 0 ? "it is truncated" : strerror(errno));
    }
    done += (size_t)count;
  }
  return CLEAVE_OK;
}

bool cleave_blob_fits_process(uint64_t bytes) {
  struct rlimit process;
  return getrlimit(RLIMIT_FSIZE, &process) != 0 || process.rlim_cur == RLIM_INFINITY ||
         bytes <= process.rlim_cur;
}

char *cleave_blob_temporary_path(const char *folder) {
  static atomic_uint number;
  cleave_text_t text = {0};
  cleave_text_format(&text, "%s/" CLEAVE_BLOB_TEMPORARY "%ld-%u-%" PRIx64, folder, (long)getpid(),
                     atomic_fetch_add(&number, 1), cleave_clock_now());
  return text.failed ? NULL : text.data;
}

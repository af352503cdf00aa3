// SPDX-License-Identifier: Apache-2.0
// A crash of the machine may leave a file with its size and times but without its content: hence the boot.
// Nothing is parsed: what is there is compared with what would be written now.
#include "backend/blob/blob_seen.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/blob/blob_own.h"
#include "base/text.h"

static const char MAGIC[8] = {'C', 'L', 'V', 'S', 'E', 'E', 'N', '1'};

_Static_assert(sizeof(cleave_blob_seen_t) == 8 + 16 + 48 + 40, "what is written has no gaps");

static bool read_boot(char boot[40]) {
  int descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t count = descriptor < 0 ? -1 : read(descriptor, boot, 40);
  if (descriptor >= 0) {
    (void)close(descriptor);
  }
  return count >= 36;
}

bool cleave_blob_seen_describe(int descriptor, cleave_digest_t digest, cleave_blob_seen_t *out_seen) {
  memset(out_seen, 0, sizeof *out_seen);
  memcpy(out_seen->magic, MAGIC, sizeof MAGIC);
  out_seen->digest = digest;
  return cleave_file_identify_open(descriptor, &out_seen->identity) && read_boot(out_seen->boot);
}

static char *name_of(const char *path) {
  cleave_text_t text = {0};
  cleave_text_format(&text, "%s" CLEAVE_BLOB_SEEN_EXTENSION, path);
  return text.failed ? NULL : text.data;
}

bool cleave_blob_seen_find(const char *path, const cleave_blob_seen_t *seen) {
  cleave_blob_seen_t found;
  int descriptor = -1;
  uint64_t size = 0;
  bool exists = false;
  char *name = name_of(path);
  bool is_open = name != NULL && cleave_blob_open_own(name, &descriptor, &size, &exists, NULL) == CLEAVE_OK;
  cleave_free(name);
  if (!is_open) {
    return false;
  }
  bool is_same = size == sizeof found &&
                 cleave_blob_read_all(descriptor, &found, sizeof found, NULL) == CLEAVE_OK &&
                 memcmp(&found, seen, sizeof found) == 0;
  if (is_same) {
    (void)futimens(descriptor, NULL);
  }
  (void)close(descriptor);
  return is_same;
}

/* Writes a temporary file of the folder, which gets its name when it is whole. */
static bool write_as(const char *name, const char *temporary, const cleave_blob_seen_t *seen) {
  int descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    return false;
  }
  bool is_whole = write(descriptor, seen, sizeof *seen) == (ssize_t)sizeof *seen;
  is_whole = close(descriptor) == 0 && is_whole;
  is_whole = is_whole && rename(temporary, name) == 0;
  if (!is_whole) {
    (void)unlink(temporary);
  }
  return is_whole;
}

bool cleave_blob_seen_write(const char *path, const cleave_blob_seen_t *seen) {
  size_t length = 0;
  (void)cleave_path_folder(path, &length);
  char *folder = cleave_copy_text(path, length);
  char *temporary = folder == NULL ? NULL : cleave_blob_temporary_path(folder);
  char *name = name_of(path);
  bool is_kept = name != NULL && temporary != NULL && cleave_blob_fits_process(sizeof *seen) &&
                 write_as(name, temporary, seen);
  cleave_free(folder);
  cleave_free(temporary);
  cleave_free(name);
  return is_kept;
}

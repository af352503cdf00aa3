// SPDX-License-Identifier: Apache-2.0
// The cache on disk: a file per kernel or choice, named by its key, with a checksum. What was not used for
// the longest time goes. Kernels are code: the folder has to be the user's own, and closed to others.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store.h"

enum { MAX_PATH = 640, MAX_BYTES = 1 << 28, MAX_FILES = 8192 };

static const struct {
  const char *ending;
  char magic[8];
} kinds[] = {[CUDA_STORE_CUBIN] = {".cubin", {'c', 'u', 'b', 'i', 'n', ' ', '1', '\n'}},
             [CUDA_STORE_CHOICE] = {".choice", {'c', 'h', 'o', 'i', 'c', 'e', '1', '\n'}}};

typedef struct header {
  char magic[8];
  uint64_t count;
  cuda_key_t key;
  cuda_key_t sum;
} header_t;

/* FNV-1a, and multiplications with shifts. */
cuda_key_t cuda_key_add(cuda_key_t key, const void *bytes, size_t count) {
  const unsigned char *at = bytes;
  uint64_t a = key.words[0] ^ UINT64_C(0xcbf29ce484222325);
  uint64_t b = key.words[1] + UINT64_C(0x9e3779b97f4a7c15);
  for (size_t k = 0; k < count; k++) {
    a = (a ^ at[k]) * UINT64_C(0x100000001b3);
    b = (b + at[k]) * UINT64_C(0xff51afd7ed558ccd);
    b ^= b >> 31;
  }
  return (cuda_key_t){{a, b}};
}

static bool make_folders(char *path) {
  for (char *at = path + 1; *at != '\0'; at++) {
    if (*at == '/') {
      *at = '\0';
      (void)mkdir(path, 0700);
      *at = '/';
    }
  }
  (void)mkdir(path, 0700);
  struct stat about;
  return stat(path, &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid() &&
         (about.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool cuda_store_folder(char *out_folder, size_t size) {
  const char *own = getenv("CLEAVE_CUDA_CACHE");
  const char *caches = getenv("XDG_CACHE_HOME");
  const char *home = getenv("HOME");
  int length = -1;
  if (own != NULL) {
    length = snprintf(out_folder, size, "%s", own);
  } else if (caches != NULL && caches[0] == '/') {
    length = snprintf(out_folder, size, "%s/cleave/cuda", caches);
  } else if (home != NULL && home[0] == '/') {
    length = snprintf(out_folder, size, "%s/.cache/cleave/cuda", home);
  }
  return length > 0 && (size_t)length < size && make_folders(out_folder);
}

static bool path_of(const char *folder, cuda_store_kind_t kind, cuda_key_t key, char *out_path) {
  int length = snprintf(out_path, MAX_PATH, "%s/%016llx%016llx%s", folder, (unsigned long long)key.words[0],
                        (unsigned long long)key.words[1], kinds[kind].ending);
  return length > 0 && length < MAX_PATH;
}

static bool read_whole(int file, void *bytes, size_t count) {
  size_t done = 0;
  while (done < count) {
    ssize_t now = read(file, (char *)bytes + done, count - done);
    if (now <= 0) {
      return false;
    }
    done += (size_t)now;
  }
  return true;
}

static bool write_whole(int file, const void *bytes, size_t count) {
  size_t done = 0;
  while (done < count) {
    ssize_t now = write(file, (const char *)bytes + done, count - done);
    if (now <= 0) {
      return false;
    }
    done += (size_t)now;
  }
  return true;
}

bool cuda_store_read(const char *folder, cuda_store_kind_t kind, cuda_key_t key, cuda_image_t *out_image) {
  char path[MAX_PATH];
  header_t header;
  struct stat about;
  int file = path_of(folder, kind, key, path) ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
  if (file < 0) {
    return false;
  }
  bool is_whole = fstat(file, &about) == 0 && about.st_uid == geteuid() &&
                  read_whole(file, &header, sizeof header) &&
                  memcmp(header.magic, kinds[kind].magic, sizeof header.magic) == 0 &&
                  memcmp(&header.key, &key, sizeof key) == 0 && header.count > 0 &&
                  header.count < MAX_BYTES && (uint64_t)about.st_size == sizeof header + header.count;
  char *bytes = is_whole ? malloc((size_t)header.count) : NULL;
  if (bytes != NULL) {
    is_whole = read_whole(file, bytes, (size_t)header.count);
    cuda_key_t sum = cuda_key_add((cuda_key_t){{0, 0}}, bytes, (size_t)header.count);
    is_whole = is_whole && memcmp(&sum, &header.sum, sizeof sum) == 0;
  }
  (void)futimens(file, NULL); /* it was used */
  (void)close(file);
  if (bytes == NULL || !is_whole) {
    free(bytes);
    return false;
  }
  *out_image = (cuda_image_t){bytes, (size_t)header.count};
  return true;
}

/* ---- the bound ---- */

typedef struct kept {
  char name[48];
  int64_t used;
  int64_t bytes;
} kept_t;

static int by_age(const void *a, const void *b) {
  int64_t x = ((const kept_t *)a)->used;
  int64_t y = ((const kept_t *)b)->used;
  return x < y ? -1 : x > y;
}

/* Is it a file of one of the kinds, or a draft of one that its process left? */
static bool is_own(const char *name) {
  return strstr(name, kinds[CUDA_STORE_CUBIN].ending) != NULL ||
         strstr(name, kinds[CUDA_STORE_CHOICE].ending) != NULL;
}

/* Removes the oldest files until three quarters of the bound are left. */
static void shrink(const char *folder) {
  kept_t *files = calloc(MAX_FILES, sizeof *files);
  DIR *stream = files != NULL ? opendir(folder) : NULL;
  size_t count = 0;
  int64_t total = 0;
  for (struct dirent *at = stream != NULL ? readdir(stream) : NULL; at != NULL && count < MAX_FILES;
       at = readdir(stream)) {
    struct stat about;
    if (strlen(at->d_name) < sizeof files->name && is_own(at->d_name) &&
        fstatat(dirfd(stream), at->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0) {
      (void)snprintf(files[count].name, sizeof files[count].name, "%.47s", at->d_name);
      files[count].used = (int64_t)about.st_mtime;
      files[count].bytes = (int64_t)about.st_size;
      total += files[count++].bytes;
    }
  }
  if (total > MAX_BYTES || count == MAX_FILES) {
    qsort(files, count, sizeof *files, by_age);
    for (size_t k = 0; k < count && (total > MAX_BYTES / 4 * 3 || k < count / 4); k++) {
      (void)unlinkat(dirfd(stream), files[k].name, 0);
      total -= files[k].bytes;
    }
  }
  if (stream != NULL) {
    (void)closedir(stream);
  }
  free(files);
}

void cuda_store_write(const char *folder, cuda_store_kind_t kind, cuda_key_t key, cuda_image_t image) {
  char path[MAX_PATH];
  char draft[MAX_PATH + 8];
  header_t header = {.count = image.count, .key = key};
  memcpy(header.magic, kinds[kind].magic, sizeof header.magic);
  header.sum = cuda_key_add((cuda_key_t){{0, 0}}, image.bytes, image.count);
  if (!path_of(folder, kind, key, path) || image.count >= MAX_BYTES) {
    return;
  }
  (void)snprintf(draft, sizeof draft, "%s.XXXXXX", path);
  int file = mkstemp(draft);
  if (file < 0) {
    return;
  }
  bool is_written = write_whole(file, &header, sizeof header) && write_whole(file, image.bytes, image.count);
  is_written = close(file) == 0 && is_written;
  if (!is_written || rename(draft, path) != 0) {
    (void)unlink(draft);
    return;
  }
  if (key.words[0] % 32 == 0) { /* every now and then */
    shrink(folder);
  }
}

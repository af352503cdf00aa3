// SPDX-License-Identifier: Apache-2.0
// Libraries that are loaded, and the folders in which they are found. The loader of the system sees a file
// only after library_file.c has found nothing wrong with it.
#define _GNU_SOURCE  // dladdr
#include "backend/library/library.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

cleave_status_t cleave_library_open(const char *path, cleave_library_t *out_library, cleave_error_t *error) {
  *out_library = (cleave_library_t){0};
  CLEAVE_TRY(cleave_library_check_file(path, error));
  char *absolute = realpath(path, NULL);  // dlopen searches the system's folders for a name without '/'
  if (absolute == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_IO, "%s: %s", path, strerror(errno));
  }
  out_library->path = cleave_copy_text(absolute, strlen(absolute));
  (void)dlerror();
  out_library->handle = dlopen(absolute, RTLD_NOW | RTLD_LOCAL);
  free(absolute);
  cleave_status_t status = CLEAVE_OK;
  if (out_library->path == NULL) {
    status = cleave_error_out_of_memory(error);
  } else if (out_library->handle == NULL) {
    const char *reason = dlerror();
    status = cleave_error_set(error, CLEAVE_ERROR_BACKEND, "%s: does not load: %s", path,
                              reason == NULL ? "no reason given" : reason);
  } else {
    void *symbol = dlsym(out_library->handle, CLEAVE_BACKEND_ENTRY_SYMBOL);
    memcpy(&out_library->enter, &symbol, sizeof symbol);
    if (symbol == NULL) {
      status =
          cleave_error_set(error, CLEAVE_ERROR_BACKEND, "%s: exports no function '%s': no library for cleave",
                           path, CLEAVE_BACKEND_ENTRY_SYMBOL);
    }
  }
  if (status != CLEAVE_OK) {
    cleave_library_close(out_library);
  }
  return status;
}

void cleave_library_close(cleave_library_t *library) {
  if (library->handle != NULL) {
    (void)dlclose(library->handle);
  }
  cleave_free(library->path);
  *library = (cleave_library_t){0};
}

/* ---- what is loaded ---- */

typedef struct image_search {
  uintptr_t address;
  cleave_digest_t digest;
} image_search_t;

/* The address sanitizer keeps bytes between constants that are not to be read: here they are. */
#if defined(__SANITIZE_ADDRESS__)
__attribute__((no_sanitize_address)) static void copy_image(unsigned char *to, const unsigned char *from,
                                                            size_t bytes) {
  const volatile unsigned char *source = from;
  for (size_t k = 0; k < bytes; k++) {
    to[k] = source[k];
  }
}
#else
static void copy_image(unsigned char *to, const unsigned char *from, size_t bytes) {
  memcpy(to, from, bytes);
}
#endif

static void digest_segment(cleave_digest_state_t *state, const unsigned char *start, size_t bytes) {
  unsigned char piece[8192];
  for (size_t at = 0; at < bytes; at += sizeof piece) {
    size_t count = bytes - at < sizeof piece ? bytes - at : sizeof piece;
    copy_image(piece, start + at, count);
    cleave_digest_add(state, piece, count);
  }
}

/* Segments that nothing writes to: relocations are all in others. */
static void digest_image(const struct dl_phdr_info *image, image_search_t *search) {
  cleave_digest_state_t state;
  cleave_digest_start(&state);
  for (int k = 0; k < image->dlpi_phnum; k++) {
    const ElfW(Phdr) *segment = &image->dlpi_phdr[k];
    const unsigned char *notes = (const unsigned char *)(uintptr_t)(image->dlpi_addr + segment->p_vaddr);
    if (segment->p_type == PT_NOTE &&
        cleave_library_digest_notes(&state, notes, segment->p_filesz, segment->p_align)) {
      search->digest = cleave_digest_end(&state);
      return;
    }
  }
  for (int k = 0; k < image->dlpi_phnum; k++) {
    const ElfW(Phdr) *segment = &image->dlpi_phdr[k];
    if (segment->p_type == PT_LOAD && (segment->p_flags & PF_R) != 0 && (segment->p_flags & PF_W) == 0) {
      digest_segment(&state, (const unsigned char *)(uintptr_t)(image->dlpi_addr + segment->p_vaddr),
                     segment->p_filesz);
    }
  }
  search->digest = cleave_digest_end(&state);
}

static int visit_image(struct dl_phdr_info *image, size_t size, void *context) {
  image_search_t *search = context;
  (void)size;
  for (int k = 0; k < image->dlpi_phnum; k++) {
    const ElfW(Phdr) *segment = &image->dlpi_phdr[k];
    uintptr_t start = (uintptr_t)(image->dlpi_addr + segment->p_vaddr);
    if (segment->p_type == PT_LOAD && search->address - start < segment->p_memsz) {
      digest_image(image, search);
      return 1;
    }
  }
  return 0;
}

cleave_digest_t cleave_library_digest(void (*function)(void)) {
  image_search_t search = {.address = (uintptr_t)function};
  (void)dl_iterate_phdr(visit_image, &search);
  return search.digest;
}

/* ---- folders ---- */

static int is_library(const struct dirent *entry) {
  size_t length = strlen(entry->d_name);
  return entry->d_name[0] != '.' && length > 3 && strcmp(entry->d_name + length - 3, ".so") == 0;
}

static cleave_status_t add_path(cleave_path_list_t *paths, const char *folder, size_t folder_length,
                                const char *name, cleave_error_t *error) {
  size_t size = folder_length + strlen(name) + 2;
  char *path = cleave_allocate(size, 1);
  CLEAVE_TRY_MEMORY(path, error);
  (void)snprintf(path, size, "%.*s/%s", (int)folder_length, folder, name);
  CLEAVE_TRY_OR(cleave_array_reserve(paths, 1, error), cleave_free(path));
  cleave_array_push_reserved(paths, path);
  return CLEAVE_OK;
}

static cleave_status_t list_folder(const char *folder, size_t length, cleave_path_list_t *paths,
                                   cleave_error_t *error) {
  char *name = cleave_copy_text(folder, length);
  CLEAVE_TRY_MEMORY(name, error);
  struct dirent **entries = NULL;
  int count = scandir(name, &entries, is_library, alphasort);
  cleave_free(name);
  cleave_status_t status = CLEAVE_OK;
  for (int k = 0; k < count; k++) {
    CLEAVE_THEN(status, add_path(paths, folder, length, entries[k]->d_name, error));
    free(entries[k]);
  }
  free(entries);
  return status;
}

cleave_status_t cleave_library_list(const char *folders, cleave_path_list_t *paths, cleave_error_t *error) {
  while (folders != NULL && *folders != '\0') {
    size_t length = strcspn(folders, ":");
    if (length > 0) {
      CLEAVE_TRY(list_folder(folders, length, paths, error));
    }
    folders += length;
    folders += *folders == ':' ? 1 : 0;
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_library_list_bundled(cleave_path_list_t *paths, cleave_error_t *error) {
  static const char here = 0;
  Dl_info info;
  if (dladdr(&here, &info) == 0 || info.dli_fname == NULL || strrchr(info.dli_fname, '/') == NULL) {
    return CLEAVE_OK;
  }
  char folders[2048];
  int length = (int)(strrchr(info.dli_fname, '/') - info.dli_fname);
  int needed =
      snprintf(folders, sizeof folders, "%.*s/cleave/backends:%.*s/../" CLEAVE_LIBDIR "/cleave/backends",
               length, info.dli_fname, length, info.dli_fname);
  return needed > 0 && (size_t)needed < sizeof folders ? cleave_library_list(folders, paths, error)
                                                       : CLEAVE_OK;
}

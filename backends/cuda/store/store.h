// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps entries by key: in memory, and in files on disk for later processes.
 *
 * The folder on disk is CLEAVE_CUDA_CACHE, or cleave/cuda in XDG_CACHE_HOME or in .cache of HOME; an empty
 * CLEAVE_CUDA_CACHE means none. Files are written whole or not at all; a damaged one is none.
 */
#ifndef CLEAVE_CUDA_STORE_H
#define CLEAVE_CUDA_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CUDA_STORE_MAX_FOLDER = 512 };

typedef struct cuda_key {
  uint64_t words[2];
} cuda_key_t;

/* Two hashes that have nothing in common; the first key is {{0, 0}}. */
cuda_key_t cuda_key_add(cuda_key_t key, const void *bytes, size_t count);

/* ---- disk.c ---- */

typedef enum cuda_store_kind {
  CUDA_STORE_CUBIN, /* a compiled kernel */
  CUDA_STORE_CHOICE /* of an algorithm */
} cuda_store_kind_t;

typedef struct cuda_image {
  char *bytes; /* the caller's (free) */
  size_t count;
} cuda_image_t;

/* The folder, made if need be; false: nothing is kept. */
bool cuda_store_folder(char *out_folder, size_t size);
/* False if there is none, or it is damaged. */
bool cuda_store_read(const char *folder, cuda_store_kind_t kind, cuda_key_t key, cuda_image_t *out_image);
void cuda_store_write(const char *folder, cuda_store_kind_t kind, cuda_key_t key, cuda_image_t image);

/* ---- table.c: entries in memory, the first member of what they are entries of ---- */

typedef struct cuda_entry {
  cuda_key_t key;
  struct cuda_entry *next; /* in the same bucket */
} cuda_entry_t;

/* Empty when it is zeroed. */
typedef struct cuda_table {
  cuda_entry_t **buckets;
  size_t bucket_count; /* a power of 2 */
  size_t count;
} cuda_table_t;

/* NULL if it is not there. */
cuda_entry_t *cuda_table_find(const cuda_table_t *table, cuda_key_t key);
/* The table holds the entry, which stays the caller's; false without memory. */
bool cuda_table_add(cuda_table_t *table, cuda_entry_t *entry);
/* Takes one out, whichever; from an empty table NULL, and the table's own memory is free. */
cuda_entry_t *cuda_table_take(cuda_table_t *table);

#endif /* CLEAVE_CUDA_STORE_H */

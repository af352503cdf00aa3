// SPDX-License-Identifier: Apache-2.0
// A hash table with chains: at most as many entries as buckets, unless memory for more buckets is lacking.
#include <stdlib.h>
#include <string.h>

#include "store.h"

enum { FIRST_BUCKETS = 64 };

static size_t bucket_of(size_t bucket_count, cuda_key_t key) {
  uint64_t mixed = key.words[0] ^ (key.words[1] >> 17);
  return (size_t)(mixed ^ (mixed >> 32)) & (bucket_count - 1);
}

cuda_entry_t *cuda_table_find(const cuda_table_t *table, cuda_key_t key) {
  cuda_entry_t *entry = table->count > 0 ? table->buckets[bucket_of(table->bucket_count, key)] : NULL;
  while (entry != NULL && memcmp(&entry->key, &key, sizeof key) != 0) {
    entry = entry->next;
  }
  return entry;
}

static void put(cuda_entry_t **buckets, size_t bucket_count, cuda_entry_t *entry) {
  cuda_entry_t **bucket = &buckets[bucket_of(bucket_count, entry->key)];
  entry->next = *bucket;
  *bucket = entry;
}

static void grow(cuda_table_t *table) {
  size_t bucket_count = table->bucket_count > 0 ? table->bucket_count * 2 : FIRST_BUCKETS;
  cuda_entry_t **buckets = calloc(bucket_count, sizeof(cuda_entry_t *));
  if (buckets == NULL) {
    return;
  }
  for (size_t k = 0; k < table->bucket_count; k++) {
    while (table->buckets[k] != NULL) {
      cuda_entry_t *entry = table->buckets[k];
      table->buckets[k] = entry->next;
      put(buckets, bucket_count, entry);
    }
  }
  free(table->buckets);
  table->buckets = buckets;
  table->bucket_count = bucket_count;
}

bool cuda_table_add(cuda_table_t *table, cuda_entry_t *entry) {
  if (table->count >= table->bucket_count) {
    grow(table);
  }
  if (table->bucket_count == 0) {
    return false;
  }
  put(table->buckets, table->bucket_count, entry);
  table->count++;
  return true;
}

cuda_entry_t *cuda_table_take(cuda_table_t *table) {
  for (size_t k = 0; k < table->bucket_count && table->count > 0; k++) {
    cuda_entry_t *entry = table->buckets[k];
    if (entry != NULL) {
      table->buckets[k] = entry->next;
      table->count--;
      return entry;
    }
  }
  free(table->buckets);
  memset(table, 0, sizeof *table);
  return NULL;
}

// SPDX-License-Identifier: Apache-2.0
// Slabs and where content lies in them. One lock guards the table and the counts of references; an entry goes
// with its slab, under the lock, so that nobody finds memory that is about to be freed.
#include "onednn/weights/packed.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "onednn/weights/pages.h"

enum { BUCKETS = 4096 };

static const size_t least_large = (size_t)2 << 20;
static const size_t least_room = (size_t)64 << 20;

typedef struct entry {
  onednn_content_t content;
  onednn_slab_t *slab;
  void *data;
  struct entry *next;      // of the bucket
  struct entry *next_own;  // of the slab
} entry_t;

struct onednn_store {
  pthread_mutex_t lock;
  entry_t *buckets[BUCKETS];
  uint32_t slab_count;   // that live
  size_t largest;        // slab that was ever finished
  onednn_pages_t spare;  // for the next slab: of one that is gone, or made ahead; only while others live
  // Clearing pages ahead, by a thread of its own.
  pthread_t clearer;
  bool has_clearer;
  atomic_bool stops;
  atomic_bool has_finished;
};

struct onednn_slab {
  onednn_store_t *store;
  uint32_t references;  // under the store's lock
  entry_t *entries;     // under the store's lock
  onednn_pages_t pages;
  bool is_ready;  // was spare memory: its pages are there
  size_t used;
};

// ---- content ----

static uint64_t mix(uint64_t hash, uint64_t word) {
  uint64_t x = hash * UINT64_C(0x9ddfea08eb382d69) + word + UINT64_C(0x9e3779b97f4a7c15);
  x ^= x >> 33;
  x *= UINT64_C(0xff51afd7ed558ccd);
  x ^= x >> 33;
  x *= UINT64_C(0xc4ceb9fe1a85ec53);
  return x ^ x >> 33;
}

static void add_word(onednn_content_t *content, uint64_t word) {
  content->key[0] = mix(content->key[0], word);
  content->key[1] = mix(content->key[1] ^ UINT64_C(0x2545f4914f6cdd1d), word);
}

bool onednn_content_known(const onednn_content_t *content) {
  return content->key[0] != 0 || content->key[1] != 0;
}

onednn_content_t onednn_content_of(const cleave_value_view_t *value) {
  onednn_content_t content = {{0, 0}};
  if (value->tensor.version != 0) {
    add_word(&content, value->tensor.version);
    add_word(&content, (uint64_t)(uintptr_t)value->tensor.data);
  }
  return content;
}

onednn_content_t onednn_content_mix(const onednn_content_t *content, const void *data, size_t bytes) {
  onednn_content_t out = *content;
  const unsigned char *next = data;
  if (!onednn_content_known(content)) {
    return out;
  }
  add_word(&out, bytes);
  for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t), next += sizeof(uint64_t)) {
    uint64_t word;
    memcpy(&word, next, sizeof(word));
    add_word(&out, word);
  }
  uint64_t rest = 0;
  if (bytes > 0) {
    memcpy(&rest, next, bytes);
  }
  add_word(&out, rest);
  return out;
}

static void mix_piece(void *context, const void *data, size_t bytes) {
  onednn_content_t *content = context;
  *content = onednn_content_mix(content, data, bytes);
}

onednn_content_t onednn_content_layout(const onednn_content_t *content, const onednn_layout_t *layout) {
  onednn_content_t out = *content;
  if (onednn_content_known(content) && !onednn_layout_pieces(layout, mix_piece, &out)) {
    return (onednn_content_t){{0, 0}};
  }
  return out;
}

// ---- the store ----

onednn_store_t *onednn_store_create(void) {
  onednn_store_t *store = calloc(1, sizeof(*store));
  if (store != NULL && pthread_mutex_init(&store->lock, NULL) != 0) {
    free(store);
    return NULL;
  }
  return store;
}

void onednn_store_destroy(onednn_store_t *store) {
  if (store != NULL) {
    onednn_store_prepare(store, false);
    onednn_pages_unmap(&store->spare);
    (void)pthread_mutex_destroy(&store->lock);
    free(store);
  }
}

static entry_t **bucket_of(onednn_store_t *store, const onednn_content_t *content) {
  return &store->buckets[content->key[0] % BUCKETS];
}

static bool is_same(const onednn_content_t *a, const onednn_content_t *b) {
  return a->key[0] == b->key[0] && a->key[1] == b->key[1];
}

void *onednn_store_find(onednn_store_t *store, const onednn_content_t *content, onednn_slab_t **out_slab) {
  void *data = NULL;
  *out_slab = NULL;
  if (!onednn_content_known(content)) {
    return NULL;
  }
  (void)pthread_mutex_lock(&store->lock);
  for (const entry_t *e = *bucket_of(store, content); e != NULL && data == NULL; e = e->next) {
    if (is_same(&e->content, content)) {
      data = e->data;
      *out_slab = e->slab;
      e->slab->references++;
    }
  }
  (void)pthread_mutex_unlock(&store->lock);
  return data;
}

// Takes an entry out of its bucket; under the lock.
static void unlink_entry(onednn_store_t *store, entry_t *entry) {
  entry_t **link = bucket_of(store, &entry->content);
  while (*link != NULL && *link != entry) {
    link = &(*link)->next;
  }
  if (*link == entry) {
    *link = entry->next;
  }
}

void onednn_slab_publish(onednn_slab_t *slab, const onednn_content_t *content, void *data) {
  entry_t *entry = onednn_content_known(content) ? malloc(sizeof(*entry)) : NULL;
  if (entry == NULL) {
    return;
  }
  *entry = (entry_t){.content = *content, .slab = slab, .data = data};
  (void)pthread_mutex_lock(&slab->store->lock);
  entry_t **bucket = bucket_of(slab->store, content);
  for (entry_t **link = bucket; *link != NULL; link = &(*link)->next) {
    if (is_same(&(*link)->content, content)) {
      *link = (*link)->next;  // its slab still owns it
      break;
    }
  }
  entry->next = *bucket;
  *bucket = entry;
  entry->next_own = slab->entries;
  slab->entries = entry;
  (void)pthread_mutex_unlock(&slab->store->lock);
}

// ---- memory made ahead ----

// Under the lock: the spare memory becomes `pages` if that is larger and slabs live; `pages` is what is
// left to be unmapped.
static void keep_larger(onednn_store_t *store, onednn_pages_t *pages) {
  if (store->slab_count > 0 && pages->bytes > store->spare.bytes) {
    onednn_pages_t smaller = store->spare;
    store->spare = *pages;
    *pages = smaller;
  }
}

static void make_spare(onednn_store_t *store) {
  (void)pthread_mutex_lock(&store->lock);
  size_t bytes = store->largest + store->largest / 8;
  bool is_needed = store->slab_count > 0 && bytes > store->spare.bytes;
  (void)pthread_mutex_unlock(&store->lock);
  onednn_pages_t pages = {NULL, 0};
  if (!is_needed || !onednn_pages_map(bytes, bytes >= least_large, &pages)) {
    return;
  }
  onednn_pages_clear(&pages, &store->stops);
  (void)pthread_mutex_lock(&store->lock);
  if (!atomic_load(&store->stops)) {
    keep_larger(store, &pages);
  }
  (void)pthread_mutex_unlock(&store->lock);
  onednn_pages_unmap(&pages);
}

static void *clear_ahead(void *context) {
  onednn_store_t *store = context;
  // Other threads go first. On Linux this priority is that of the calling thread alone.
  (void)setpriority(PRIO_PROCESS, 0, 10);
  make_spare(store);
  atomic_store(&store->has_finished, true);
  return NULL;
}

void onednn_store_prepare(onednn_store_t *store, bool wanted) {
  if (wanted && store->has_clearer && !atomic_load(&store->has_finished)) {
    return;
  }
  if (store->has_clearer) {
    atomic_store(&store->stops, true);
    (void)pthread_join(store->clearer, NULL);
    store->has_clearer = false;
  }
  atomic_store(&store->stops, false);
  atomic_store(&store->has_finished, false);
  store->has_clearer = wanted && pthread_create(&store->clearer, NULL, clear_ahead, store) == 0;
}

size_t onednn_store_spare(onednn_store_t *store) {
  (void)pthread_mutex_lock(&store->lock);
  size_t bytes = store->spare.bytes;
  (void)pthread_mutex_unlock(&store->lock);
  return bytes;
}

// ---- slabs ----

// Takes the spare memory if most of what is expected has room in it, and the first constant has for sure;
// what is not taken of it comes back.
static bool take_spare(onednn_slab_t *slab, size_t bytes, size_t first) {
  onednn_store_t *store = slab->store;
  (void)pthread_mutex_lock(&store->lock);
  bool fits = store->spare.base != NULL && store->spare.bytes >= bytes / 2 &&
              store->spare.bytes >= onednn_round_up(first);
  if (fits) {
    slab->pages = store->spare;
    slab->is_ready = true;
    store->spare = (onednn_pages_t){NULL, 0};
  }
  (void)pthread_mutex_unlock(&store->lock);
  return fits;
}

static bool map_memory(onednn_slab_t *slab, size_t expected) {
  size_t wanted = 2 * expected < least_room ? least_room : 2 * expected;
  return onednn_pages_map(wanted, expected >= least_large, &slab->pages);
}

onednn_slab_t *onednn_slab_create(onednn_store_t *store, size_t bytes, size_t first) {
  onednn_slab_t *slab = bytes > SIZE_MAX / 4 ? NULL : calloc(1, sizeof(*slab));
  if (slab == NULL) {
    return NULL;
  }
  slab->store = store;
  slab->references = 1;
  if (!take_spare(slab, bytes, first) && !map_memory(slab, bytes)) {
    free(slab);
    return NULL;
  }
  (void)pthread_mutex_lock(&store->lock);
  store->slab_count++;
  (void)pthread_mutex_unlock(&store->lock);
  return slab;
}

// Under the lock: the last reference has gone. What is to be unmapped comes back.
static void retire(onednn_slab_t *slab, onednn_pages_t parts[2]) {
  onednn_store_t *store = slab->store;
  for (entry_t *e = slab->entries; e != NULL; e = e->next_own) {
    unlink_entry(store, e);
  }
  store->slab_count--;
  parts[0] = slab->pages;
  keep_larger(store, &parts[0]);
  if (store->slab_count == 0) {
    parts[1] = store->spare;
    store->spare = (onednn_pages_t){NULL, 0};
  }
}

void onednn_slab_release(onednn_slab_t *slab) {
  if (slab == NULL) {
    return;
  }
  onednn_store_t *store = slab->store;
  onednn_pages_t parts[2] = {{NULL, 0}, {NULL, 0}};
  (void)pthread_mutex_lock(&store->lock);
  bool last = --slab->references == 0;
  if (last) {
    retire(slab, parts);
  }
  (void)pthread_mutex_unlock(&store->lock);
  if (!last) {
    return;
  }
  onednn_pages_unmap(&parts[0]);
  onednn_pages_unmap(&parts[1]);
  while (slab->entries != NULL) {
    entry_t *next = slab->entries->next_own;
    free(slab->entries);
    slab->entries = next;
  }
  free(slab);
}

void *onednn_slab_take(onednn_slab_t *slab, size_t bytes) {
  size_t needed = onednn_round_up(bytes > 0 ? bytes : 1);
  if (needed > slab->pages.bytes - slab->used) {
    return NULL;
  }
  void *memory = slab->pages.base + slab->used;
  slab->used += needed;
  return memory;
}

void onednn_slab_trim(onednn_slab_t *slab) {
  onednn_store_t *store = slab->store;
  onednn_pages_t rest = onednn_pages_split(&slab->pages, slab->used);
  (void)pthread_mutex_lock(&store->lock);
  store->largest = slab->pages.bytes > store->largest ? slab->pages.bytes : store->largest;
  if (slab->is_ready) {
    keep_larger(store, &rest);
  }
  (void)pthread_mutex_unlock(&store->lock);
  onednn_pages_unmap(&rest);
}

size_t onednn_slab_used(const onednn_slab_t *slab) {
  return slab->used;
}

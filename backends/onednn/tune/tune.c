// SPDX-License-Identifier: Apache-2.0
// Tunings by the hash of their region. The lock is held while one is measured: two at once would disturb each
// other.
#include "onednn/tune/tune.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "onednn/tune/search.h"
#include "onednn/weights/tuning.h"

typedef struct known {
  uint64_t region;
  onednn_tuning_t *tuning;
  struct known *next;
} known_t;

struct onednn_tunings {
  pthread_mutex_t lock;
  known_t *first;
};

onednn_tunings_t *onednn_tunings_create(void) {
  onednn_tunings_t *tunings = calloc(1, sizeof(*tunings));
  if (tunings != NULL && pthread_mutex_init(&tunings->lock, NULL) != 0) {
    free(tunings);
    return NULL;
  }
  return tunings;
}

void onednn_tunings_destroy(onednn_tunings_t *tunings) {
  if (tunings == NULL) {
    return;
  }
  while (tunings->first != NULL) {
    known_t *next = tunings->first->next;
    free(tunings->first->tuning);
    free(tunings->first);
    tunings->first = next;
  }
  (void)pthread_mutex_destroy(&tunings->lock);
  free(tunings);
}

// FNV-1a over the name that the processor gives itself; 0 if it has none.
static uint64_t digest_processor(void) {
  uint64_t digest = 0;
#if defined(__x86_64__)
  digest = UINT64_C(0xcbf29ce484222325);
  for (unsigned leaf = 0x80000002U; leaf <= 0x80000004U; leaf++) {
    unsigned words[4] = {0, 0, 0, 0};
    if (__get_cpuid(leaf, &words[0], &words[1], &words[2], &words[3]) == 0) {
      return 0;
    }
    for (int k = 0; k < 4; k++) {
      digest = (digest ^ words[k]) * UINT64_C(0x100000001b3);
    }
  }
#endif
  return digest;
}

static bool asks(const cleave_region_view_t *region) {
  const cleave_attribute_view_t *tune = cleave_view_region_attribute(region, "tune");
  return tune != NULL && tune->kind == CLEAVE_ATTRIBUTE_INT && tune->i != 0;
}

// Takes the tuning over. The lock is held.
static cleave_status_t remember(onednn_tunings_t *tunings, uint64_t region, onednn_tuning_t *tuning,
                                cleave_message_t *message) {
  known_t *known = tuning == NULL ? NULL : malloc(sizeof(*known));
  if (known == NULL) {
    free(tuning);
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while tuning");
  }
  *known = (known_t){.region = region, .tuning = tuning, .next = tunings->first};
  tunings->first = known;
  return CLEAVE_OK;
}

static const onednn_tuning_t *recall(const onednn_tunings_t *tunings, uint64_t region) {
  const known_t *known = tunings->first;
  while (known != NULL && known->region != region) {
    known = known->next;
  }
  return known != NULL ? known->tuning : NULL;
}

static onednn_tuning_t *copy_of(const onednn_tuning_t *tuning) {
  size_t bytes = onednn_tuning_bytes(tuning->kernel_count);
  onednn_tuning_t *copy = malloc(bytes);
  if (copy != NULL) {
    memcpy(copy, tuning, bytes);
  }
  return copy;
}

// Tunes a region of which nothing is known yet. The lock is held.
static cleave_status_t make(onednn_tunings_t *tunings, const onednn_base_t *base, const onednn_image_t *image,
                            const cleave_region_view_t *region, int32_t threads, cleave_message_t *message) {
  onednn_tuning_t *tuning = NULL;
  if (image != NULL) {
    const onednn_tuning_t *kept = onednn_tuning_find(image);
    if (kept == NULL || kept->processor != digest_processor() || kept->threads != (uint32_t)threads) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                         "tuned on another processor or for another number of threads");
    }
    return remember(tunings, region->hash, copy_of(kept), message);
  }
  ONEDNN_TRY(onednn_search(base, region, threads, &tuning, message));
  tuning->processor = digest_processor();
  tuning->threads = (uint32_t)threads;
  return remember(tunings, region->hash, tuning, message);
}

static bool is_same(const onednn_tuning_t *a, const onednn_tuning_t *b) {
  return a->kernel_count == b->kernel_count &&
         memcmp(a->forms, b->forms, a->kernel_count * sizeof(onednn_form_t)) == 0;
}

cleave_status_t onednn_tune(onednn_tunings_t *tunings, const onednn_base_t *base, const onednn_image_t *image,
                            const cleave_region_view_t *region, int32_t threads, const onednn_tuning_t **out,
                            cleave_message_t *message) {
  *out = NULL;
  if (!asks(region)) {
    return CLEAVE_OK;
  }
  (void)pthread_mutex_lock(&tunings->lock);
  cleave_status_t status = CLEAVE_OK;
  const onednn_tuning_t *known = recall(tunings, region->hash);
  const onednn_tuning_t *kept = onednn_tuning_find(image);
  if (known == NULL) {
    status = make(tunings, base, image, region, threads, message);
    known = recall(tunings, region->hash);
  } else if (image != NULL && (kept == NULL || !is_same(known, kept))) {
    status = kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "tuned in another way than in this process");
  }
  (void)pthread_mutex_unlock(&tunings->lock);
  *out = status == CLEAVE_OK ? known : NULL;
  return status;
}

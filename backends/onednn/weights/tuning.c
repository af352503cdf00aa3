// SPDX-License-Identifier: Apache-2.0
// Images come from files: every form is checked when a tuning is found.
#include "onednn/weights/tuning.h"

#include <stdio.h>

static const uint64_t identity = UINT64_C(0x74756e696e670001);  // "tuning", version 1

size_t onednn_tuning_bytes(uint32_t kernel_count) {
  return sizeof(onednn_tuning_t) + kernel_count * sizeof(onednn_form_t);
}

onednn_packed_t onednn_tuning_packed(const onednn_tuning_t *tuning) {
  return (onednn_packed_t){
      .identity = identity, .data = tuning, .bytes = onednn_tuning_bytes(tuning->kernel_count)};
}

const onednn_tuning_t *onednn_tuning_find(const onednn_image_t *image) {
  if (image == NULL || image->count == 0) {
    return NULL;
  }
  const onednn_image_entry_t *entry = &image->entries[image->count - 1];
  const onednn_tuning_t *tuning = (const void *)(image->data + entry->offset);
  if (entry->identity != identity || entry->bytes < sizeof(*tuning) ||
      entry->bytes != onednn_tuning_bytes(tuning->kernel_count)) {
    return NULL;
  }
  for (uint32_t k = 0; k < tuning->kernel_count; k++) {
    const onednn_form_t *form = &tuning->forms[k];
    if (form->layout >= ONEDNN_FORM_LAYOUTS || form->skipped > ONEDNN_FORM_SKIPS || form->serial > 1) {
      return NULL;
    }
  }
  return tuning;
}

void onednn_tuning_text(const onednn_tuning_t *tuning, char *text, size_t size) {
  if (tuning->changed + tuning->serial == 0) {
    (void)snprintf(text, size, "tuned for %u thread%s: nothing is faster than the default forms (%.2f ms)",
                   (unsigned)tuning->threads, KERNEL_PLURAL(tuning->threads), tuning->before_ms);
    return;
  }
  (void)snprintf(text, size,
                 "tuned for %u thread%s: %u convolution%s with another layout or implementation, %u of %u "
                 "kernels one thread; %.2f ms in place of %.2f",
                 (unsigned)tuning->threads, KERNEL_PLURAL(tuning->threads), (unsigned)tuning->changed,
                 KERNEL_PLURAL(tuning->changed), (unsigned)tuning->serial, (unsigned)tuning->kernel_count,
                 tuning->after_ms, tuning->before_ms);
}

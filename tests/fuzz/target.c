// SPDX-License-Identifier: Apache-2.0
// A libFuzzer target for FUZZ_KIND. Half of its changes are libFuzzer's own, the others those that the tests
// make as well; now and then it begins anew with an input that nobody has damaged, so that it needs no
// corpus.
#include <string.h>

#include "damage.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size, size_t room, unsigned seed);
size_t LLVMFuzzerMutate(unsigned char *data, size_t size, size_t room);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  (void)FUZZ_KIND.run(data, size);
  return 0;
}

size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size, size_t room, unsigned seed) {
  damage_seed(seed);
  if (size <= 1 || damage_random(64) == 0) {
    cleave_text_t input = {0};
    FUZZ_KIND.draw(&input);
    size = input.length < room ? input.length : room;
    memcpy(data, cleave_text_get(&input), size);
    cleave_text_deinit(&input);
  }
  if (damage_random(2) == 0) {
    return LLVMFuzzerMutate(data, size, room);
  }
  for (size_t k = 1 + damage_random(3); k > 0 && size > 0; k--) {
    size = FUZZ_KIND.damage((char *)data, size, room);
  }
  return size;
}

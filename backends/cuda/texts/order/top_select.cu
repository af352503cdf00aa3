// SPDX-License-Identifier: Apache-2.0
// TopK of few elements of long rows: a block finds the `keep` first of a chunk of elements, or of entries that were found before, by
// radix selection. It counts the keys with each leading byte, takes the byte that the last key wanted has, and goes on with the next
// byte of these. All with a larger key, and the first ones of that key, are kept in the order in which they lie. It reads its chunk
// DIGITS + 2 times, from the first-level cache but for the first time, and bounds are these reads and the counting in shared memory.
// FINAL sorts what is kept, which are ROOM entries or fewer.

// The sum of `own` of the threads before this one.
__device__ u32 sum_before(u32 *sums, u32 own) {
  const int t = (int)threadIdx.x;
  sums[t] = own;
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    const u32 other = t >= step ? sums[t - step] : 0;
    __syncthreads();
    sums[t] += other;
    __syncthreads();
  }
  return sums[t] - own;
}

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  __shared__ u32 counts[256];
  __shared__ u32 found[2];
#if FINAL
  __shared__ entry kept[ROOM];
#endif
  const int t = (int)threadIdx.x;
  const index row = (index)blockIdx.x / args.chunks;
  const index begin = ((index)blockIdx.x - row * args.chunks) * args.chunk;
  const int size = (int)(args.source - begin < args.chunk ? args.source - begin : args.chunk);
  const int keep = (int)(args.keep < size ? args.keep : size);
#if FROM_ENTRIES
  const entry *own = args.from + row * args.source + begin;
#define KEY_AT(i) key_in(own[i])
#define ENTRY_AT(i) own[i]
#else
  const word *own = args.x + row_begin(args, row, args.length) + begin * args.inner;
#define KEY_AT(i) key_of(own[(index)(i)*args.inner])
#define ENTRY_AT(i) make_entry(KEY_AT(i), (u32)(begin + (i)))
#endif
  order_key last = 0;      // the leading bytes of the last key wanted
  u32 missing = (u32)keep; // keys with these bytes that are wanted
  for (int digit = DIGITS - 1; digit >= 0; digit--) {
    counts[t] = 0;
    __syncthreads();
    for (int i = t; i < size; i += 256) {
      const order_key key = KEY_AT(i);
      if (digit == DIGITS - 1 || key >> (8 * digit + 8) == last) {
        atomicAdd(counts + (int)(key >> (8 * digit) & 255), 1u);
      }
    }
    __syncthreads();
    // Those with this byte or a larger one.
    for (int step = 1; step < 256; step *= 2) {
      const u32 other = t + step < 256 ? counts[t + step] : 0;
      __syncthreads();
      counts[t] += other;
      __syncthreads();
    }
    const u32 larger = t < 255 ? counts[t + 1] : 0;
    if (larger < missing && counts[t] >= missing) {
      found[0] = (u32)t;
      found[1] = larger;
    }
    __syncthreads();
    last = last << 8 | found[0];
    missing -= found[1];
    __syncthreads();
  }
  // A thread has neighbours, so that what is kept stays in order.
  const int share = (size + 255) / 256;
  const int from = share * t < size ? share * t : size;
  const int end = from + share < size ? from + share : size;
  u32 larger = 0;
  u32 equal = 0;
  for (int i = from; i < end; i++) {
    const order_key key = KEY_AT(i);
    larger += key > last;
    equal += key == last;
  }
  larger = sum_before(counts, larger);
  equal = sum_before(counts, equal);
  u32 to = larger + (equal < missing ? equal : missing);
  for (int i = from; i < end; i++) {
    const order_key key = KEY_AT(i);
    if (key > last || (key == last && equal < missing)) {
#if FINAL
      kept[to] = ENTRY_AT(i);
#else
      args.to[(index)blockIdx.x * args.keep + to] = ENTRY_AT(i);
#endif
      to++;
    }
    equal += key == last;
  }
#if FINAL
  for (int i = keep + t; i < ROOM; i += 256) {
    kept[i] = no_entry();
  }
  sort_spans(kept);
  for (int i = t; i < keep; i += 256) {
    put_result(args, row, i, kept[i]);
  }
#else
  for (int i = keep + t; i < (int)args.keep; i += 256) {
    args.to[(index)blockIdx.x * args.keep + i] = no_entry();
  }
#endif
}

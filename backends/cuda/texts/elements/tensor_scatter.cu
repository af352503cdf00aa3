// SPDX-License-Identifier: Apache-2.0
// TensorScatter: y is the cache with `rows` rows of the update from row first[batch] on, in the first rows again behind the last one
// if it is CIRCULAR. A row outside of the cache goes nowhere. Elements are blocks of a row; reading and writing the cache once bounds
// it.
struct arguments {
  const element *cache;
  const element *update;
#if INDICES
  const place *first;
#endif
  element *y;
  index count;
  index room; // rows of the cache
  index rows;
  index inner;
  index matrices; // of a batch
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  index matrix = i;
  const index at = take_last(matrix, args.inner);
  const index row = take_last(matrix, args.room);
#if INDICES
  const i64 first = (i64)args.first[matrix / args.matrices];
#else
  const i64 first = 0;
#endif
  i64 from = (i64)row - first; // row of the update
#if CIRCULAR
  from = first < 0 || first >= args.room ? (i64)-1 : from < 0 ? from + args.room : from;
#endif
  args.y[i] = from >= 0 && from < args.rows ? args.update[(matrix * args.rows + (index)from) * args.inner + at] : args.cache[i];
}

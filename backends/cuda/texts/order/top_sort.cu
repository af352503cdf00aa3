// SPDX-License-Identifier: Apache-2.0
// TopK of short rows, FINAL, or of chunks of long ones, whose entries top_merge.cu takes: a block sorts ROOM / SPAN of them in shared
// memory. With n = log2 SPAN it goes over all of that n (n + 1) / 2 times, which bounds it; global memory is read and written once.
extern "C" __global__ void __launch_bounds__(THREADS) cleave_kernel(const arguments args) {
  __shared__ entry all[ROOM];
  const int units = ROOM / SPAN;
  const index first = (index)blockIdx.x * units;
  const index last = args.rows * args.chunks;
  for (int k = (int)threadIdx.x; k < ROOM; k += THREADS) {
    // Neighbouring threads read neighbours in memory, which lie along the axis or across it.
    const int own = INNER ? k % units : k / SPAN;
    const int i = INNER ? k / units : k % SPAN;
    const index row = (first + own) / args.chunks;
    const index at = (first + own - row * args.chunks) * args.chunk + i;
    const bool is_inside = first + own < last && i < args.chunk && at < args.length;
    all[own * SPAN + i] = is_inside ? make_entry(key_of(args.x[row_begin(args, row, args.length) + at * args.inner]), (u32)at)
                                    : no_entry();
  }
  sort_spans(all);
  const index kept = args.keep < SPAN ? args.keep : SPAN;
  for (int k = (int)threadIdx.x; k < ROOM; k += THREADS) {
    const int own = INNER ? k % units : k / SPAN;
    const int i = INNER ? k / units : k % SPAN;
    if (first + own < last && i < kept) {
#if FINAL
      put_result(args, first + own, i, all[own * SPAN + i]);
#else
      args.to[(first + own) * kept + i] = all[own * SPAN + i];
#endif
    }
  }
}

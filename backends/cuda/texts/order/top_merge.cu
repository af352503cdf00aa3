// SPDX-License-Identifier: Apache-2.0
// TopK of many elements of long rows: two sorted runs of `chunk` entries each become one, of at most `keep`. A thread has an entry and
// finds its place by the number of those in the other run that rank before it, a binary search; reading the runs' entries at places
// far apart bounds it. A row has `chunks` runs; where the last one is alone, nothing is in the other.
extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index k = (index)blockIdx.x * 256 + threadIdx.x;
  const index pairs = (args.chunks + 1) / 2;
  const index pair = k / (2 * args.chunk);
  if (pair >= args.rows * pairs) {
    return;
  }
  const index row = pair / pairs;
  const index first = (pair - row * pairs) * 2; // of the runs of the row
  const index at = k - pair * 2 * args.chunk;
  const bool is_second = at >= args.chunk;
  const bool is_alone = first + 1 == args.chunks;
  const entry *own = args.from + (row * args.chunks + first) * args.chunk;
  const entry *other = is_second ? own : own + args.chunk;
  const entry x = is_second && is_alone ? no_entry() : own[at];
  index low = 0;
  index high = !is_second && is_alone ? 0 : args.chunk;
  while (low < high) {
    const index middle = low + (high - low) / 2;
    // What is no element stands in several runs: there the first run comes first.
    const bool is_before = is_second ? !ranks_before(x, other[middle]) : ranks_before(other[middle], x);
    low = is_before ? middle + 1 : low;
    high = is_before ? high : middle;
  }
  const index to = low + (is_second ? at - args.chunk : at);
  const index kept = 2 * args.chunk < args.keep ? 2 * args.chunk : args.keep;
  if (to < kept) {
#if FINAL
    put_result(args, row, to, x);
#else
    args.to[pair * kept + to] = x;
#endif
  }
}

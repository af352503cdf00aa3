// SPDX-License-Identifier: Apache-2.0
// What kernels of TopK order, as lines before their texts: entries, each the key of an element and its place along the axis. The
// larger key ranks first, and of equal ones the lower place, so that no two entries of a row are equal. Keys are made of the bits of
// an element, of type `word`. KIND 0: without a sign; 1: integers; 2: floats, where NaN has the largest key and both zeros have
// one. LARGEST 0 turns keys round. DIGITS is the number of their bytes.
#if DIGITS > 4
typedef u64 order_key;
struct alignas(16) entry {
  u64 key;
  u32 place;
};
__device__ entry make_entry(order_key key, u32 place) {
  return entry{key, place};
}
__device__ order_key key_in(const entry &x) {
  return x.key;
}
__device__ u32 place_of(const entry &x) {
  return x.place;
}
__device__ bool ranks_before(const entry &a, const entry &b) {
  return a.key > b.key || (a.key == b.key && a.place < b.place);
}
#else
typedef u32 order_key;
typedef u64 entry; // the key, and the bits of the place turned round: the larger number ranks first
__device__ entry make_entry(order_key key, u32 place) {
  return (u64)key << 32 | (u32)~place;
}
__device__ order_key key_in(entry x) {
  return (u32)(x >> 32);
}
__device__ u32 place_of(entry x) {
  return ~(u32)x;
}
__device__ bool ranks_before(entry a, entry b) {
  return a > b;
}
#endif

__device__ order_key key_of(word bits) {
  const word sign = (word)((word)1 << (8 * DIGITS - 1));
#if KIND == 0
  word key = bits;
#elif KIND == 1
  word key = (word)(bits ^ sign);
#else
  const word size = (word)(bits & (word)~sign);
  word key = (bits & sign) != 0 ? (word)~bits : (word)(bits | sign);
  key = size == 0 ? sign : size > (word)INFINITE ? (word)~(word)0 : key;
#endif
  return (order_key)(LARGEST ? key : (word)~key);
}

// Ranks behind every element: there are at most 2^32 - 1 along an axis.
__device__ entry no_entry() {
  return make_entry(0, 0xffffffffu);
}

#ifdef SPAN
// Sorts the entries of each of ROOM / SPAN spans by a bitonic network; SPAN is a power of two. All of a block meet here.
__device__ void sort_spans(entry *all) {
  for (int size = 2; size <= SPAN; size *= 2) {
    for (int step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int k = (int)threadIdx.x; k < ROOM / 2; k += THREADS) {
        const int low = 2 * k - k % step;
        const entry a = all[low];
        const entry b = all[low + step];
        const bool is_turned = (low & (SPAN - 1) & size) != 0;
        if (is_turned ? ranks_before(a, b) : ranks_before(b, a)) {
          all[low] = b;
          all[low + step] = a;
        }
      }
    }
  }
  __syncthreads();
}
#endif

struct arguments {
  const word *x;
#if FROM_ENTRIES
  const entry *from;
#endif
#if !FINAL
  entry *to;
#else
#if VALUES
  word *values;
#endif
#if INDICES
  i64 *indices;
#endif
#endif
  index rows;
  index inner;  // elements from one along the axis to the next
  index length; // of the axis
  index keep;   // elements of a row of the result
  index source; // elements or entries of a row that are read
  index chunk;  // of these, what a unit reads
  index chunks; // of a row
};

// The element that a row begins with.
__device__ index row_begin(const arguments &args, index row, index length) {
  const index outer = row / args.inner;
  return outer * length * args.inner + row - outer * args.inner;
}

#if FINAL
// Element `i` of a row of the result.
__device__ void put_result(const arguments &args, index row, index i, const entry &x) {
  const index to = row_begin(args, row, args.keep) + i * args.inner;
#if VALUES
  args.values[to] = args.x[row_begin(args, row, args.length) + (index)place_of(x) * args.inner];
#endif
#if INDICES
  args.indices[to] = (i64)place_of(x);
#endif
}
#endif

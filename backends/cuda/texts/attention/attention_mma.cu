// SPDX-License-Identifier: Apache-2.0
// Attention with products by tensor cores, for compute capability 8.0 and up: float16, bfloat16, and float32 as TF32. A warp has 16
// rows, QUERY_WARPS of them lie side by side, and KEY_WARPS share the keys of each tile of KEYS. Queries stay in registers if they
// are few columns; keys and values are copied to shared memory while the other ones are multiplied. The layouts of fragments are
// those of the instructions mma.m16n8k16 and mma.m16n8k8: lane = 4 * row + pair. Defined before, besides what attention_rows.cu
// lists: FORM (0: float16, 1: bfloat16, 2: TF32), QUERY_WARPS, KEY_WARPS, KEYS, and Q_PACK, K_PACK, V_PACK, Y_PACK (elements that
// are accessed at once).
#define KEEPS_QUERIES (SIZE <= (FORM == 2 ? 64 : 128)) // in registers

enum {
  STEP = FORM == 2 ? 8 : 16, // columns of one product
  DEPTH = (SIZE + STEP - 1) / STEP * STEP,
  STEPS = DEPTH / STEP,
  GAP = 16 / sizeof(element), // rows of a tile begin in other banks
  KEY_LINE = DEPTH + GAP,
  VALUE_LINE = SLICE + GAP,
  OWN_KEYS = KEYS / KEY_WARPS, // of a tile, for a warp
  BLOCKS = OWN_KEYS / 8,       // of scores
  OUTPUTS = SLICE / 8,         // blocks of sums
  TILE_BYTES = KEYS * (KEY_LINE + VALUE_LINE) * sizeof(element),
  JOIN_FLOATS = (OUTPUTS * 4 + 4) * 32, // of a warp
  JOIN_BYTES = KEY_WARPS > 1 ? QUERY_WARPS * JOIN_FLOATS * 4 : 0,
  BYTES = TILE_BYTES > JOIN_BYTES ? TILE_BYTES : JOIN_BYTES
};

// ---- instructions ----

// d += a * b, of 16 x STEP and STEP x 8.
__device__ __forceinline__ void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#ifdef __CUDA_ARCH__
#if FORM == 0
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
#elif FORM == 1
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
#else
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
#endif
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#elif FORM == 0
  grid_mma_f16(d, a, b0, b1);
#elif FORM == 1
  grid_mma_bf16(d, a, b0, b1);
#else
  grid_mma_tf32(d, a, b0, b1);
#endif
}

// Four matrices of 8 rows of 16 bytes; lane 8 * m + r says where row r of matrix m is.
__device__ __forceinline__ void load_matrices(u32 (&to)[4], const element *row) {
#ifdef __CUDA_ARCH__
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"((u32)__cvta_generic_to_shared(row))
               : "memory");
#else
  grid_ldmatrix(to, row, false);
#endif
}

#if FORM < 2
// The same, transposed.
__device__ __forceinline__ void load_turned(u32 (&to)[4], const element *row) {
#ifdef __CUDA_ARCH__
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"((u32)__cvta_generic_to_shared(row))
               : "memory");
#else
  grid_ldmatrix(to, row, true);
#endif
}
#endif

// BYTES to shared memory, or zeros, while the warp goes on.
template <int BYTES> __device__ __forceinline__ void copy(element *to, const element *from, bool is_there) {
#ifdef __CUDA_ARCH__
  if (BYTES == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from),
                 "r"(is_there ? 16 : 0)
                 : "memory");
    return;
  }
  if (BYTES == 8) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from),
                 "r"(is_there ? 8 : 0)
                 : "memory");
    return;
  }
  if (BYTES == 4) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from),
                 "r"(is_there ? 4 : 0)
                 : "memory");
    return;
  }
#endif
  pack<BYTES / sizeof(element), element> some = {};
  if (is_there) {
    some = *(const pack<BYTES / sizeof(element), element> *)from;
  }
  *(pack<BYTES / sizeof(element), element> *)to = some;
}

// What this thread has copied is there, and after the barrier, what the others have.
__device__ __forceinline__ void wait_for_copies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  __syncthreads();
}

// ---- numbers as the products take them ----

#if FORM == 2
// Rounded to TF32.
__device__ __forceinline__ u32 to_bits(float x) {
#ifdef __CUDA_ARCH__
  u32 bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
#else
  return grid_round_tf32(x);
#endif
}
#else
__device__ __forceinline__ u32 pair_of(element low, element high) {
  return (u32)low | (u32)high << 16;
}
#endif

// What a lane has of a row of queries; `at` is the first column of the half of a step.
__device__ __forceinline__ u32 query_bits(const element *row, int at, int pair, bool is_there) {
#if FORM == 2
  return is_there && at + pair < SIZE ? to_bits(row[at + pair]) : 0u;
#else
  const int column = at + 2 * pair;
#if Q_PACK >= 2
  return is_there && column < SIZE ? *(const u32 *)(row + column) : 0u;
#else
  return pair_of(is_there && column < SIZE ? row[column] : (element)0,
                 is_there && column + 1 < SIZE ? row[column + 1] : (element)0);
#endif
#endif
}

// ---- tiles ----

// KEYS rows of a matrix, zeros from `end` on and from column `columns` to PADDED.
template <int PADDED, int LINE, int PACK>
__device__ __forceinline__ void load_tile(element *tile, const element *from, index stride, index first, index end, int columns) {
  for (int i = (int)threadIdx.x; i < KEYS * (PADDED / PACK); i += THREADS) {
    const int key = i / (PADDED / PACK);
    const int at = i % (PADDED / PACK) * PACK;
    const bool is_there = first + key < end && at < columns;
    copy<PACK * sizeof(element)>(tile + key * LINE + at, is_there ? from + (first + key) * stride + at : from, is_there);
  }
}

struct queries {
  const element *rows[2];
  bool is_there[2];
};

__device__ __forceinline__ void load_queries(u32 (&to)[4], const queries &from, int step, int pair) {
#pragma unroll
  for (int half = 0; half < 2; half++) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      to[2 * half + r] = query_bits(from.rows[r], step * STEP + half * (STEP / 2), pair, from.is_there[r]);
    }
  }
}

// Scores of the keys of a warp, 16 at a time: matrices are their halves of 8, and halves of a step.
__device__ __forceinline__ void multiply_keys(float (&scores)[BLOCKS][4], const u32 (&a)[4], const element *keys, int step, int lane) {
  const element *row = keys + (lane / 16 * 8 + lane % 8) * KEY_LINE + step * STEP + lane / 8 % 2 * (STEP / 2);
#pragma unroll
  for (int b = 0; b < BLOCKS; b += 2) {
    u32 some[4];
    load_matrices(some, row + b * 8 * KEY_LINE);
#if FORM == 2
#pragma unroll
    for (int k = 0; k < 4; k++) {
      some[k] = to_bits(__uint_as_float(some[k]));
    }
#endif
    multiply(scores[b], a, some[0], some[1]);
    multiply(scores[b + 1], a, some[2], some[3]);
  }
}

// Sums of values by the weights that scores have become.
__device__ __forceinline__ void multiply_values(float (&sums)[OUTPUTS][4], const float (&weights)[BLOCKS][4], const element *values,
                                                int lane) {
#if FORM == 2
  // Which key is which does not matter to a sum: lane `pair` has keys 2 * pair and 2 * pair + 1 of both operands.
#pragma unroll
  for (int b = 0; b < BLOCKS; b++) {
    const u32 a[4] = {to_bits(weights[b][0]), to_bits(weights[b][2]), to_bits(weights[b][1]), to_bits(weights[b][3])};
    const element *key = values + (b * 8 + lane % 4 * 2) * VALUE_LINE + lane / 4;
#pragma unroll
    for (int n = 0; n < OUTPUTS; n++) {
      multiply(sums[n], a, to_bits(key[n * 8]), to_bits(key[VALUE_LINE + n * 8]));
    }
  }
#else
#pragma unroll
  for (int b = 0; b < BLOCKS; b += 2) {
    u32 a[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const float *from = weights[b + k / 2] + k % 2 * 2;
      a[k] = pair_of(narrow(from[0]), narrow(from[1]));
    }
    const element *row = values + (b * 8 + lane / 8 % 2 * 8 + lane % 8) * VALUE_LINE + lane / 16 * 8;
#pragma unroll
    for (int n = 0; n < OUTPUTS; n += 2) {
      u32 some[4];
      load_turned(some, row + n * 8);
      multiply(sums[n], a, some[0], some[1]);
      multiply(sums[n + 1], a, some[2], some[3]);
    }
  }
#endif
}

// ---- rows ----

__device__ __forceinline__ float power_of(float exponent) {
  return exp2(exponent * 1.4426950408889634f);
}

// Scores become weights; what was added up before is rescaled. Lanes of a row are neighbours; each has a total of its own.
__device__ __forceinline__ void weigh(const arguments &args, const row_mask (&masks)[2], index key, float (&scores)[BLOCKS][4],
                                      float (&largest)[2], float (&total)[2], float (&sums)[OUTPUTS][4]) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float most = largest[r];
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) {
#pragma unroll
      for (int c = 2 * r; c < 2 * r + 2; c++) {
        scores[b][c] = score_of(args, masks[r], scores[b][c], key + b * 8 + c % 2);
        most = fmax(most, scores[b][c]);
      }
    }
    most = fmax(most, __shfl_xor_sync(0xffffffffu, most, 1));
    most = fmax(most, __shfl_xor_sync(0xffffffffu, most, 2));
    const float base = base_of(most);
    const float factor = power_of(largest[r] - base);
    float own = 0;
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) {
#pragma unroll
      for (int c = 2 * r; c < 2 * r + 2; c++) {
        scores[b][c] = power_of(scores[b][c] - base);
        own += scores[b][c];
      }
    }
    total[r] = total[r] * factor + own;
    largest[r] = most;
#pragma unroll
    for (int n = 0; n < OUTPUTS; n++) {
      sums[n][2 * r] *= factor;
      sums[n][2 * r + 1] *= factor;
    }
  }
}

#if KEY_WARPS > 1
// Warps with other keys of the same rows hand over what they have, one after the other.
__device__ __forceinline__ void join_warps(float *memory, int key_warp, float (&largest)[2], float (&total)[2],
                                           float (&sums)[OUTPUTS][4]) {
  for (int other = 1; other < KEY_WARPS; other++) {
    __syncthreads();
    if (key_warp == other) {
#pragma unroll
      for (int k = 0; k < 4; k++) {
        memory[k * 32] = k < 2 ? largest[k % 2] : total[k % 2];
      }
#pragma unroll
      for (int k = 0; k < OUTPUTS * 4; k++) {
        memory[(k + 4) * 32] = sums[k / 4][k % 4];
      }
    }
    __syncthreads();
    if (key_warp == 0) {
#pragma unroll
      for (int r = 0; r < 2; r++) {
        const float theirs = memory[r * 32];
        const float most = fmax(largest[r], theirs);
        const float base = base_of(most);
        const float factor = power_of(largest[r] - base);
        const float their_factor = power_of(theirs - base);
        total[r] = total[r] * factor + memory[(r + 2) * 32] * their_factor;
        largest[r] = most;
#pragma unroll
        for (int k = 0; k < OUTPUTS * 2; k++) {
          float &sum = sums[k / 2][2 * r + k % 2];
          sum = sum * factor + memory[(k / 2 * 4 + 2 * r + k % 2 + 4) * 32] * their_factor;
        }
      }
    }
  }
}
#endif

// Row `r` of the two of a lane.
__device__ __forceinline__ void write_row(const arguments &args, const block_place &block, index row, int r, int pair, float largest,
                                          float total, const float (&sums)[OUTPUTS][4]) {
#if SPLITS > 1
  number *part = part_of(args, block, row);
  if (pair == 0 && block.column == 0) {
    part[VALUE_SIZE] = largest;
    part[VALUE_SIZE + 1] = total;
  }
#else
  element *y = result_of(args, block, row);
  const float factor = total == 0 ? 0.0f : 1 / total;
#endif
#pragma unroll
  for (int n = 0; n < OUTPUTS; n++) {
    const int column = block.column + n * 8 + pair * 2;
#if SPLITS > 1
    if (column < VALUE_SIZE) {
      part[column] = sums[n][2 * r];
    }
    if (column + 1 < VALUE_SIZE) {
      part[column + 1] = sums[n][2 * r + 1];
    }
#else
    const element low = narrow(sums[n][2 * r] * factor);
    const element high = narrow(sums[n][2 * r + 1] * factor);
#if Y_PACK >= 2
    if (column < VALUE_SIZE) {
      *(pack<2, element> *)(y + column) = {{low, high}};
    }
#else
    if (column < VALUE_SIZE) {
      y[column] = low;
    }
    if (column + 1 < VALUE_SIZE) {
      y[column + 1] = high;
    }
#endif
#endif
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) cleave_kernel(const arguments args) {
  alignas(16) __shared__ unsigned char memory[BYTES];
  element *keys = (element *)memory;
  element *values = keys + KEYS * KEY_LINE;
  const block_place block = place_block(args);
  const int lane = (int)threadIdx.x % 32;
  const int pair = lane % 4;
  const int query_warp = (int)threadIdx.x / 32 % QUERY_WARPS;
  const int key_warp = (int)threadIdx.x / 32 / QUERY_WARPS;
  const element *k = args.k + block.batch * args.k_batch + block.head * args.k_head;
  const element *v = args.v + block.batch * args.v_batch + block.head * args.v_head + block.column;
  const int columns = min(VALUE_SIZE - block.column, SLICE);
  if (block.begin < block.end) {
    load_tile<DEPTH, KEY_LINE, K_PACK>(keys, k, args.k_row, block.begin, block.end, SIZE);
  }
  queries from;
  row_mask masks[2];
  const index row = block.first + query_warp * 16 + lane / 4; // and 8 rows behind it
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const row_place place = place_row(args, min(row + 8 * r, block.rows - 1));
    from.is_there[r] = row + 8 * r < block.rows;
    from.rows[r] = args.q + block.batch * args.q_batch + (block.head * args.group + place.head) * args.q_head +
                   place.query * args.q_row;
    masks[r] = find_mask(args, block, row + 8 * r);
  }
#if KEEPS_QUERIES
  u32 kept[STEPS][4];
#pragma unroll
  for (int step = 0; step < STEPS; step++) {
    load_queries(kept[step], from, step, pair);
  }
#endif
  float largest[2] = {NOTHING, NOTHING};
  float total[2] = {0.0f, 0.0f};
  float sums[OUTPUTS][4] = {};
  for (index first = block.begin; first < block.end; first += KEYS) {
    wait_for_copies(); // of keys; and nobody reads the last values any more
    load_tile<SLICE, VALUE_LINE, V_PACK>(values, v, args.v_row, first, block.end, columns);
    float scores[BLOCKS][4] = {};
#if KEEPS_QUERIES
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
      multiply_keys(scores, kept[step], keys + key_warp * OWN_KEYS * KEY_LINE, step, lane);
    }
#else
    for (int step = 0; step < STEPS; step++) {
      u32 some[4];
      load_queries(some, from, step, pair);
      multiply_keys(scores, some, keys + key_warp * OWN_KEYS * KEY_LINE, step, lane);
    }
#endif
    wait_for_copies(); // of values; and nobody reads the keys any more
    if (first + KEYS < block.end) {
      load_tile<DEPTH, KEY_LINE, K_PACK>(keys, k, args.k_row, first + KEYS, block.end, SIZE);
    }
    weigh(args, masks, first + key_warp * OWN_KEYS + pair * 2, scores, largest, total, sums);
    multiply_values(sums, scores, values + key_warp * OWN_KEYS * VALUE_LINE, lane);
  }
#pragma unroll
  for (int r = 0; r < 2; r++) {
    total[r] += __shfl_xor_sync(0xffffffffu, total[r], 1);
    total[r] += __shfl_xor_sync(0xffffffffu, total[r], 2);
  }
#if KEY_WARPS > 1
  join_warps((float *)memory + query_warp * JOIN_FLOATS + lane, key_warp, largest, total, sums);
#endif
#pragma unroll
  for (int r = 0; r < 2; r++) {
    if (key_warp == 0 && row + 8 * r < block.rows) {
      write_row(args, block, row + 8 * r, r, pair, largest[r], total[r], sums);
    }
  }
}

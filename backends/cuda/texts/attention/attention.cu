// SPDX-License-Identifier: Apache-2.0
// Attention with products in registers, for all dtypes: a thread has OWN_ROWS rows, and of each KEYS / 16 scores of a tile of keys
// and SLICE / 16 sums of values. Queries and keys go through shared memory CHUNK columns at a time, values VALUE_KEYS keys at a
// time. Scores never leave the block: each tile rescales the sums by what the largest score so far makes of them. Defined
// before, besides what attention_rows.cu lists: KEYS, OWN_ROWS, COLUMNS (neighbours among the sums of a thread), and Q_PACK,
// K_PACK, V_PACK (elements that are read at once).
enum {
  LANES = 16 / sizeof(number), // of 16 bytes
  CHUNK = 32,
  PADDED_ROWS = ROWS + LANES,
  PADDED_KEYS = KEYS + LANES,
  ROOM = CHUNK * (PADDED_ROWS + PADDED_KEYS),
  FITTING_KEYS = ROOM / SLICE,
  VALUE_KEYS = FITTING_KEYS >= KEYS ? KEYS : FITTING_KEYS >= 32 ? 32 : FITTING_KEYS >= 16 ? 16 : FITTING_KEYS >= 8 ? 8 : 4,
  OWN_KEYS = KEYS / 16,
  OWN_COLUMNS = SLICE / 16,
  ROW_LANES = OWN_ROWS < LANES ? OWN_ROWS : LANES,
  KEY_LANES = OWN_KEYS < LANES ? OWN_KEYS : LANES
};

static_assert(VALUE_KEYS * SLICE <= ROOM, "values fit where queries and keys are");

// COUNT numbers of shared memory, LANE at a time.
template <int COUNT, int LANE> __device__ __forceinline__ void take(number (&to)[COUNT], const number *from) {
#pragma unroll
  for (int k = 0; k < COUNT; k += LANE) {
    const pack<LANE, number> some = *(const pack<LANE, number> *)(from + k);
#pragma unroll
    for (int l = 0; l < LANE; l++) {
      to[k + l] = some.at[l];
    }
  }
}

// PACK elements, or zeros.
template <int PACK> __device__ __forceinline__ void read(number (&to)[PACK], const element *from, bool is_there) {
  pack<PACK, element> some = {};
  if (is_there) {
    some = *(const pack<PACK, element> *)from;
  }
#pragma unroll
  for (int k = 0; k < PACK; k++) {
    to[k] = is_there ? (number)widen(some.at[k]) : (number)0;
  }
}

// `depth` columns of queries, from `column` on: one column after the other.
__device__ __forceinline__ void load_queries(const arguments &args, const block_place &block, number *left, int column, int depth) {
  const int packs = (depth + Q_PACK - 1) / Q_PACK;
  for (int i = (int)threadIdx.x; i < ROWS * packs; i += THREADS) {
    const int own = i / packs;
    const int at = i % packs * Q_PACK;
    const index row = block.first + own;
    const row_place place = place_row(args, min(row, block.rows - 1));
    number some[Q_PACK];
    read<Q_PACK>(some,
                 args.q + block.batch * args.q_batch + (block.head * args.group + place.head) * args.q_head +
                     place.query * args.q_row + column + at,
                 row < block.rows);
#pragma unroll
    for (int k = 0; k < Q_PACK; k++) {
      left[(at + k) * PADDED_ROWS + own] = some[k];
    }
  }
}

__device__ __forceinline__ void load_keys(const arguments &args, const block_place &block, number *right, index first, int column,
                                          int depth) {
  const element *k = args.k + block.batch * args.k_batch + block.head * args.k_head;
  const int packs = (depth + K_PACK - 1) / K_PACK;
  for (int i = (int)threadIdx.x; i < KEYS * packs; i += THREADS) {
    const int own = i / packs;
    const int at = i % packs * K_PACK;
    number some[K_PACK];
    read<K_PACK>(some, k + (first + own) * args.k_row + column + at, first + own < block.end);
#pragma unroll
    for (int j = 0; j < K_PACK; j++) {
      right[(at + j) * PADDED_KEYS + own] = some[j];
    }
  }
}

__device__ __forceinline__ void load_values(const arguments &args, const block_place &block, number *values, index first) {
  const element *v = args.v + block.batch * args.v_batch + block.head * args.v_head + block.column;
  for (int i = (int)threadIdx.x; i < VALUE_KEYS * (SLICE / V_PACK); i += THREADS) {
    const int own = i / (SLICE / V_PACK);
    const int at = i % (SLICE / V_PACK) * V_PACK;
    number some[V_PACK];
    read<V_PACK>(some, v + (first + own) * args.v_row + at, first + own < block.end && block.column + at < VALUE_SIZE);
#pragma unroll
    for (int j = 0; j < V_PACK; j++) {
      values[own * SLICE + at + j] = some[j];
    }
  }
}

__device__ __forceinline__ void add_products(number (&products)[OWN_ROWS][OWN_KEYS], const number *left, const number *right,
                                             int depth) {
  for (int d = 0; d < depth; d++) {
    number a[OWN_ROWS];
    number b[OWN_KEYS];
    take<OWN_ROWS, ROW_LANES>(a, left + d * PADDED_ROWS);
    take<OWN_KEYS, KEY_LANES>(b, right + d * PADDED_KEYS);
#pragma unroll
    for (int r = 0; r < OWN_ROWS; r++) {
#pragma unroll
      for (int c = 0; c < OWN_KEYS; c++) {
        products[r][c] += a[r] * b[c];
      }
    }
  }
}

// Scores become weights; what was added up before is rescaled.
__device__ __forceinline__ void weigh(const arguments &args, const row_mask &mask, index key, number (&scores)[OWN_KEYS],
                                      number &largest, number &total, number (&sums)[OWN_COLUMNS]) {
  number most = largest;
#pragma unroll
  for (int c = 0; c < OWN_KEYS; c++) {
    scores[c] = score_of(args, mask, scores[c], key + c);
    most = fmax(most, scores[c]);
  }
#pragma unroll
  for (int distance = 8; distance > 0; distance /= 2) {
    most = fmax(most, __shfl_xor_sync(0xffffffffu, most, distance));
  }
  const number base = base_of(most);
  const number factor = exp(largest - base);
  number own = 0;
#pragma unroll
  for (int c = 0; c < OWN_KEYS; c++) {
    scores[c] = exp(scores[c] - base);
    own += scores[c];
  }
#pragma unroll
  for (int distance = 8; distance > 0; distance /= 2) {
    own += __shfl_xor_sync(0xffffffffu, own, distance);
  }
  total = total * factor + own;
  largest = most;
#pragma unroll
  for (int c = 0; c < OWN_COLUMNS; c++) {
    sums[c] *= factor;
  }
}

__device__ __forceinline__ void add_values(number (&sums)[OWN_ROWS][OWN_COLUMNS], const number *weights, const number *values,
                                           int lane) {
#pragma unroll 4
  for (int k = 0; k < VALUE_KEYS; k++) {
    number a[OWN_ROWS];
    take<OWN_ROWS, ROW_LANES>(a, weights + k * PADDED_ROWS);
#pragma unroll
    for (int j = 0; j < OWN_COLUMNS; j += COLUMNS) {
      number b[COLUMNS];
      take<COLUMNS, COLUMNS>(b, values + k * SLICE + j * 16 + lane * COLUMNS);
#pragma unroll
      for (int r = 0; r < OWN_ROWS; r++) {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
          sums[r][j + c] += a[r] * b[c];
        }
      }
    }
  }
}

// One row of a thread.
__device__ __forceinline__ void write_row(const arguments &args, const block_place &block, index row, int lane, number largest,
                                          number total, const number (&sums)[OWN_COLUMNS]) {
#if SPLITS > 1
  number *part = part_of(args, block, row);
  if (lane == 0 && block.column == 0) {
    part[VALUE_SIZE] = largest;
    part[VALUE_SIZE + 1] = total;
  }
#else
  element *y = result_of(args, block, row);
  const number factor = total == 0 ? (number)0 : 1 / total;
#endif
#pragma unroll
  for (int j = 0; j < OWN_COLUMNS; j++) {
    const int column = block.column + j / COLUMNS * COLUMNS * 16 + lane * COLUMNS + j % COLUMNS;
    if (column < VALUE_SIZE) {
#if SPLITS > 1
      part[column] = sums[j];
#else
      y[column] = narrow(sums[j] * factor);
#endif
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) cleave_kernel(const arguments args) {
  alignas(16) __shared__ number chunk[ROOM];
  alignas(16) __shared__ number weights[KEYS * PADDED_ROWS];
  const block_place block = place_block(args);
  const int lane = (int)threadIdx.x % 16;
  const int own = (int)threadIdx.x / 16 * OWN_ROWS;
  number *right = chunk + CHUNK * PADDED_ROWS;
  row_mask masks[OWN_ROWS];
  number largest[OWN_ROWS];
  number total[OWN_ROWS];
  number sums[OWN_ROWS][OWN_COLUMNS] = {};
#pragma unroll
  for (int r = 0; r < OWN_ROWS; r++) {
    masks[r] = find_mask(args, block, block.first + own + r);
    largest[r] = NOTHING;
    total[r] = 0;
  }
  for (index first = block.begin; first < block.end; first += KEYS) {
    number scores[OWN_ROWS][OWN_KEYS] = {};
    if (SIZE == 0) {
      __syncthreads(); // all have read the last weights
    }
    for (int column = 0; column < SIZE; column += CHUNK) {
      const int depth = SIZE % CHUNK == 0 || SIZE - column > CHUNK ? CHUNK : SIZE - column;
      __syncthreads(); // all have read what is in the chunk
      load_queries(args, block, chunk, column, depth);
      load_keys(args, block, right, first, column, depth);
      __syncthreads();
      add_products(scores, chunk + own, right + lane * OWN_KEYS, depth);
    }
#pragma unroll
    for (int r = 0; r < OWN_ROWS; r++) {
      weigh(args, masks[r], first + lane * OWN_KEYS, scores[r], largest[r], total[r], sums[r]);
#pragma unroll
      for (int c = 0; c < OWN_KEYS; c++) {
        weights[(lane * OWN_KEYS + c) * PADDED_ROWS + own + r] = scores[r][c];
      }
    }
    for (int key = 0; key < KEYS; key += VALUE_KEYS) {
      __syncthreads();
      load_values(args, block, chunk, first + key);
      __syncthreads();
      add_values(sums, weights + key * PADDED_ROWS + own, chunk, lane);
    }
  }
#pragma unroll
  for (int r = 0; r < OWN_ROWS; r++) {
    if (block.first + own + r < block.rows) {
      write_row(args, block, block.first + own + r, lane, largest[r], total[r], sums[r]);
    }
  }
}

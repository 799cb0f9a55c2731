// Attention of decoding: one query of each sequence of a batch over pages of keys and values, in two passes. Part of
// kernels.cu.
//
// The first pass has a warp for each unit of work: the tokens of a piece of blocks, one head of keys, and up to four
// queries of the sequences that share these blocks. It goes through 32 tokens at a time: a thread has the products of
// one token's key with the queries, then some of the dimensions of the weighted sum of values. The second pass merges
// what the pieces of a sequence gave. No rival of engines' kernels: keys are read by thread and not by line.

#define ATTENTION_QUERIES 4
#define ATTENTION_LANE_VALUES 8 // of a row, in each of 32 threads

// What a unit is about, in the order of its words.
struct AttentionUnit {
    uint32_t first_block; // in the list of blocks
    uint32_t tokens;
    uint32_t head;
    uint32_t first_sequence; // in the order of sequences, of the piece
    uint32_t first_query;    // among those of the piece and head: [sequence][query head that shares the head]
    uint32_t queries;
    uint32_t first_partial; // of the piece: [sequence][query head]
    uint32_t unused;
};

static __device__ inline float below_all() { return of_bits(0xFF800000u); }

// e to the power of what is at most 0.
static __device__ inline float exp_below(float value) {
    float power = value * 1.44269504f;
    if (!(power >= -126.0f)) return 0.0f;
    int whole = (int) power;
    float y = (power - (float) whole) * 0.69314718f;
    float sum = 1.0f;
    UNROLL for (int i = 9; i > 0; i--) sum = 1.0f + sum * (y / (float) i);
    return of_bits((uint32_t) (whole + 127) << 23) * sum;
}

static __device__ inline float plain_element(const uint8_t* row, uint32_t index, bool fp8) {
    if (!fp8) return of_bf16(((const uint16_t*) row)[index]);
    return of_bits(bits_of(of_e4m3(row[index])) | (row[index] & 0x80u) << 24);
}

// Scores and values are scaled by what fp8 was divided by; scores by one over the root of dim as well.
KERNEL kv_attend(const AttentionUnit* units, uint32_t count, const uint64_t* blocks, uint32_t page_tokens,
                 uint64_t keys, uint64_t values, uint64_t token_stride, uint64_t head_stride, uint32_t fp8,
                 const uint16_t* queries, const uint32_t* order, uint32_t query_heads, uint32_t sharing, uint32_t dim,
                 float scale, float* partials) {
    uint32_t lane = threadIdx.x & 31u;
    uint32_t warps = gridDim.x * (blockDim.x / 32);
    for (uint32_t at = (blockIdx.x * blockDim.x + threadIdx.x) / 32; at < count; at += warps) {
        AttentionUnit unit = units[at];
        uint32_t rows[ATTENTION_QUERIES]; // of queries and of partial results, from the first sequence's
        const uint16_t* query[ATTENTION_QUERIES];
        float most[ATTENTION_QUERIES], sum[ATTENTION_QUERIES], out[ATTENTION_QUERIES][ATTENTION_LANE_VALUES];
        UNROLL for (uint32_t q = 0; q < ATTENTION_QUERIES; q++) {
            uint32_t number = unit.first_query + (q < unit.queries ? q : 0);
            uint32_t within = unit.head * sharing + number % sharing;
            rows[q] = number / sharing * query_heads + within;
            query[q] = queries + ((uint64_t) order[unit.first_sequence + number / sharing] * query_heads + within) * dim;
            most[q] = below_all();
            sum[q] = 0;
            UNROLL for (int i = 0; i < ATTENTION_LANE_VALUES; i++) out[q][i] = 0;
        }
        for (uint32_t start = 0; start < unit.tokens; start += 32) {
            bool there = start + lane < unit.tokens;
            uint32_t token = there ? start + lane : unit.tokens - 1;
            const uint8_t* key = (const uint8_t*) blocks[unit.first_block + token / page_tokens] +
                                 token % page_tokens * token_stride + unit.head * head_stride + keys;
            float weight[ATTENTION_QUERIES] = {0, 0, 0, 0};
            ONCE for (uint32_t i = 0; i < dim; i++) {
                float element = plain_element(key, i, fp8 != 0);
                UNROLL for (uint32_t q = 0; q < ATTENTION_QUERIES; q++) weight[q] += element * of_bf16(query[q][i]);
            }
            UNROLL for (uint32_t q = 0; q < ATTENTION_QUERIES; q++) {
                float score = there ? weight[q] * scale : below_all();
                float largest = most[q] > score ? most[q] : score;
                UNROLL for (uint32_t apart = 16; apart > 0; apart /= 2) {
                    float other = __shfl_xor_sync(0xFFFFFFFFu, largest, apart);
                    if (other > largest) largest = other;
                }
                float fade = exp_below(most[q] - largest);
                most[q] = largest;
                weight[q] = exp_below(score - largest);
                sum[q] = sum[q] * fade + weight[q];
                UNROLL for (int i = 0; i < ATTENTION_LANE_VALUES; i++) out[q][i] *= fade;
            }
            uint32_t end = unit.tokens - start < 32 ? unit.tokens - start : 32;
            ONCE for (uint32_t t = 0; t < end; t++) {
                const uint8_t* value = (const uint8_t*) blocks[unit.first_block + (start + t) / page_tokens] +
                                       (start + t) % page_tokens * token_stride + unit.head * head_stride + values;
                float by[ATTENTION_QUERIES];
                UNROLL for (uint32_t q = 0; q < ATTENTION_QUERIES; q++) {
                    by[q] = __shfl_xor_sync(0xFFFFFFFFu, weight[q], lane ^ t);
                }
                UNROLL for (uint32_t i = 0; i < ATTENTION_LANE_VALUES; i++) {
                    if (lane + 32 * i < dim) {
                        float element = plain_element(value, lane + 32 * i, fp8 != 0);
                        UNROLL for (uint32_t q = 0; q < ATTENTION_QUERIES; q++) out[q][i] += by[q] * element;
                    }
                }
            }
        }
        UNROLL for (uint32_t q = 0; q < ATTENTION_QUERIES; q++) {
            UNROLL for (uint32_t apart = 16; apart > 0; apart /= 2) {
                sum[q] += __shfl_xor_sync(0xFFFFFFFFu, sum[q], apart);
            }
            if (q < unit.queries) {
                float* partial = partials + (uint64_t) (unit.first_partial + rows[q]) * (dim + 2);
                if (lane == 0) {
                    partial[0] = most[q];
                    partial[1] = sum[q];
                }
                UNROLL for (uint32_t i = 0; i < ATTENTION_LANE_VALUES; i++) {
                    if (lane + 32 * i < dim) partial[2 + lane + 32 * i] = out[q][i];
                }
            }
        }
    }
}

// What the pieces of each sequence gave becomes one: pieces `from[i]` to `from[i + 1]` of the sequence at place i of the
// order, each named by the first row of its partial results.
KERNEL kv_attend_merge(const uint32_t* from, const uint32_t* pieces, const uint32_t* order, uint32_t sequences,
                       uint32_t query_heads, uint32_t dim, float scale, const float* partials, uint16_t* out) {
    EACH(at, (uint64_t) sequences * query_heads * dim) {
        uint32_t place = (uint32_t) (at / dim / query_heads);
        uint32_t head = (uint32_t) (at / dim % query_heads);
        uint32_t index = (uint32_t) (at % dim);
        float most = below_all();
        ONCE for (uint32_t piece = from[place]; piece < from[place + 1]; piece++) {
            float other = partials[(uint64_t) (pieces[piece] + head) * (dim + 2)];
            if (other > most) most = other;
        }
        float sum = 0, value = 0;
        ONCE for (uint32_t piece = from[place]; piece < from[place + 1]; piece++) {
            const float* partial = partials + (uint64_t) (pieces[piece] + head) * (dim + 2);
            float by = exp_below(partial[0] - most);
            sum += by * partial[1];
            value += by * partial[2 + index];
        }
        out[((uint64_t) order[place] * query_heads + head) * dim + index] = to_bf16(value / sum * scale);
    }
}

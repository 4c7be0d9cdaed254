// The gated delta rule: a memory of rows, each of `depth` numbers, that forgets by a factor and learns what a value
// differs from what the memory has for a key. For each step t
//
//     row *= gamma;  error = beta * (v - row . k);  row += error * k;  y = row . q
//
// A SIMD-group takes one row, which lies in the final state's memory meanwhile, through all steps. T is the dtype
// of the operands, OUT that of the results, ACC that to compute in. VECTOR says that gamma has a number for each of
// a row's, MASKED that steps without a mask leave the row as it is and give 0.

#pragma clang fp contract(off)

struct Rule {
    uint steps, key_heads, heads, depth, width;
};

kernel void gated_delta(const device T* q [[buffer(0)]],
                        const device T* k [[buffer(1)]],
                        const device T* v [[buffer(2)]],
                        const device T* gamma [[buffer(3)]],
                        const device T* beta [[buffer(4)]],
                        device OUT* y [[buffer(5)]],
                        device ACC* state [[buffer(6)]], // (batch, heads, width, depth): the first state, then the last
                        constant Rule& m [[buffer(7)]],
#if MASKED
                        const device bool* mask [[buffer(8)]],
#endif
                        uint2 p [[thread_position_in_grid]]) {
    const uint lane = p.x;
    const uint column = p.y % m.width;
    const uint head = p.y / m.width % m.heads;
    const uint batch = p.y / m.width / m.heads;
    const uint key_head = head / (m.heads / m.key_heads);
    device ACC* row = state + ulong(p.y) * m.depth;
    for (uint t = 0; t < m.steps; t++) {
        const ulong step = ulong(batch) * m.steps + t;
        const ulong at = step * m.heads + head;
#if MASKED
        const bool happens = mask[step];
#else
        const bool happens = true;
#endif
        const device T* key = k + (step * m.key_heads + key_head) * m.depth;
        const device T* query = q + (step * m.key_heads + key_head) * m.depth;
#if VECTOR
        const device T* keep = gamma + at * m.depth;
#else
        const ACC keep = ACC(gamma[at]);
#endif
        ACC known = 0;
        for (uint i = lane; i < m.depth; i += 32) {
            ACC s = row[i];
#if VECTOR
            s = happens ? s * ACC(keep[i]) : s;
#else
            s = happens ? s * keep : s;
#endif
            row[i] = s;
            known = metal::fma(s, ACC(key[i]), known);
        }
        const ACC error = ACC(beta[at]) * (ACC(v[at * m.width + column]) - simd_sum(known));
        ACC sum = 0;
        for (uint i = lane; i < m.depth; i += 32) {
            ACC s = row[i];
            s = happens ? metal::fma(error, ACC(key[i]), s) : s;
            row[i] = s;
            sum = metal::fma(s, ACC(query[i]), sum);
        }
        sum = simd_sum(sum);
        if (lane == 0) {
            y[at * m.width + column] = OUT(happens ? sum : ACC(0));
        }
    }
}

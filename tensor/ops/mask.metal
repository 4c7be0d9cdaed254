// mask_rank: for each true element of a mask, the number of true ones before it; 0 for false ones. The mask is cut into
// chunks: mask_count counts each, mask_sum adds the counts of those before, mask_rank counts within.

#pragma clang fp contract(off)

constant uint CHUNK = 256;

kernel void mask_count(const device bool* mask [[buffer(0)]],
                       device uint* counts [[buffer(1)]],
                       constant uint& size [[buffer(2)]],
                       uint chunk [[thread_position_in_grid]]) {
    uint end = min((chunk + 1) * CHUNK, size);
    uint n = 0;
    for (uint i = chunk * CHUNK; i < end; i++) {
        n += mask[i] ? 1u : 0u;
    }
    counts[chunk] = n;
}

kernel void mask_sum(device uint* counts [[buffer(0)]],
                     constant uint& chunks [[buffer(1)]],
                     uint one [[thread_position_in_grid]]) {
    uint before = one;
    for (uint i = 0; i < chunks; i++) {
        uint n = counts[i];
        counts[i] = before;
        before += n;
    }
}

kernel void mask_rank(const device bool* mask [[buffer(0)]],
                      const device uint* counts [[buffer(1)]],
                      device int* ranks [[buffer(2)]],
                      constant uint& size [[buffer(3)]],
                      uint chunk [[thread_position_in_grid]]) {
    uint end = min((chunk + 1) * CHUNK, size);
    uint n = counts[chunk];
    for (uint i = chunk * CHUNK; i < end; i++) {
        ranks[i] = mask[i] ? int(n) : 0;
        n += mask[i] ? 1u : 0u;
    }
}

// Copies and fills. Metal's own want a different encoder, and offsets and lengths that are multiples of 4. Buffers are
// bound from their beginning, as an offset of a binding has to suit the type of its elements: at[0] and at[1] are
// counted in T.

template <typename T>
[[kernel]] void copy(device const T* src [[buffer(0)]], device T* dst [[buffer(1)]], constant ulong* at [[buffer(2)]],
                     uint i [[thread_position_in_grid]]) {
  dst[at[1] + i] = src[at[0] + i];
}
instantiate_kernel("copy_1", copy, uchar)
instantiate_kernel("copy_4", copy, uint)
instantiate_kernel("copy_16", copy, uint4)

// The pattern has at[1] elements.
template <typename T>
[[kernel]] void fill(device T* dst [[buffer(0)]], constant T* pattern [[buffer(1)]], constant ulong* at [[buffer(2)]],
                     uint i [[thread_position_in_grid]]) {
  dst[at[0] + i] = pattern[i % uint(at[1])];
}
instantiate_kernel("fill_1", fill, uchar)
instantiate_kernel("fill_4", fill, uint)
instantiate_kernel("fill_16", fill, uint4)

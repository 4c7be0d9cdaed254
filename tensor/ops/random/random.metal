// Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011): the
// generator, key schedule and order of counters of MLX's random bits.

#pragma clang fp contract(off)

static uint2 mix_four(uint2 v, uint r0, uint r1, uint r2, uint r3) {
  v.x += v.y; v.y = (v.y << r0 | v.y >> (32 - r0)) ^ v.x;
  v.x += v.y; v.y = (v.y << r1 | v.y >> (32 - r1)) ^ v.x;
  v.x += v.y; v.y = (v.y << r2 | v.y >> (32 - r2)) ^ v.x;
  v.x += v.y; v.y = (v.y << r3 | v.y >> (32 - r3)) ^ v.x;
  return v;
}

static uint2 threefry(uint2 key, uint2 count) {
  const uint third = key.x ^ key.y ^ 0x1BD11BDAu;
  uint2 v = count + key;
  v = mix_four(v, 13, 15, 26, 6) + uint2(key.y, third + 1);
  v = mix_four(v, 17, 29, 16, 24) + uint2(third, key.x + 2);
  v = mix_four(v, 13, 15, 26, 6) + uint2(key.x, key.y + 3);
  v = mix_four(v, 17, 29, 16, 24) + uint2(key.y, third + 4);
  v = mix_four(v, 13, 15, 26, 6) + uint2(third, key.x + 5);
  return v;
}

// A key's output is `words` words, made in pairs: thread i of a key makes word i and word i + pairs, where pairs is
// half of words rounded up. With an odd count the middle word has no partner and its second counter is 0.
struct WordPair {
  uint2 value;
  bool both;
};

static WordPair words_at(const device uint* keys, uint2 where, uint pairs, uint words) {
  WordPair p;
  const bool odd = words % 2 == 1;
  p.both = !(odd && where.x + 1 == pairs);
  const uint2 key = uint2(keys[2 * where.y], keys[2 * where.y + 1]);
  p.value = threefry(key, uint2(where.x, p.both ? where.x + pairs : 0));
  return p;
}

// The bytes of a key fill whole words.
[[kernel]] void random_words(
    const device uint* keys [[buffer(0)]],
    device uint* out [[buffer(1)]],
    constant uint& words [[buffer(2)]],
    uint2 where [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const WordPair p = words_at(keys, where, grid.x, words);
  device uint* row = out + ulong(where.y) * words;
  row[where.x] = p.value.x;
  if (p.both) {
    row[where.x + grid.x] = p.value.y;
  }
}

static void put_bytes(device uchar* out, uint word, uint value, ulong bytes) {
  for (uint i = 0; i < 4; ++i) {
    const ulong at = 4 * ulong(word) + i;
    if (at < bytes) {
      out[at] = uchar(value >> (8 * i));
    }
  }
}

// The last word of a key is cut off at bytes.
[[kernel]] void random_bytes(
    const device uint* keys [[buffer(0)]],
    device uchar* out [[buffer(1)]],
    constant ulong& bytes [[buffer(2)]],
    uint2 where [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const WordPair p = words_at(keys, where, grid.x, uint((bytes + 3) / 4));
  device uchar* row = out + ulong(where.y) * bytes;
  put_bytes(row, where.x, p.value.x, bytes);
  if (p.both) {
    put_bytes(row, where.x + grid.x, p.value.y, bytes);
  }
}

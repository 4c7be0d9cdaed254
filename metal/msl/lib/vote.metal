// The results of simd_ballot and quad_ballot: one bit for each lane. They convert to their numbers without a cast too,
// because kernels use them so.

namespace metal {

struct simd_vote {
  typedef ulong vote_t;
  vote_t bits;
  explicit constexpr simd_vote(vote_t v = 0) : bits(v) {}
  constexpr operator vote_t() const { return bits; }
  constexpr bool all() const { return (bits & 0xfffffffful) == 0xfffffffful; }
  constexpr bool any() const { return (bits & 0xfffffffful) != 0; }
};

struct quad_vote {
  typedef uint vote_t;
  vote_t bits;
  explicit constexpr quad_vote(vote_t v = 0) : bits(v) {}
  constexpr operator vote_t() const { return bits; }
  constexpr bool all() const { return (bits & 0xfu) == 0xfu; }
  constexpr bool any() const { return (bits & 0xfu) != 0; }
};

}  // namespace metal

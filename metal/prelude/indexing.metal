// From an element's place in row-major order to its place in memory, under any strides. The names and parameters are
// MLX's. `ndim` is at least 1 where positions are vectors. elem_to_loc goes through all dimensions, whatever is left
// of the place: so a launch that brings its rank along says how many rounds there are.

template <typename IdxT = int64_t>
METAL_FUNC IdxT elem_to_loc(IdxT elem, constant const int* shape, constant const int64_t* strides, int ndim) {
  IdxT loc = 0;
  for (int d = ndim - 1; d >= 0; --d) {
    loc += (elem % IdxT(shape[d])) * IdxT(strides[d]);
    elem /= IdxT(shape[d]);
  }
  return loc;
}

// elem.x and elem.y are the positions in the last two dimensions, elem.z runs over all others.
template <typename IdxT = int64_t>
METAL_FUNC IdxT elem_to_loc(uint3 elem, constant const int* shape, constant const int64_t* strides, int ndim) {
  IdxT loc = IdxT(elem.x) * IdxT(strides[ndim - 1]);
  if (ndim > 1) {
    loc += IdxT(elem.y) * IdxT(strides[ndim - 2]);
  }
  uint rest = elem.z;
  for (int d = ndim - 3; d >= 0; --d) {
    loc += IdxT(rest % uint(shape[d])) * IdxT(strides[d]);
    rest /= uint(shape[d]);
  }
  return loc;
}

template <typename IdxT = int64_t>
METAL_FUNC IdxT elem_to_loc_1(uint elem, constant const int64_t& stride) {
  return IdxT(elem) * IdxT(stride);
}

template <typename IdxT = int64_t>
METAL_FUNC IdxT elem_to_loc_2(uint2 elem, constant const int64_t strides[2]) {
  return IdxT(elem.x) * IdxT(strides[1]) + IdxT(elem.y) * IdxT(strides[0]);
}

template <typename IdxT = int64_t>
METAL_FUNC IdxT elem_to_loc_3(uint3 elem, constant const int64_t strides[3]) {
  return IdxT(elem.x) * IdxT(strides[2]) + IdxT(elem.y) * IdxT(strides[1]) + IdxT(elem.z) * IdxT(strides[0]);
}

// The places of one element in two and in three arrays of one shape.
template <typename IdxT = int64_t>
METAL_FUNC vec<IdxT, 2> elem_to_loc_2_nd(
    uint3 elem,
    constant const int* shape,
    constant const int64_t* a_strides,
    constant const int64_t* b_strides,
    int ndim) {
  return vec<IdxT, 2>(
      elem_to_loc<IdxT>(elem, shape, a_strides, ndim), elem_to_loc<IdxT>(elem, shape, b_strides, ndim));
}

template <typename IdxT = int64_t>
METAL_FUNC vec<IdxT, 3> elem_to_loc_3_nd(
    uint3 elem,
    constant const int* shape,
    constant const int64_t* a_strides,
    constant const int64_t* b_strides,
    constant const int64_t* c_strides,
    int ndim) {
  return vec<IdxT, 3>(
      elem_to_loc<IdxT>(elem, shape, a_strides, ndim), elem_to_loc<IdxT>(elem, shape, b_strides, ndim),
      elem_to_loc<IdxT>(elem, shape, c_strides, ndim));
}

// LoopedElemToLoc walks the elements in order without a division for each: an odometer over the last DIM dimensions.
// The dimensions before them, if General says that there are any, are looked up when it overflows.
template <int DIM, typename OffsetT = size_t, bool General = true>
struct LoopedElemToLoc {
  int dim;        // of the array
  ulong outer{0}; // place in the dimensions before the last DIM
  OffsetT base{0};
  OffsetT inner{0};
  int index[DIM];

  LoopedElemToLoc(int n) thread : dim(n) {
    for (int i = 0; i < DIM; ++i) {
      index[i] = 0;
    }
  }

  void next(const constant int* shape, const constant int64_t* strides) thread { next(1, shape, strides); }

  void next(int n, const constant int* shape, const constant int64_t* strides) thread {
    const int wheels = dim < DIM ? dim : DIM;
    for (int i = 0; i < wheels && n > 0; ++i) {
      const int d = dim - 1 - i;
      const int at = index[i] + n;
      n = at < shape[d] ? 0 : at / shape[d];
      const int to = at - n * shape[d];
      inner += OffsetT(to - index[i]) * OffsetT(strides[d]);
      index[i] = to;
    }
    if (General && n > 0 && dim > DIM) {
      outer += ulong(n);
      base = elem_to_loc<OffsetT>(OffsetT(outer), shape, strides, dim - DIM);
    }
  }

  OffsetT location() thread { return base + inner; }
};

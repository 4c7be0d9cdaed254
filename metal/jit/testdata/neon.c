// The kernels of TestInstructionsOfNEON, written as one writes C for a compiler that vectorises. Sums of many terms are
// partial ones, as those of a SIMD-group are: clang keeps the order of additions.

#define MAX(a, b) __builtin_fmaxf(a, b)
#define MIN(a, b) __builtin_fminf(a, b)
#define FMA(a, b, c) __builtin_fmaf(a, b, c)

void add(const float *restrict a, const float *restrict b, float *restrict o, int n) {
  for (int i = 0; i < n; i++) o[i] = a[i] + b[i];
}

static inline float tanh_(float x) {
  float d = x > 9.02f ? 9.02f : x, c = d < -9.02f ? -9.02f : d;
  float z = c * c;
  float a = c * FMA(FMA(0.000103583596f, z, 0.0269782748f), z, 0.906f);
  float b = FMA(FMA(FMA(2.22989183e-06f, z, 0.00218693959f), z, 0.204956487f), z, 1.812f);
  return (a + a) * b / FMA(b, b, a * a);
}

void gelu(const float *restrict a, float *restrict o, int n) {
  for (int i = 0; i < n; i++) {
    float x = a[i];
    o[i] = 0.5f * x * (1.0f + tanh_(0.7978845608f * (x + 0.044715f * x * x * x)));
  }
}

static inline float exp_(float x) {
  float c = x < -104.0f ? -104.0f : x;
  float t = MIN(FMA(c, 1.44269502f, 12583039.0f), 12583168.0f);
  float n = t - 12583039.0f;
  float r = FMA(n, 1.90465421e-09f, FMA(n, -0.693147182f, c));
  float p = 0.00138240983f;
  p = FMA(p, r, 0.00836865697f);
  p = FMA(p, r, 0.0416682251f);
  p = FMA(p, r, 0.166665211f);
  p = FMA(p, r, 0.49999994f);
  p = FMA(p, r, 1.0f);
  p = FMA(p, r, 1.0f);
  // 2^n in two factors, since it may be denormal.
  union { int i; float f; } u, v;
  int k = (int)n, h = k >> 1;
  u.i = (h + 127) << 23;
  v.i = (k - h + 127) << 23;
  return p * u.f * v.f;
}

typedef float four __attribute__((vector_size(16), aligned(4)));
#define EACH for (int j = 0; j < 4; j++)

void softmax(const float *restrict a, float *restrict o, int n) {
  float most = -__builtin_inff(), sum = 0;
  four m[4], s[4];
  EACH m[j] = (four){most, most, most, most}, s[j] = (four){0, 0, 0, 0};
  for (int i = 0; i < n; i += 16) EACH {
      four x = *(const four *)(a + i + 4 * j);
      for (int l = 0; l < 4; l++) m[j][l] = MAX(m[j][l], x[l]);
    }
  EACH for (int k = 0; k < 4; k++) most = MAX(most, m[j][k]);
  float t[16];
  for (int j = 0; j < 16; j++) t[j] = 0;
  for (int i = 0; i < n; i += 16)
    for (int j = 0; j < 16; j++) t[j] += exp_(a[i + j] - most);
  for (int j = 0; j < 16; j++) sum += t[j];
  float scale = 1 / sum;
  for (int i = 0; i < n; i++) o[i] = exp_(a[i] - most) * scale;
}

// 4 rows of a product.
void product(const float *restrict a, const float *restrict b, float *restrict o, int K, int N) {
  float *restrict p = o + N, *restrict q = o + 2 * N, *restrict r = o + 3 * N;
  for (int k = 0; k < K; k++) {
    float w = a[k], x = a[K + k], y = a[2 * K + k], z = a[3 * K + k];
    for (int j = 0; j < N; j++) {
      float v = b[k * N + j];
      o[j] += w * v, p[j] += x * v, q[j] += y * v, r[j] += z * v;
    }
  }
}

// A row of a matrix of 4 bits by x, a word of 8 weights a lane: 64 weights have a scale and a bias.
float quantized(const unsigned *restrict w, const float *restrict scales, const float *restrict biases,
                const float *restrict x, int K) {
  float acc[16], all = 0;
  for (int l = 0; l < 16; l++) acc[l] = 0;
  for (int k = 0; k < K / 8; k += 16)
    for (int l = 0; l < 16; l++) {
      unsigned packed = w[k + l];
      float dot = 0, sum = 0;
      for (int j = 0; j < 8; j++) {
        float v = x[8 * (k + l) + j];
        dot += v * (float)((packed >> (4 * j)) & 15);
        sum += v;
      }
      acc[l] += scales[(k + l) / 8] * dot + biases[(k + l) / 8] * sum;
    }
  for (int l = 0; l < 16; l++) all += acc[l];
  return all;
}

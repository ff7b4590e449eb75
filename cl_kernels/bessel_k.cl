/* Modified Bessel functions of the second kind: k0 k1, and k0e k1e scaled by exp(x). Up to 2 the logarithm is split off
   (DLMF 10.31) and the rest is a Chebyshev series in x^2, beyond one in 2 / x; fitted at 40 digits. */
#ifndef CLT_CHEB
#define CLT_CHEB(T, name, t) clt_cheb_##T(t, clt_##name##_##T, (int)(sizeof(clt_##name##_##T) / sizeof(T)))
#define CLT_CHEB_OF(T, V)                                                                            \
  static inline V clt_cheb_##V(V t, __constant T *c, int n) {                                        \
    V a = (V)(0), b = (V)(0);                                                                        \
    for (int k = n - 1; k > 0; k--) {                                                                \
      const V next = 2 * t * a - b + c[k];                                                           \
      b = a;                                                                                         \
      a = next;                                                                                      \
    }                                                                                                \
    return t * a - b + c[0];                                                                         \
  }
CLT_CHEB_OF(float, float)
#ifdef CLT_DOUBLE
CLT_CHEB_OF(double, double)
#endif
#endif
#define CLT_LIT_F(c) c##f
#define CLT_LIT_D(c) c
__constant float clt_k_i0_float[] = {1.602922807f, 0.6388096257f, 0.03685485969f, 9.828781273e-4f, 1.498365421e-5f,
  1.473844901e-7f};
__constant float clt_k_i1_float[] = {0.641758997f, 0.1475393201f, 0.00589874268f, 1.198813717e-4f, 1.473916512e-6f,
  1.213807497e-8f};
__constant float clt_k0_float[] = {-0.2676636966f, 0.3442898999f, 0.03597993652f, 0.001264615411f, 2.286212103e-5f,
  2.534791079e-7f};
__constant float clt_k1_float[] = {0.7626501137f, -0.3531559608f, -0.1226111808f, -0.00697572386f, -1.730288958e-4f,
  -2.433406142e-6f, -2.213387631e-8f};
__constant float clt_k0_far_float[] = {1.220151541f, -0.03144810131f, 0.001569883886f, -1.284954958e-4f,
  1.394981372e-5f, -1.831755523e-6f, 2.766813639e-7f, -4.660489898e-8f};
__constant float clt_k1_far_float[] = {1.360313095f, 0.1039237366f, -0.00285781686f, 1.952155185e-4f,
  -1.936197974e-5f, 2.406484948e-6f, -3.501960603e-7f, 5.741084125e-8f, -1.034576247e-8f};
#define CLT_BESSEL_K(T, K)                                                                                                     \
  static inline T clt_k0_near_##T(T x) {                                                                                       \
    const T t = x * x * K(0.5) - 1;                                                                                            \
    return CLT_CHEB(T, k0, t) - log(x * K(0.5)) * CLT_CHEB(T, k_i0, t);                                                        \
  }                                                                                                                            \
  static inline T clt_k1_near_##T(T x) {                                                                                       \
    const T t = x * x * K(0.5) - 1;                                                                                            \
    return CLT_CHEB(T, k1, t) / x + log(x * K(0.5)) * x * CLT_CHEB(T, k_i1, t);                                                \
  }                                                                                                                            \
  static inline T k0_##T(T x) {                                                                                                \
    if (x == 0) return INFINITY;                                                                                               \
    if (!(x >= 0)) return NAN;                                                                                                 \
    const T e = exp(x * K(-0.5));                                                                                              \
    return x <= 2 ? clt_k0_near_##T(x) : isinf(x) ? 0 : CLT_CHEB(T, k0_far, 4 / x - 1) / sqrt(x) * e * e;                      \
  }                                                                                                                            \
  static inline T k1_##T(T x) {                                                                                                \
    if (x == 0) return INFINITY;                                                                                               \
    if (!(x >= 0)) return NAN;                                                                                                 \
    const T e = exp(x * K(-0.5));                                                                                              \
    return x <= 2 ? clt_k1_near_##T(x) : isinf(x) ? 0 : CLT_CHEB(T, k1_far, 4 / x - 1) / sqrt(x) * e * e;                      \
  }                                                                                                                            \
  static inline T k0e_##T(T x) {                                                                                               \
    if (x == 0) return INFINITY;                                                                                               \
    if (!(x >= 0)) return NAN;                                                                                                 \
    return x <= 2 ? clt_k0_near_##T(x) * exp(x) : CLT_CHEB(T, k0_far, 4 / x - 1) / sqrt(x);                                    \
  }                                                                                                                            \
  static inline T k1e_##T(T x) {                                                                                               \
    if (x == 0) return INFINITY;                                                                                               \
    if (!(x >= 0)) return NAN;                                                                                                 \
    return x <= 2 ? clt_k1_near_##T(x) * exp(x) : CLT_CHEB(T, k1_far, 4 / x - 1) / sqrt(x);                                    \
  }
CLT_BESSEL_K(float, CLT_LIT_F)
#ifdef CLT_DOUBLE
__constant double clt_k_i0_double[] = {1.60292280680796332, 0.638809625651177011, 0.036854859694361758,
  9.82878127251479832e-4, 1.49836542089272927e-5, 1.4738449008423847e-7, 1.01147979006748255e-9,
  5.11499790201127981e-12, 1.98428062268056187e-14, 6.0905165060589549e-17};
__constant double clt_k_i1_double[] = {0.641758996991187405, 0.147539320149193419, 0.00589874268002078831,
  1.19881371746387083e-4, 1.47391651190931269e-6, 1.21380749687409216e-8, 7.16110669279927947e-11,
  3.17487931131011993e-13, 1.09629983487730753e-15};
__constant double clt_k0_double[] = {-0.267663696616951384, 0.344289899924628487, 0.0359799365153615016,
  0.00126461541144692592, 2.28621210311945179e-5, 2.53479107902614946e-7, 1.90451637722020886e-9,
  1.03496952576336246e-11, 4.25981614279108258e-14, 1.3744654358807509e-16};
__constant double clt_k1_double[] = {0.762650113669473885, -0.353155960776544876, -0.122611180822657148,
  -0.00697572385963986435, -1.73028895751305206e-4, -2.43340614156596823e-6, -2.21338763073472586e-8,
  -1.41148839263352776e-10, -6.66690169419932901e-13, -2.42744985051936593e-15};
__constant double clt_k0_far_double[] = {1.22015154103297773, -0.0314481013119645005, 0.00156988388573005337,
  -1.28495495816278026e-4, 1.39498137188764994e-5, -1.83175552271911948e-6, 2.76681363944501508e-7,
  -4.66048989768794767e-8, 8.57403401741422609e-9, -1.69753450938906152e-9, 3.57739728140032845e-10,
  -7.95748924447739704e-11, 1.85594911495492655e-11, -4.51459788337451918e-12, 1.14034058820734423e-12,
  -2.98009692314817835e-13, 8.03289077506837437e-14, -2.22751332674629636e-14, 6.34007647627664597e-15,
  -1.84859337792090717e-15, 5.51205599940433336e-16, -1.67823112575490064e-16, 5.21039177764355411e-17};
__constant double clt_k1_far_double[] = {1.36031309524222133, 0.103923736576817238, -0.00285781685962277939,
  1.95215518471351631e-4, -1.93619797416608296e-5, 2.40648494783721712e-6, -3.50196060308781254e-7,
  5.74108412545004929e-8, -1.0345762465678097e-8, 2.01504975519703462e-9, -4.19035475934192558e-10,
  9.21831518760531413e-11, -2.12996783842779102e-11, 5.13963967348234354e-12, -1.28917396094982294e-12,
  3.34841966605224312e-13, -8.97670518201014607e-14, 2.47715442421959868e-14, -7.01983708921476885e-15,
  2.03870316623986088e-15, -6.05704727064301782e-16, 1.83809357524304543e-16, -5.68946284919364837e-17};
CLT_BESSEL_K(double, CLT_LIT_D)
#endif

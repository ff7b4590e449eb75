/* erfinv, ndtri (the normal quantile), erfcx and log_ndtr for any number of lanes. erfinv(x) / x is a series in w =
   -log(1 - x^2) or its root, the variable of Giles, "Approximating the erfinv function" (2010); (1 + 2 x) erfcx(x) one
   in (x - 4) / (x + 4), after Shepherd and Laframboise (1981). Fitted with 40-digit arithmetic as Chebyshev series and
   converted to powers: Horner's rule takes one operation where Clenshaw's recurrence takes three. Parts that no lane
   needs are skipped. */
#include "special/chebyshev.cl"
#include "elementary/erf.cl"
#include "elementary/log1p.cl"
#define CLT_erfc_float(V) erfc_##V
#define CLT_erfc_double(V) erfc_##V
#define CLT_log1p_float(V) log1p_##V
#define CLT_log1p_double(V) log1p_##V
#define CLT_SERIES(V, T, name, t) clt_powers_##V(t, clt_##name##_##T, (int)(sizeof(clt_##name##_##T) / sizeof(T)))
#define CLT_POWERS(V, T, I, K)                                             \
  static inline V clt_powers_##V(V t, __constant T *c, int n) {            \
    _Pragma("OPENCL FP_CONTRACT ON")                                       \
    V a = (V)(c[n - 1]);                                                   \
    for (int k = n - 2; k >= 0; k--) a = a * t + (V)(c[k]);                \
    return a;                                                              \
  }
#define CLT_ERF_FAR_float(V, T, K)
#define CLT_ERF_FAR_double(V, T, K) \
  f = w > (V)(K(110.25)) ? CLT_SERIES(V, T, einv_d, r * K(0.11764705882352941176) - K(2.2352941176470588235)) : f;
__constant float clt_einv_a_float[] = {1.50140936f, 0.6166007235f, -0.02610868599f, -0.01957419401f, 0.008529176355f,
  -0.0004843499507f, -0.0008455459389f, 0.0002840751529f, 3.553137895e-05f, -3.333980931e-05f};
__constant float clt_einv_b_float[] = {3.202609437f, 1.139193784f, 0.005414970351f, -0.004038512379f,
  0.002744999132f, -0.002040954693f, 0.001439976569f, -0.000803742343f, 0.0001643877421f, 0.0001599373587f,
  -9.049067134e-05f};
__constant float clt_einv_c_float[] = {7.373190434f, 3.024270725f, -0.004464002636f, 0.000406502175f,
  0.0002480619617f, -0.0002249174434f, 0.0001097181191f, -5.380203206e-05f, 4.706236552e-05f, -2.102337813e-05f};
__constant float clt_erfcx_float[] = {1.232995117f, -0.1396210865f, 0.01537976872f, 0.06809617491f, -0.1010409408f,
  0.0937402055f, -0.06631904409f, 0.03714045869f, -0.01623039198f, 0.005082269578f, -0.0007091327872f,
  -0.0002484367303f, 0.0001142081728f};
#define CLT_ERF(V, T, I, K)                                                                                      \
  static inline V erfcx_##V(V x) {                                                                               \
    const V a = CLT_SIZE(V, T, I, x), far = (2 / K(1.7724538509055160)) / (1 + 2 * a) * (1 + K(0.5) / a);        \
    V r = CLT_SERIES(V, T, erfcx, (a - 4) / (a + 4)) / (1 + 2 * a);                                              \
    r = a > (V)(K(1e8)) ? far : r;                                                                               \
    /* exp(x^2) as two factors, because exp would magnify the rounding error of the square. */                   \
    const V h = rint(x * 16) * K(0.0625), e = 2 * exp_##V(h * h) * exp_##V((x - h) * (x + h));                   \
    return x < (V)(0) ? (a > (V)(K(27.0)) ? (V)(INFINITY) : e - r) : r;                                          \
  }                                                                                                              \
  /* erfinv(x) / x from w = -log(1 - x^2): a series in w up to 5, in the root of w beyond. */                    \
  static inline V clt_erfinv_ratio_##V(V w) {                                                                    \
    V f = CLT_SERIES(V, T, einv_a, w * K(0.4) - 1);                                                              \
    if (CLT_ANY_##I(w > (V)(5)) != 0) {                                                                          \
      const V r = sqrt(w);                                                                                       \
      f = w > (V)(5) ? CLT_SERIES(V, T, einv_b, r * K(0.88341875114751340281) - K(2.9753843801638103126)) : f;   \
      f = w > (V)(K(20.25)) ? CLT_SERIES(V, T, einv_c, r * K(0.33333333333333333333) - K(2.5)) : f;              \
      CLT_ERF_FAR_##T(V, T, K)                                                                                   \
    }                                                                                                            \
    return f;                                                                                                    \
  }                                                                                                              \
  static inline V erfinv_##V(V x) {                                                                              \
    const V a = CLT_SIZE(V, T, I, x), r = x * clt_erfinv_ratio_##V(-CLT_MATH(V, T, log, (1 - a) * (1 + a)));     \
    return a < (V)(1) ? r : a == (V)(1) ? x * (V)(INFINITY) : (V)(NAN);                                          \
  }                                                                                                              \
  static inline V ndtri_##V(V p) {                                                                               \
    const V x = 2 * p - 1, w = -CLT_MATH(V, T, log, 4 * p * (1 - p));                                            \
    const V r = K(1.41421356237309505) * x * clt_erfinv_ratio_##V(w);                                            \
    return p > (V)(0) && p < (V)(1) ? r : p == (V)(0) ? (V)(-INFINITY) : p == (V)(1) ? (V)(INFINITY) : (V)(NAN); \
  }                                                                                                              \
  static inline V log_ndtr_##V(V x) {                                                                            \
    const V t = x * K(0.707106781186547524), near = CLT_MATH(V, T, log1p, K(-0.5) * CLT_MATH(V, T, erfc, t));    \
    return x < (V)(-1) ? CLT_MATH(V, T, log, erfcx_##V(-t) * K(0.5)) - K(0.5) * x * x : near;                    \
  }
CLT_OWN_LANES(CLT_POWERS, float, int, CLT_LIT_F)
CLT_OWN_LANES(CLT_ERF, float, int, CLT_LIT_F)
#ifdef CLT_DOUBLE
CLT_OWN_LANES(CLT_POWERS, double, long, CLT_LIT_D)
__constant double clt_einv_a_double[] = {1.501409351110792, 0.6166006918604174, -0.02610823577739313,
  -0.01957356105954724, 0.008525400950759078, -0.00048789839832821423, -0.0008341356408720121,
  0.00029219068516379794, 2.0472395274609996e-05, -4.143207161087569e-05, 8.652827178776488e-06,
  2.8516533407504126e-06, -1.8541768821107802e-06, 1.3583285332002638e-07, 2.0011158834789822e-07,
  -7.089712161469048e-08, -7.394811020249325e-09, 1.1039320695967966e-08, -1.4764143661924604e-09,
  -9.755337189136466e-10, 2.3107396284467567e-10, 3.858161126784112e-11};
__constant double clt_einv_b_double[] = {3.202609442573619, 1.1391935655775902, 0.0054146056016647634,
  -0.004033872541723194, 0.002749040168466917, -0.002069275659538971, 0.0014241736778798795, -0.0007301375690103048,
  0.00018994881206611187, 6.883596083466544e-05, -0.00010373659919310527, 5.140083301442577e-05,
  -6.175119401445048e-06, -8.751280543194627e-06, 6.554634977634915e-06, -1.8070718298676366e-06,
  -3.557986310112647e-07, 5.520194413032839e-07, -2.4863283660192283e-07, 4.42509214944646e-08,
  3.1277099949504476e-08, -3.255205680605144e-08, 7.623239234831821e-09, 3.70619595787136e-09,
  -1.6778255171601073e-09};
__constant double clt_einv_c_double[] = {7.373190416720562, 3.0242707643819786, -0.0044631658409996075,
  0.0004057250257367554, 0.00024155288826998303, -0.0002206931877415948, 0.00012711938481320178,
  -6.299789316636072e-05, 2.8931720640002815e-05, -1.2675455007907455e-05, 5.371959453419116e-06,
  -2.2203821257126044e-06, 9.045464837998434e-07, -3.6066001313166703e-07, 1.2274561054215121e-07,
  -4.1721636648427303e-08, 5.705673234457697e-08, -3.851398400796629e-08, -4.897195941909832e-08,
  5.051981633652224e-08, 4.643790853860122e-08, -5.6400983727536286e-08, -2.1100146849636062e-08,
  3.714058326736326e-08, 8.698109622079341e-10, -1.2796987442021918e-08, 3.853711488075783e-09};
__constant double clt_einv_d_double[] = {18.92561425342672, 8.521545955319873, -0.0070234261441466505,
  0.0023640679193422873, -0.000797141994059479, 0.00026358375891690524, -8.331326040503225e-05,
  2.4039790755774155e-05, -5.595115099284313e-06, 4.6143968543680065e-07, 6.09729467708674e-07,
  -5.986098098014008e-07, 4.003394752072624e-07, -2.409930207001325e-07, 1.312594265982501e-07,
  -5.460850359191664e-08, 2.650361715724486e-08, -2.804973473442192e-08, 1.4403548081668875e-08,
  3.5968695559835574e-09, -2.055201070766871e-09, -3.227161061651016e-09, 1.5712284787808367e-09};
__constant double clt_erfcx_double[] = {1.2329951186255526, -0.1396211168405623, 0.015379652102619617,
  0.0680970542546691, -0.10103906603630057, 0.09373283499909439, -0.06633036581218697, 0.03716751552655567,
  -0.016197734059799265, 0.005031970067657489, -0.0007577732613730956, -0.0001992571466109119,
  0.00015062149001240474, -2.4397746422436416e-05, -1.1221287012353486e-05, 5.706604414895734e-06,
  2.9197333779630125e-07, -8.210939042560568e-07, 7.746992727017941e-08, 1.0633855618594884e-07,
  -2.05606492756992e-08, -1.234686604382353e-08, 3.1695881915648173e-09, 9.311744978232572e-10,
  -2.659599690242689e-10};
CLT_OWN_LANES(CLT_ERF, double, long, CLT_LIT_D)
#endif

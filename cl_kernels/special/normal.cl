/* erfinv, ndtri (the normal quantile), erfcx and log_ndtr for any number of lanes. erfinv(x) / x is a series in
   w = -log(1 - x^2) or its root, the variable of Giles, "Approximating the erfinv function" (2010); (1 + 2 x) erfcx(x) one in
   (x - 4) / (x + 4), after Shepherd and Laframboise (1981). Fitted at 40 digits. Of Chebyshev polynomials for double; for float
   they are multiplied out, which takes one operation for three, and parts that no lane needs are left out. */
#include "special/chebyshev.cl"
#include "elementary/erf.cl"
#include "elementary/log1p.cl"
#define CLT_erfc_float(V) erfc_##V
#define CLT_erfc_double(V) erfc_##V
#define CLT_log1p_float(V) log1p_##V
#define CLT_log1p_double(V) log1p
#define CLT_SERIES(V, T, name, t) CLT_SERIES_##T(V)(t, clt_##name##_##T, (int)(sizeof(clt_##name##_##T) / sizeof(T)))
#define CLT_SERIES_float(V) clt_powers_##V
#define CLT_SERIES_double(V) clt_cheb_##V
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
    /* exp(x^2) in two parts, for the rounding of the square would be magnified. */                              \
    const V h = rint(x * 16) * K(0.0625), e = 2 * exp_##V(h * h) * exp_##V((x - h) * (x + h));                   \
    return x < (V)(0) ? (a > (V)(K(27.0)) ? (V)(INFINITY) : e - r) : r;                                          \
  }                                                                                                              \
  /* erfinv(x) / x of w = -log(1 - x^2): in w up to 5, in its root beyond. */                                    \
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
__constant double clt_einv_a_double[] = {1.49129894047449022, 0.601756303410830017, -0.00917055950008092636,
  -0.00496263532676642451, 9.15379670007964204e-4, -3.88956275708300061e-6, -2.42025994049440836e-5,
  3.26657159258423321e-6, 2.77588898037366324e-7, -1.30233630136430253e-7, 8.10464342479186964e-9,
  2.86243851769307493e-9, -5.97509000703413741e-10, -1.22229787986956305e-11, 1.95959639713569713e-11,
  -2.05104072073708461e-12, -3.44686046122280041e-13, 1.05467516769692379e-13, -2.44937554908052065e-15,
  -2.948685683278964e-15, 4.40738607110358588e-16, 3.67942917517100516e-17};
__constant double clt_einv_b_double[] = {3.20681897044486351, 1.13452847526048833, 0.00478977808134065437,
  -0.00185867494657969457, 6.27871565754895327e-4, -1.92977795981455701e-4, 4.73202200099834032e-5,
  -6.9356763408305364e-6, -4.8311668943811341e-7, 6.24755307604305806e-7, -1.7673959246998198e-7,
  1.66796083521205202e-8, 5.69355445867878332e-9, -2.63791323926914148e-9, 4.22265324089378373e-10,
  2.82999772785831329e-11, -3.01952974458437622e-11, 6.67607061911448962e-12, -2.68921298078189243e-13,
  -2.59564030279024494e-13, 8.44238768960335577e-14, -1.07206631167327132e-14, -1.16525357634011388e-15,
  8.83625974147644081e-16, -2.00012387890828512e-16};
__constant double clt_einv_c_double[] = {7.37109861122159817, 3.02439525752876835, -0.00203595018416933839,
  6.78675496704666318e-6, 6.1874784993693933e-5, -2.28983500194007363e-5, 6.37008906657535117e-6,
  -1.57975988837255806e-6, 3.67674730606946287e-7, -8.212257083432166e-8, 1.78253341548163011e-8,
  -3.80034983329278037e-9, 8.09198881523770837e-10, -1.78474451439361173e-10, 4.39024035076001109e-11,
  -1.32348752933948828e-11, 5.00703576789233242e-12, -2.18825267797268331e-12, 1.00053950722914626e-12,
  -4.508652172680829e-13, 1.94451082547699772e-13, -7.89510197430691517e-14, 2.97533195138697094e-14,
  -1.02139921773132616e-14, 3.08977790292507679e-15, -7.62759890676851113e-16, 1.14849552156799516e-16};
__constant double clt_einv_d_double[] = {18.9217763224339122, 8.52349671727438118, -0.00395131811530082409,
  6.81132863941418203e-4, -1.16206319017389706e-4, 1.9014462440788369e-5, -2.83509179996532549e-6,
  3.35681490493295347e-7, -1.06797242866605464e-8, -1.17597457673444847e-8, 5.77903225278433009e-9,
  -1.99990759947055134e-9, 6.07265875373376311e-10, -1.72164623341145568e-10, 4.67890845878987588e-11,
  -1.2356126321171307e-11, 3.19585437256048869e-12, -8.13615314905847316e-13, 2.04560500261175906e-13,
  -5.09099045474406316e-14, 1.25628577471308337e-14, -3.07766061940290069e-15, 7.49220122709673285e-16};
__constant double clt_erfcx_double[] = {1.1774832005374487, -0.00726079662030190048, -0.0812651232361849979,
  0.06009212804122225, -0.0287539355802766603, 0.01059566336347286, -0.00313692729455426424, 7.45649437253618404e-4,
  -1.36969650301005407e-4, 1.71838616003009371e-5, -7.15836462345034686e-7, -2.4261399442449532e-7,
  5.5765709395703564e-8, -2.10578695138094948e-9, -1.17178893518849568e-9, 1.90983551724566879e-10,
  1.40887176420881297e-11, -6.90110832048081496e-12, 9.16795836411129329e-14, 2.1454508286554553e-13,
  -1.47165750270106242e-14, -6.66867511877040792e-15, 7.50459850988008303e-16, 2.22009300666632004e-16,
  -3.17048989563308884e-17};
CLT_OWN_LANES(CLT_ERF, double, long, CLT_LIT_D)
#endif

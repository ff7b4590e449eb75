/* erf and erfc of float lanes. erf(x) up to 7/8 is x + x p(x^2); beyond, 1 - exp(-t q(t)) with t = |x|, because
   -log(erfc(t)) / t is almost a straight line there. erfc(x) up to 1/2 is 1 - erf(x); beyond, exp(-t^2) g(t), g being a
   polynomial of degree 10 in (t - 3) / (t + 3) and the square exact, in two parts. All polynomials are minimax in the
   relative error of the result, which is below 1.06 ulp for erf and 4.3 for erfc. */
#include "all_lanes.cl"
#include "elementary/exp.cl"
#define CLT_ERF_PAIR(F, I)                                                                                    \
  /* erf(x) - x for |x| up to 7/8. */                                                                         \
  static inline F clt_erf_rest_##F(F x) {                                                                     \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                          \
    const F s = x * x;                                                                                        \
    F p = (F)(-6.203252274e-4f) * s + (F)(5.032180771e-3f);                                                   \
    p = p * s + (F)(-2.679146266e-2f);                                                                        \
    p = p * s + (F)(1.128245532e-1f);                                                                         \
    p = p * s + (F)(-3.761255046e-1f);                                                                        \
    return (p * s + (F)(1.283791575e-1f)) * x;                                                                \
  }                                                                                                           \
  static inline F erf_##F(F x) {                                                                              \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                          \
    const F t = CLT_ABS(F, I, x);                                                                             \
    F q = (F)(-2.152250174e-4f) * t + (F)(3.225123982e-3f);                                                   \
    q = q * t + (F)(-2.29223841e-2f);                                                                         \
    q = q * t + (F)(1.053120952e-1f);                                                                         \
    q = q * t + (F)(6.356804277e-1f);                                                                         \
    q = q * t + (F)(1.128525485f);                                                                            \
    q = t > (F)(4.0f) ? (F)(-20.0f) : -t * q;                                                                 \
    const F far = (F)(1.0f) - clt_exp_neg_##F(q);                                                             \
    return t > (F)(0.875f) ? (x < (F)(0.0f) ? -far : far) : x + clt_erf_rest_##F(x);                          \
  }                                                                                                           \
  static inline F erfc_##F(F x) {                                                                             \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                          \
    const F a = CLT_ABS(F, I, x), t = a > (F)(10.2f) ? (F)(10.2f) : a, q = (t - (F)(3.0f)) / (t + (F)(3.0f)); \
    F g = (F)(5.43019778e-5f) * q + (F)(3.07226110e-5f);                                                      \
    g = g * q + (F)(-5.87177987e-4f);                                                                         \
    g = g * q + (F)(7.16796203e-4f);                                                                          \
    g = g * q + (F)(4.26422944e-3f);                                                                          \
    g = g * q + (F)(-2.43951418e-2f);                                                                         \
    g = g * q + (F)(7.16669336e-2f);                                                                          \
    g = g * q + (F)(-0.150115654f);                                                                           \
    g = g * q + (F)(0.24560371f);                                                                             \
    g = g * q + (F)(-0.326233566f);                                                                           \
    g = g * q + (F)(0.179001153f);                                                                            \
    const F h = as_##F((as_##I(t) + 0x800) & (I)(0xfffff000));                                                \
    F z;                                                                                                      \
    const F r = clt_exp_split_##F(-h * h, 0, &z) - (t - h) * (t + h);                                         \
    const I n = as_##I(z) - (I)(0x4b400000), half_n = n >> 1;                                                 \
    const F y = clt_exp_near_##F(r) * g * as_##F((half_n + 127) << 23) * as_##F((n - half_n + 127) << 23);    \
    const F near = (F)(1.0f) - (x + clt_erf_rest_##F(x));                                                     \
    return a < (F)(0.5f) ? near : x < (F)(0.0f) ? (F)(2.0f) - y : y;                                          \
  }
CLT_ALL_LANES(CLT_ERF_PAIR)
/* erf and erfc of double lanes. erf(x) is x + x p(x^2) up to 7/8; beyond, 1 - exp(-t^2) g, g being a polynomial in (t -
   3) / (t + 3), whose even and odd parts are evaluated independently. Wrong by less than 1.2 ulp. erfc(x) up to 1/2 is
   1 - erf(x); beyond, exp(-t^2) s / (1 + 2 t), s being a polynomial in (t - 3) / (t + 3), too. The square is exact, in
   two parts. The quotient also has two parts: its residual is computed from the 24 high bits of t and of the quotient,
   whose products are exact. Wrong by less than 1.9 ulp. */
#ifdef CLT_DOUBLE
#define CLT_ERF_DOUBLE(F, I)                                                                                     \
  /* erf(x) - x for |x| up to 7/8. */                                                                            \
  static inline F clt_erf_rest_##F(F x) {                                                                        \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                             \
    const F s = x * x, s2 = s * s;                                                                               \
    F p = (F)(1.41221858231484849e-8), p_odd = (F)(-8.66480554020433515e-10);                                    \
    p = p * s2 + (F)(1.64565975723887192e-6), p_odd = p_odd * s2 + (F)(-1.6289140017359031e-7);                  \
    p = p * s2 + (F)(1.20553245381958823e-4), p_odd = p_odd * s2 + (F)(-1.49253865950655462e-5);                 \
    p = p * s2 + (F)(5.22397762305046071e-3), p_odd = p_odd * s2 + (F)(-8.54832684510718258e-4);                 \
    p = p * s2 + (F)(0.112837916709543497), p_odd = p_odd * s2 + (F)(-0.0268661706449417904);                    \
    p = p * s2 + (F)(0.128379167095512574), p_odd = p_odd * s2 + (F)(-0.3761263890318374);                       \
    return (p + p_odd * s) * x;                                                                                  \
  }                                                                                                              \
  static inline F erf_##F(F x) {                                                                                 \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                             \
    const F t = as_##F(as_##I(x) & (I)(0x7fffffffffffffffL));                                                    \
    const F u = t > (F)(6.0) ? (F)(6.0) : t, q = (u - 3) / (u + 3), q2 = q * q;                                  \
    F g = (F)(1.36874255524382292e-6), g_odd = (F)(7.90908501127831377e-8);                                      \
    g = g * q2 + (F)(-8.04388308341918039e-6), g_odd = g_odd * q2 + (F)(2.01695426087998874e-6);                 \
    g = g * q2 + (F)(6.40676606396099658e-5), g_odd = g_odd * q2 + (F)(-1.28538875586883562e-5);                 \
    g = g * q2 + (F)(-5.97062841531302465e-4), g_odd = g_odd * q2 + (F)(4.52558853470797206e-5);                 \
    g = g * q2 + (F)(4.2691363698260821e-3), g_odd = g_odd * q2 + (F)(7.07746343619498908e-4);                   \
    g = g * q2 + (F)(0.0716658371972275057), g_odd = g_odd * q2 + (F)(-0.0243924993143034606);                   \
    g = g * q2 + (F)(0.245603801712336889), g_odd = g_odd * q2 + (F)(-0.150115936500851906);                     \
    g = g * q2 + (F)(0.179001151181389942), g_odd = g_odd * q2 + (F)(-0.326233560043036888);                     \
    const F far = (F)(1.0) - clt_exp_neg_##F(-u * u) * (g + g_odd * q);                                          \
    return t > (F)(0.875) ? (x < (F)(0.0) ? -far : far) : x + clt_erf_rest_##F(x);                               \
  }                                                                                                              \
  static inline F erfc_##F(F x) {                                                                                \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                             \
    const F a = as_##F(as_##I(x) & (I)(0x7fffffffffffffffL)), t = a > (F)(27.3) ? (F)(27.3) : a;                 \
    const F h = as_##F(as_##I(t) & (I)(0xffffffffe0000000UL)), l = t - h, q = (t - 3) / (t + 3), q2 = q * q;     \
    F p = (F)(2.2828166705833453e-08), p_odd = (F)(-1.5273968877925316e-08);                                     \
    p = p * q2 + (F)(-1.2144409932507716e-07), p_odd = p_odd * q2 + (F)(1.114014065535667e-07);                  \
    p = p * q2 + (F)(3.445519718959911e-07), p_odd = p_odd * q2 + (F)(-6.294713399155682e-07);                   \
    p = p * q2 + (F)(-7.268938728606072e-07), p_odd = p_odd * q2 + (F)(3.48139283289368e-06);                    \
    p = p * q2 + (F)(4.948392419223198e-06), p_odd = p_odd * q2 + (F)(-2.0104333659576072e-05);                  \
    p = p * q2 + (F)(-0.000105159638394409), p_odd = p_odd * q2 + (F)(0.00012510034130479658);                   \
    p = p * q2 + (F)(0.0018886903446999287), p_odd = p_odd * q2 + (F)(-0.0007798324345840516);                   \
    p = p * q2 + (F)(-0.023770514917886655), p_odd = p_odd * q2 + (F)(0.0025293918321399964);                    \
    p = p * q2 + (F)(-0.11927366341533026), p_odd = p_odd * q2 + (F)(0.06830802734310082);                       \
    p = p * q2 + (F)(-0.04756229435345048), p_odd = p_odd * q2 + (F)(0.1296451587027827);                        \
    p_odd = p_odd * q2 + (F)(-0.13562110612458134);                                                              \
    const F first = (F)(1.2530080582697296), more = p * q2 + p_odd * q, sum = first + more;                      \
    const F d = (F)(1.0) + 2 * h, r = (F)(1.0) / (d + 2 * l);                                                    \
    const F high = as_##F(as_##I(sum * r) & (I)(0xffffffffe0000000UL));                                          \
    const F low = ((sum - high * d) - high * (2 * l) + (more - (sum - first))) * r;                              \
    F z;                                                                                                         \
    const F e = clt_exp_rest_##F(clt_exp_split_##F(-h * h, &z) - l * (t + h));                                   \
    const I n = as_##I(z) - (I)(0x4337fffffffff800UL), half_n = n >> 1;                                          \
    const F y = (high + (low + (high + low) * e)) * as_##F((half_n - 1) << 52) * as_##F((n - half_n - 1) << 52); \
    const F near = (F)(1.0) - (x + clt_erf_rest_##F(x));                                                         \
    return a < (F)(0.5) ? near : x < (F)(0.0) ? (F)(2.0) - y : y;                                                \
  }
CLT_DOUBLE_LANES(CLT_ERF_DOUBLE)
#endif

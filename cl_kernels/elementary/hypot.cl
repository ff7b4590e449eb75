/* hypot of float lanes: the root of the sum of squares; operands are scaled by a power of two where a square would
   leave the range. Wrong by less than 1.2 ulp. */
#include "all_lanes.cl"
#define CLT_HYPOT(F, I)                                                                                               \
  static inline F hypot_##F(F x, F y) {                                                                               \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                  \
    const F u = CLT_ABS(F, I, x), v = CLT_ABS(F, I, y), most = v > u ? v : u;                                         \
    const F by = most > (F)(9.2e18f) ? (F)(8.27180613e-25f) : most < (F)(1e-10f) ? (F)(1.20892582e24f) : (F)(1.0f);   \
    const F back = most > (F)(9.2e18f) ? (F)(1.20892582e24f) : most < (F)(1e-10f) ? (F)(8.27180613e-25f) : (F)(1.0f); \
    const F a = u * by, b = v * by, r = sqrt(a * a + b * b) * back;                                                   \
    return (u == (F)(INFINITY)) | (v == (F)(INFINITY)) ? (F)(INFINITY) : r;                                           \
  }
CLT_ALL_LANES(CLT_HYPOT)

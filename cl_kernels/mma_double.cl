#include "mma_copies.cl"
/* Products of float64 matrices by matrix units: 16 x 16 times 16 x 8 numbers are added to sums. Lane l holds of the
   first operand rows l / 4 (a0, a2, ...) and l / 4 + 8 (a1, a3, ...) at k = l % 4 + 0, 4, 8 and 12; of the second
   operand column l / 4 at the same k; and of the sums the same elements as for float32 sums. One instruction from
   compute capability 9.0 on (CLT_LONG_K), else eight. */
#ifdef CLT_LONG_K
#define clt_multiply_f64(c, a, b)                                                                                             \
  __asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, " \
                   "{%12, %13, %14, %15}, {%0, %1, %2, %3};"                                                                  \
                   : "+d"(c##0), "+d"(c##1), "+d"(c##2), "+d"(c##3)                                                           \
                   : "d"(a##0), "d"(a##1), "d"(a##2), "d"(a##3), "d"(a##4), "d"(a##5), "d"(a##6), "d"(a##7),                  \
                     "d"(b##0), "d"(b##1), "d"(b##2), "d"(b##3))
#else
#define CLT_MULTIPLY_F64(c0, c1, a, b) \
  __asm__ volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+d"(c0), "+d"(c1) : "d"(a), "d"(b))
#define clt_multiply_f64(c, a, b)              \
  CLT_MULTIPLY_F64(c##0, c##1, a##0, b##0);    \
  CLT_MULTIPLY_F64(c##2, c##3, a##1, b##0);    \
  CLT_MULTIPLY_F64(c##0, c##1, a##2, b##1);    \
  CLT_MULTIPLY_F64(c##2, c##3, a##3, b##1);    \
  CLT_MULTIPLY_F64(c##0, c##1, a##4, b##2);    \
  CLT_MULTIPLY_F64(c##2, c##3, a##5, b##2);    \
  CLT_MULTIPLY_F64(c##0, c##1, a##6, b##3);    \
  CLT_MULTIPLY_F64(c##2, c##3, a##7, b##3)
#endif

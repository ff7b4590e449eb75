/* A gather of sixteen floats of a row whose places are in ascending order and lie near each other. A contiguous window
   of the row is loaded for each register, and a permute instruction picks the lanes from it; one by one each would be a
   load and an insertion. CLT_PICK, defined where that instruction exists, is the number of floats per register. A
   register's base is the place of its first lane: `low`, and with two registers also `high`, the place of lane 8.
   `picks` are the places relative to the base of their register. */
#if defined(__AVX512F__) && defined(__has_builtin)
#if __has_builtin(__builtin_ia32_permvarsf512) && __has_builtin(__builtin_ia32_vpermi2varps512)
#define CLT_PICK 16
#endif
#elif defined(__AVX2__) && defined(__has_builtin)
#if __has_builtin(__builtin_ia32_permvarsf256)
#define CLT_PICK 8
#endif
#endif
#ifdef CLT_PICK
#if CLT_PICK == 16
typedef float16 clt_part __attribute__((aligned(4)));
#define CLT_BASES(low, high) ((int16)(low))
#define CLT_REACH(picks) ((picks).sF)
#define CLT_WINDOW(row, low, high) (*(__global const clt_part *)((row) + (low)))
static inline float16 clt_picked(const float16 window, const int16 picks) {
  return __builtin_astype(__builtin_ia32_permvarsf512(window, picks), float16);
}
static inline float16 clt_picked_far(const float16 window, const float16 next, const int16 picks) {
  return __builtin_astype(__builtin_ia32_vpermi2varps512(window, picks, next), float16);
}
#else
typedef float8 clt_part __attribute__((aligned(4)));
#define CLT_BASES(low, high) ((int16)((int8)(low), (int8)(high)))
#define CLT_REACH(picks) ((picks).s7 > (picks).sF ? (picks).s7 : (picks).sF)
#define CLT_WINDOW(row, low, high) ((float16)(*(__global const clt_part *)((row) + (low)), *(__global const clt_part *)((row) + (high))))
static inline float16 clt_picked(const float16 window, const int16 picks) {
  return (float16)(__builtin_astype(__builtin_ia32_permvarsf256(window.lo, picks.lo), float8), __builtin_astype(__builtin_ia32_permvarsf256(window.hi, picks.hi), float8));
}
static inline float16 clt_picked_far(const float16 window, const float16 next, const int16 picks) {
  return picks > 7 ? clt_picked(next, picks) : clt_picked(window, picks);
}
#endif
#endif

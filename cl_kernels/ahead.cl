/* Prefetches the cache line at an address. Any address may be given: prefetching an unmapped one is not an
   error. BESIDE: for one of many lines whose distances are powers of two; into the L2 cache, because they would evict
   each other from L1. TO_WRITE: for a line that will be written. */
#if defined(__has_builtin) && !defined(CLT_NO_PREFETCH)
#if __has_builtin(__builtin_prefetch)
#define CLT_PREFETCH(place) __builtin_prefetch((const void *)(size_t)(place))
#define CLT_PREFETCH_BESIDE(place) __builtin_prefetch((const void *)(size_t)(place), 0, 2)
#define CLT_PREFETCH_TO_WRITE(place) __builtin_prefetch((const void *)(size_t)(place), 1)
#endif
#endif
#ifndef CLT_PREFETCH
#define CLT_PREFETCH(place)
#define CLT_PREFETCH_BESIDE(place)
#define CLT_PREFETCH_TO_WRITE(place)
#endif

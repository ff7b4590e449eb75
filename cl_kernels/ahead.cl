/* Asks for the line of memory at a place before it is needed. Any place will do: one that is not mapped is not an error.
   BESIDE: one of many lines at distances that are powers of two, into the second-level cache, for they would not stay in the first.
   TO_WRITE: one that will be written. */
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

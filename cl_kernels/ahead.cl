/* Asks for the line of memory at a place before it is needed. Any place will do: one that is not mapped is not an error. */
#if defined(__has_builtin) && !defined(CLT_NO_PREFETCH)
#if __has_builtin(__builtin_prefetch)
#define CLT_PREFETCH(place) __builtin_prefetch((const void *)(size_t)(place))
#endif
#endif
#ifndef CLT_PREFETCH
#define CLT_PREFETCH(place)
#endif

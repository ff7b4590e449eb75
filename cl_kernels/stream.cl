/* Non-temporal stores, for results too large to stay in the cache: a plain store first reads the cache line it writes.
   The address must be aligned to the vector's size. */
#ifdef __has_builtin
#if __has_builtin(__builtin_nontemporal_store)
#define CLT_STREAM(value, place) __builtin_nontemporal_store(value, place)
#endif
#endif
#ifndef CLT_STREAM
#define CLT_STREAM(value, place) *(place) = value
#endif

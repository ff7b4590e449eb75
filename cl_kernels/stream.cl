/* Stores past the cache, for results too large to be found there again: a plain store first reads the line it writes.
   The place is aligned as the vector is. */
#ifdef __has_builtin
#if __has_builtin(__builtin_nontemporal_store)
#define CLT_STREAM(value, place) __builtin_nontemporal_store(value, place)
#endif
#endif
#ifndef CLT_STREAM
#define CLT_STREAM(value, place) *(place) = value
#endif

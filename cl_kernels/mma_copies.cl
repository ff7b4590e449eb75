/* Asynchronous copies to local memory, in PTX, on NVIDIA GPUs of compute capability 8.0 and later, for kernels that use
   matrix units. A clt_place is a byte address in local memory. mma_copies_twin.cl defines the same in plain OpenCL C. */
#ifdef CLT_NO_ASSEMBLY
#error "products by matrix units are assembly"
#endif
typedef uint clt_place;
#define CLT_PLACE(memory) ((uint)(size_t)(memory))
#define CLT_UNIT(place, n) ((place) + 16 * (n))
/* Start a copy of 16 bytes, of which n are read and the others set to zero. Through the L1 cache (.ca): copies that
   bypass it reached only 15 bytes per cycle on an H100, whatever the tile. */
#define CLT_COPY(to, from, n) \
  __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(n) : "memory")
/* Store 16 bytes. */
#define CLT_PUT(to, a, b, c, d) \
  __asm__ volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory")
#define CLT_COPIES_END() __asm__ volatile("cp.async.commit_group;" ::: "memory")
/* Wait until all copies except those of the last n groups have arrived. */
#define CLT_COPIES_WAIT(n) __asm__ volatile("cp.async.wait_group " #n ";" ::: "memory")

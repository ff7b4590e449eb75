/* Copies to local memory that run beside other work, in PTX, on NVIDIA's devices of compute capability 8.0 and later, for what multiplies
   by matrix units. Places are addresses of local memory in bytes. What this file defines, mma_copies_twin.cl defines in plain OpenCL C. */
#ifdef CLT_NO_ASSEMBLY
#error "products by matrix units are assembly"
#endif
typedef uint clt_place;
#define CLT_PLACE(memory) ((uint)(size_t)(memory))
#define CLT_UNIT(place, n) ((place) + 16 * (n))
/* Begin to copy 16 bytes, of which n bytes are read and the others are zeros. By way of the first-level cache: copies that go past it
   came at 15 bytes a cycle on an H100, whatever the tile. */
#define CLT_COPY(to, from, n) \
  __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(n) : "memory")
/* Store 16 bytes. */
#define CLT_PUT(to, a, b, c, d) \
  __asm__ volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory")
#define CLT_COPIES_END() __asm__ volatile("cp.async.commit_group;" ::: "memory")
/* Wait until all copies but those of the last n groups are there. */
#define CLT_COPIES_WAIT(n) __asm__ volatile("cp.async.wait_group " #n ";" ::: "memory")

<%doc>
Products of many small matrices, on a CPU: a work-item owns `per` of them, a row of a result is one vector.

Results have at most V columns, or one (V is 1); R rows are computed at a time, repeating the last one where fewer are
left. B's rows are read in place: by masked loads where they are shorter than a vector (unless `whole`), number by
number where they are not contiguous (`apart`). Sums go over K in order, as those of larger products do.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%
read = memory.scalar_load if V == 1 else memory.vector_load if whole else lambda p: f"load_{memory.code}({p}, (int)N)"
if apart: read = lambda p: f"gather_{memory.code}({p}, sbn, (int)N)"
write = memory.scalar_store if V == 1 else memory.vector_store if whole else lambda p, v: f"store_{memory.code}({p}, {v}, (int)N)"
needed = {(memory.code, name) for name in ('load', 'gather', 'store')}
%>\
#pragma OPENCL FP_CONTRACT ON
${headers}
${lane_memory.helpers({memory.code: memory}, V, needed)}\
#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const ${memory.cl} *A, long aoff, long sam, long sak, __global const ${memory.cl} *B, long boff, long sbk, long sbn,
    __global ${memory.cl} *C, long coff, long scm, long M, long N, long K, long batches, long per, long inner,
    long a0, long a1, long b0, long b1, long c0, long c1) {
  const long first = get_global_id(0) * per, end = min(first + per, batches);
  long zo = first / inner, zi = first % inner;
  for (long z = first; z < end; z++) {
    __global const ${memory.cl} *Az = A + aoff + zo * a0 + zi * a1, *Bz = B + boff + zo * b0 + zi * b1;
    __global ${memory.cl} *Cz = C + coff + zo * c0 + zi * c1;
    for (long i = 0; i < M; i += ${R}) {
% for r in range(R):
      const long i${r} = min(i + ${r}, M - 1);
      __global const ${memory.cl} *x${r} = Az + i${r} * sam;
      ${memory.reg} t${r} = 0;
% endfor
      __global const ${memory.cl} *y = Bz;
      for (long k = 0; k < K; k++, y += sbk) {
        const ${memory.reg} row = ${read('y')};
% for r in range(R):
        t${r} = ${memory.scalar_load(f'x{r} + k * sak')} * row + t${r};
% endfor
      }
% for r in range(R):
      ${write(f'Cz + i{r} * scm', f't{r}')};
% endfor
    }
    if (++zi == inner) { zi = 0; ++zo; }
  }
}

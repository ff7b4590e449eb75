<%doc>
Products of few rows with few columns over a long K, both contiguous along K, on a CPU: split-K, work-item z sums piece
z of K.

K is walked in blocks of ${BLOCK}, which stay in L1 while ${T} rows by ${T} columns at a time are multiplied, with a
vector accumulator for each pair. Rows and columns past the last repeat it and are not stored. Each accumulator is
reduced at the end of a block, and the blocks' sums are added up.
</%doc>\
<%
acc, reg, V = memory.dt.reg, memory.reg, memory.lanes
pairs = [(r, s) for r in range(T) for s in range(T)]
%>\
#pragma OPENCL FP_CONTRACT ON
typedef ${reg} run_u __attribute__((aligned(${memory.dt.itemsize})));
#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const ${acc} *A, long aoff, long sam, long sak, __global const ${acc} *B, long boff, long sbk, long sbn,
    __global ${acc} *C, long coff, long scm, long scn, long M, long N, long K, long piece, long step) {
  __local ${acc} sums[${MOST * MOST}];
  const long z = get_global_id(0), first = z * piece, end = min(first + piece, K);
  A += aoff, B += boff, C += coff + z * step;
  for (long i = 0; i < M * N; i++) sums[i] = 0;
  for (long k0 = first; k0 < end; k0 += ${BLOCK}) {
    const long k1 = min(k0 + ${BLOCK}, end);
    for (long m0 = 0; m0 < M; m0 += ${T})
    for (long n0 = 0; n0 < N; n0 += ${T}) {
% for r in range(T):
      __global const ${acc} *a${r} = A + min(m0 + ${r}, M - 1) * sam, *b${r} = B + min(n0 + ${r}, N - 1) * sbn;
% endfor
% for r, s in pairs:
      ${reg} t${r}_${s} = 0;
% endfor
      long k = k0;
      for (; k + ${V} <= k1; k += ${V}) {
% for s in range(T):
        const ${reg} v${s} = *(__global const run_u *)(b${s} + k);
% endfor
% for r in range(T):
        const ${reg} w${r} = *(__global const run_u *)(a${r} + k);
% for s in range(T):
        t${r}_${s} = w${r} * v${s} + t${r}_${s};
% endfor
% endfor
      }
% for r, s in pairs:
      {
<% half = V // 2; src = f"t{r}_{s}" %>\
% while half >= 2:
        const ${acc}${half} h${half} = ${src}.lo + ${src}.hi;
<% src = f"h{half}"; half //= 2 %>\
% endwhile
        ${acc} y = ${src}.lo + ${src}.hi;
        for (long j = k; j < k1; j++) y = a${r}[j] * b${s}[j] + y;
        if (m0 + ${r} < M && n0 + ${s} < N) sums[(m0 + ${r}) * N + n0 + ${s}] += y;
      }
% endfor
    }
  }
  for (long m = 0; m < M; m++)
    for (long n = 0; n < N; n++) C[m * scm + n * scn] = sums[m * N + n];
}

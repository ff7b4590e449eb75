<%doc>
Products of few rows with few columns over a long K, on a CPU: split-K, work-item z sums piece z of K.

A row of the result is one vector of V numbers, of which N are stored; ${R} rows are computed at a time, those past M
repeat the last one. K is walked in blocks of ${BLOCK}, whose sums are added up. Rows of B are read in place as long as
a vector of V numbers does not reach past B's end; the last rows, or all if rows are not contiguous, are copied to local
memory first. S sets of accumulators are used in turn, because each addition to one set would wait for the one before.
</%doc>\
<% acc, reg = memory.dt.reg, memory.reg %>\
#pragma OPENCL FP_CONTRACT ON
typedef ${reg} row_u __attribute__((aligned(${memory.dt.itemsize})));
#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const ${acc} *A, long aoff, long sam, long sak, __global const ${acc} *B, long boff, long sbk, long sbn,
    __global ${acc} *C, long coff, long scm, long scn, long M, long N, long K, long piece, long step) {
  __local ${acc} rows[${BLOCK * V}] __attribute__((aligned(64)));
  const long z = get_global_id(0), first = z * piece, end = min(first + piece, K);
  ## From row `whole` on, fewer than V numbers are readable from a row's beginning to the end of B.
  const long whole = sbn != 1 || sbk < 1 ? 0 : K - (${V} - N + sbk - 1) / sbk;
  A += aoff, B += boff, C += coff + z * step;
% for r in range(R):
  const long at${r} = min(${r}L, M - 1) * sam;
  ${reg} sum${r} = 0;
% endfor
  for (long k0 = first; k0 < end; k0 += ${BLOCK}) {
    const long k1 = min(k0 + ${BLOCK}, end), k2 = max(min(k1, whole), k0);
% for r in range(R):
% for s in range(S):
    ${reg} t${r}_${s} = 0;
% endfor
% endfor
    __global const ${acc} *a = A + k0 * sak;
<%def name="along(begin, stop, pointer, space, stride)">\
    {
      long k = ${begin};
      ${space} const ${acc} *b = ${pointer};
% for T in sorted({S, 1}, reverse=True):
      for (; k + ${T} <= ${stop}; k += ${T}, a += ${T} * sak, b += ${T} * ${stride}) {
% for s in range(T):
        const ${reg} b${s} = *(${space} const row_u *)(b + ${s} * ${stride});
% for r in range(R):
        t${r}_${s} = a[at${r} + ${s} * sak] * b${s} + t${r}_${s};
% endfor
% endfor
      }
% endfor
    }
</%def>\
    ${along("k0", "k2", "B + k0 * sbk", "__global", "sbk")}
    if (k2 < k1) {
      for (long n = 0; n < ${V}; n++)
        for (long k = k2; k < k1; k++)
          rows[(k - k2) * ${V} + n] = n < N ? B[k * sbk + n * sbn] : 0;
      ${along("k2", "k1", "rows", "__local", V)}
    }
% for r in range(R):
% for s in range(1, S):
    t${r}_0 += t${r}_${s};
% endfor
    sum${r} += t${r}_0;
% endfor
  }
% for r in range(R):
  *(__local ${reg} *)(rows + ${r * V}) = sum${r};
% endfor
  for (long m = 0; m < M; m++)
    for (long n = 0; n < N; n++) C[m * scm + n * scn] = rows[m * ${V} + n];
}

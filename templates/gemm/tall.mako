<%doc>
Products of many rows with a few columns, on a CPU: a work-item owns `per` rows, and a row of the result is one vector.

B is copied into local memory (cache) as K rows of V numbers, zeros past N; then ${R} rows of A at a time are multiplied
by it, repeating the last one where fewer are left. If the result's rows have no gaps, they are stored as whole vectors,
whose excess the next row overwrites, provided that row is this work-item's, too, and no bias may lie there. With
`finish` a row goes through the epilogue. Sums go over K in order, as those of larger products do. ahead: the next rows
are prefetched meanwhile, because the hardware prefetcher does not follow several long rows at once.
</%doc>\
<% acc, reg, line = memory.dt.reg, memory.reg, 64 // memory.dt.itemsize %>\
% if finish:
${finish.text}
typedef ${acc}${finish.lanes} run_u __attribute__((aligned(4)));
% endif
${headers}\
#pragma OPENCL FP_CONTRACT ON
typedef ${reg} row_u __attribute__((aligned(${memory.dt.itemsize})));
## Load and store the first `count` numbers of a vector (the others load as zero). Rarely called, and not inlined
## because the main loop is slower with their code inside.
static __attribute__((noinline)) ${reg} read_row(__global const ${acc} *p, const long step, const long count) {
  if (step == 1 && count == ${V}) return *(__global const row_u *)p;
  ${acc} t[${V}];
  for (long k = 0; k < ${V}; k++) t[k] = k < count ? p[k * step] : 0;
  return vload${V}(0, t);
}
% if not finish:
static __attribute__((noinline)) void write_row(__global ${acc} *p, const ${reg} v, const long count) {
  if (count == ${V}) { *(__global row_u *)p = v; return; }
  ${acc} t[${V}];
  vstore${V}(v, 0, t);
  for (long k = 0; k < count; k++) p[k] = t[k];
}
% endif
#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const ${acc} *A, long aoff, long sam, long sak, __global const ${acc} *B, long boff, long sbk, long sbn,
    __global ${acc} *C, long coff, long scm, __global const ${acc} *D, long doff, long sdm, long sdn, int has_bias, ${acc} alpha, ${acc} beta,
    long M, long N, long K, long per${''.join(f', {p}' for p in finish.parameters) if finish else ''}) {
  __local ${acc} columns[${depth * V}] __attribute__((aligned(64)));
% if finish:
  __local ${acc} tile[${V}] __attribute__((aligned(64)));
% endif
  A += aoff, B += boff, C += coff, D += doff;
  for (long k = 0; k < K; k++) *(__local ${reg} *)(columns + k * ${V}) = read_row(B + k * sbk, sbn, N);
  ## A bias that is one row for all rows of the result is read once.
  const ${reg} each = has_bias && sdm == 0 ? beta * read_row(D, sdn, N) : (${reg})(0);
  const long first = get_global_id(0) * per, end = min(first + per, M);
  for (long i = first; i < end; i += ${R}) {
    __global const ${acc} *a = A;
% for r in range(R):
    const long i${r} = ${f'min(i + {r}, end - 1)' if r else 'i'}, at${r} = i${r} * sam;
    ${reg} t${r} = 0;
% endfor
    for (long k = 0; k < K; k++, a += sak) {
% if ahead:
      if (k % ${line} == 0) {
% for r in range(R):
        CLT_PREFETCH(a + at${r} + ${R} * sam);
% endfor
      }
% endif
      const ${reg} row = *(__local const ${reg} *)(columns + k * ${V});
% for r in range(R):
      t${r} = a[at${r}] * row + t${r};
% endfor
    }
% for r in range(R):
    t${r} *= alpha;
% endfor
    if (has_bias) {
% for r in range(R):
      t${r} += sdm == 0 ? each : beta * read_row(D + i${r} * sdm, sdn, N);
% endfor
    }
% if finish:
% for r in range(R):
    if (i + ${r} < end) {
      *(__local ${reg} *)tile = t${r};
      for (long n = 0; n < N; n += ${finish.lanes})
        finish(i${r}, n, (int)min(N - n, (long)${finish.lanes}), *(__local const run_u *)(tile + n), ${', '.join(finish.names)});
    }
% endfor
% else:
    if (N == ${V} || (scm == N && !(has_bias && sdm) && (i + ${R}) * N + ${V} <= end * N)) {
% for r in range(R):
      *(__global row_u *)(C + i${r} * scm) = t${r};
% endfor
    } else {
% for r in range(R):
      write_row(C + i${r} * scm, t${r}, N);
% endfor
    }
% endif
  }
}

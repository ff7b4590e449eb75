<%doc>
Products of many rows with a few columns, on a CPU: a work-item owns `per` rows, and a row of the result is one vector.

B is copied into local memory (cache) as K rows of V numbers, zeros past N; then ${R} rows of A at a time go along K, the last one
again where there are fewer left. Rows of a result without gaps are stored as whole vectors, whose ends the next row overwrites,
as long as that is one of this work-item's. With `finish` a row goes through it. Sums go over K in order, as the larger products' do.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%
acc, reg, code = memory.dt.reg, memory.reg, memory.code
%>\
% if finish:
${finish.text}
typedef ${acc}${finish.lanes} run_u __attribute__((aligned(4)));
% endif
#pragma OPENCL FP_CONTRACT ON
${lane_memory.helpers({code: memory}, V, {(code, 'load'), (code, 'gather'), (code, 'store')})}\
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const ${acc} *A, long aoff, long sam, long sak, __global const ${acc} *B, long boff, long sbk, long sbn,
    __global ${acc} *C, long coff, long scm, long scn, __global const ${acc} *D, long doff, long sdm, long sdn, int has_bias, ${acc} alpha, ${acc} beta,
    long M, long N, long K, long per${''.join(f', {p}' for p in finish.parameters) if finish else ''}) {
  __local ${acc} columns[${depth * V}] __attribute__((aligned(64)));
  A += aoff, B += boff, C += coff, D += doff;
  for (long k = 0; k < K; k++) {
    *(__local ${reg} *)(columns + k * ${V}) = (${reg})(0);
    for (long n = 0; n < N; n++) columns[k * ${V} + n] = B[k * sbk + n * sbn];
  }
  const long first = get_global_id(0) * per, end = min(first + per, M);
  for (long i = first; i < end; i += ${R}) {
    __global const ${acc} *a = A;
% for r in range(R):
    const long i${r} = ${f'min(i + {r}, end - 1)' if r else 'i'}, at${r} = i${r} * sam;
    ${reg} t${r} = 0;
% endfor
    for (long k = 0; k < K; k++, a += sak) {
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
      t${r} += beta * (sdn == 1 ? load_${code}(D + i${r} * sdm, (int)N) : gather_${code}(D + i${r} * sdm, sdn, (int)N));
% endfor
    }
% if finish:
    __local ${acc} tile[${V}] __attribute__((aligned(64)));
% for r in range(R):
    if (i + ${r} < end) {
      *(__local ${reg} *)tile = t${r};
      for (long n = 0; n < N; n += ${finish.lanes})
        finish(i${r}, n, (int)min(N - n, (long)${finish.lanes}), *(__local const run_u *)(tile + n), ${', '.join(finish.names)});
    }
% endfor
% else:
    if (N == ${V} || (scm == N && (i + ${R}) * N + ${V} <= end * N)) {
% for r in range(R):
      ${memory.vector_store(f'C + i{r} * scm', f't{r}')};
% endfor
    } else {
% for r in range(R):
      store_${code}(C + i${r} * scm, t${r}, (int)N);
% endfor
    }
% endif
  }
}

<%doc>
Matrix of many short rows times a vector, on a CPU: a work-item (y, z) owns BM rows of matrix z and makes ${V} results
at a time, as one vector.

The vector is copied into local memory (cache), padded with zeros to whole registers. Rows are read in place, one after
the other, their ends by masked loads that give zeros past the row; then the accumulators of ${V} rows are reduced to
the lanes of one vector by pairwise additions of neighbouring lanes, two rows at a time. Rows past the last repeat it
and are not stored.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%
acc, reg, cl = memory.dt.reg, memory.reg, memory.cl
mask = f"{'long' if acc == 'double' else 'int'}{V}"
stages = V.bit_length() - 1
%>\
#pragma OPENCL FP_CONTRACT ON
${headers}
${lane_memory.helpers({memory.code: memory}, V, {(memory.code, 'load')})}\
#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const ${cl} *A, long aoff, long sam, long sak, __global const ${cl} *X, long xoff, long sx, long sxn,
    __global ${cl} *C, long coff, long sc, long scn, __global const ${cl} *D, long doff, long sd, long sdn, int has_bias, ${acc} alpha, ${acc} beta,
    long M, long K, long BM, long batches, long inner, long a0, long a1, long b0, long b1, long c0, long c1, long d0, long d1) {
  __local ${acc} x[${depth}] __attribute__((aligned(64))), sums[${V * V}] __attribute__((aligned(64)));
  const long first = get_global_id(0) * BM, end = min(first + BM, M), full = K / ${V} * ${V};
  const int rest = (int)(K - full);
  const ${mask} own = (${mask})(${', '.join(map(str, range(V)))}) < (${mask})(rest);
  for (long z = get_global_id(1); z < batches; z += get_global_size(1)) {
    const long zo = z / inner, zi = z % inner;
    __global const ${cl} *Az = A + aoff + zo * a0 + zi * a1, *Xz = X + xoff + zo * b0 + zi * b1;
    __global ${cl} *c = C + coff + zo * c0 + zi * c1;
    __global const ${cl} *d = D + doff + zo * d0 + zi * d1;
    for (long k = 0; k < K; k++) x[k] = ${memory.scalar_load('Xz + k * sx')};
    for (long k = K; k < full + ${V}; k++) x[k] = 0;
    for (long i = first; i < end; i += ${V}) {
      for (int r = 0; r < ${V}; r++) {
        __global const ${cl} *row = Az + min(i + r, M - 1) * sam;
        ${reg} sum = 0;
        for (long k = 0; k < full; k += ${V}) sum = ${memory.vector_load('row + k')} * *(__local const ${reg} *)(x + k) + sum;
        if (rest) sum = (own ? load_${memory.code}(row + full, rest) : (${reg})(0)) * *(__local const ${reg} *)(x + full) + sum;
        *(__local ${reg} *)(sums + ${V} * r) = sum;
      }
% for r in range(V):
      const ${reg} s0_${r} = *(__local const ${reg} *)(sums + ${V * r});
% endfor
${lane_memory.joined(reg, V, 6)}\
      const ${reg} y = s${stages}_0 * alpha;
      if (i + ${V} <= end && sc == 1 && !has_bias) {
        ${memory.vector_store('c + i', 'y')};
      } else {
        ${acc} t[${V}];
        vstore${V}(y, 0, t);
        for (long k = i; k < min(i + ${V}, end); k++) {
          ${acc} one = t[k - i];
          if (has_bias) one += beta * ${memory.scalar_load('d + k * sd')};
          ${memory.scalar_store('c + k * sc', 'one')};
        }
      }
    }
  }
}

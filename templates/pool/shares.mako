<%doc>
The gradient of average pooling with overlapping windows, on a CPU: a work-item makes rows of the input's gradient,
${batch} at a time. For each it first adds up the windows that can hold the row, column by column, into a row of `sums`,
by vectors along the columns; then, along the row, the sums of the windows that hold each element. A batch of rows lies
between the two, because a vector just stored in parts cannot be read at once. Where the windows of a column have equal
shares, the share multiplies their sum. A row held by the same windows as the row before is a copy of that. Windows and
their sizes are those of pool.mako; `x` is the output's gradient. A row of sums is padded with zeros on both sides, for
windows beyond the first and last column.

stride     of windows along a row, if their sums are read by vectors, 1 or 2; 0: a table lists, for each part of a row,
           the windows that hold its elements.
flat: every output gradient is the same element, the first of x.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="windows" file="/pool/pool.mako"/>\
<%
V = f"{T}{L}" if L > 1 else T
load = memory.vector_load if L > 1 else memory.scalar_load
part, plain = 32 // dt.itemsize, {2: 'ushort', 4: 'uint', 8: 'ulong'}[dt.itemsize]  # what is copied at a time
def sent(at): return f"({V})({memory.scalar_load('x')})" if flat else load(at)
%>\
#pragma OPENCL FP_CONTRACT OFF
${headers}
${lane_memory.helpers(memories, L, ())}\
${windows.types()}\
typedef ${V} V;
typedef uint8 __attribute__((aligned(${dt.itemsize}))) clt_part;
typedef ${V} clt_sums __attribute__((aligned(${8 if T == 'double' else 4})));
## Run the body for each window (a0, a1) of a column that can contain the row.
<%def name="each_window()">\
for (I a0 = f0; a0 <= l0; ++a0) for (I a1 = f1; a1 <= l1; ++a1) {
          ${caller.body()}
        }
</%def>\
<%def name="rows_counted()">\
        ${windows.span(0, 'a0')}
        ${windows.span(1, 'a1')}
        const T rows = (T)${'(c0 * c1)' if geometry == 'regular' else '((e0 - b0) * (e1 - b1))'};
</%def>\
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global const ${dt.cl} *x, __global ${dt.cl} *y, __global T *sums\
% for name in names:
, const I ${name}\
% endfor
, const long work, const long x0, const long chunk, const long divide) {
  const long begin = get_global_id(0) * chunk, end = min(begin + chunk, work);
  const long osize = (long)o0 * o1 * o2;
  const I margin = ${'k2 - 1' if stride else '0'}, room = o2 + 2 * margin + ${L};
  __global T *own = sums + get_global_id(0) * (${batch} * room + o2${'' if stride else ' + 3 * i2'}) + margin;
  __global T *columns = own - margin + ${batch} * room;
% if not stride:
  __global int *held = (__global int *)(columns + o2); /* of parts of a row: where they end, and the first and last windows that hold their elements */
% endif
  for (I k = 0; k < ${batch} * room; ++k) own[k - margin] = 0;
  for (I c = 0; c < o2; ++c) {
    ${windows.span(2, 'c')}
    columns[c] = (T)${'c2' if geometry == 'regular' else '(e2 - b2)'};
  }
% if not stride:
  int parts = 0;
  for (I j = 0; j < i2; ++j) {
    ${windows.holders(2, 'j')}
    if (!parts || held[3 * parts - 2] != (int)f2 || held[3 * parts - 1] != (int)l2) {
      held[3 * parts + 1] = (int)f2;
      held[3 * parts + 2] = (int)l2;
      ++parts;
    }
    held[3 * parts - 3] = (int)j + 1;
  }
% endif
  I was_f0 = -1, was_l0 = -1, was_f1 = -1, was_l1 = -1; /* the first and last windows of the row before, along both dims */
  long plane = begin / ((long)i0 * i1);
  I g1 = (I)(begin % i1), g0 = (I)(begin / i1 % i0);
  x += x0;
  for (long start = begin; start < end; start += ${batch}) {
    const long stop = min(start + ${batch}, end);
    uint copied = 0;
    for (long row = start; row < stop; ++row) {
      ${windows.holders(0, 'g0')}
      ${windows.holders(1, 'g1')}
      const bool again = row > begin && f0 == was_f0 && l0 == was_l0 && f1 == was_f1 && l1 == was_l1;
      copied |= (uint)again << (row - start);
      was_f0 = f0; was_l0 = l0; was_f1 = f1; was_l1 = l1;
      __global const ${dt.cl} *g = x + plane * osize;
      __global T *u = own + (row - start) * room;
      T all = 0;
      int alike = 1;
      <%self:each_window>
${rows_counted()}\
        alike &= all == 0 || all == rows;
        all = rows;
      </%self:each_window>
      for (I c = again ? o2 : 0; c < o2; c += ${L}) {
% if L > 1:
        c = min(c, o2 - ${L});
% endif
        V total = (V)(0);
        if (alike || divide) {
          <%self:each_window>
            total += ${sent('g + (a0 * o1 + a1) * o2 + c')};
          </%self:each_window>
          total /= divide ? (V)((T)divide) : *(__global const clt_sums *)(columns + c) * (V)(all == 0 ? (T)1 : all);
        } else {
          <%self:each_window>
${rows_counted()}\
            total += ${sent('g + (a0 * o1 + a1) * o2 + c')} / (*(__global const clt_sums *)(columns + c) * (V)(rows));
          </%self:each_window>
        }
        *(__global clt_sums *)(u + c) = total;
      }
      if (++g1 == i1) {
        g1 = 0;
        if (++g0 == i0) { g0 = 0; ++plane; was_f0 = -1; }
      }
    }
    for (long row = start; row < stop; ++row) {
      __global const T *u = own + (row - start) * room;
      __global ${dt.cl} *to = y + row * i2;
      I j = 0;
      if (copied >> (row - start) & 1) {
        __global const ${dt.cl} *before = to - i2;
        for (; j + ${part} <= i2; j += ${part}) *(__global clt_part *)(to + j) = *(__global const clt_part *)(before + j);
        for (; j < i2; ++j) *(__global ${plain} *)(to + j) = *(__global const ${plain} *)(before + j);
        continue;
      }
% if stride:
      const I whole = i2 / ${stride};
      if (whole >= ${L}) {
        for (I m = 0; m < whole; m += ${L}) {
          m = min(m, whole - ${L});
% for r in range(stride):
          V v${r} = (V)(0);
          for (I t = ${'0' if stride == 1 else f'(p2 + {r}) % 2'}; t < k2; t += ${stride}) v${r} += *(__global const clt_sums *)(u + m + (p2 + ${r} - t) / ${stride});
% endfor
% if stride == 1:
          ${memory.vector_store('to + m', 'v0')};
% else:
          V run0, run1;
          run0.even = v0.lo; run0.odd = v1.lo;
          run1.even = v0.hi; run1.odd = v1.hi;
          ${memory.vector_store('to + 2 * m', 'run0')};
          ${memory.vector_store(f'to + 2 * m + {L}', 'run1')};
% endif
        }
        j = ${stride} * whole;
      }
% endif
% if stride:
      for (; j < i2; ++j) {
        ${windows.holders(2, 'j')}
        T v = 0;
        for (I a2 = f2; a2 <= l2; ++a2) v += u[a2];
        ${memory.scalar_store('to + j', 'v')};
      }
% else:
      for (int part = 0; part < parts; ++part) {
        const I until = held[3 * part];
        T v = 0;
        for (I a2 = held[3 * part + 1]; a2 <= held[3 * part + 2]; ++a2) v += u[a2];
% if L > 1:
        for (; j < until && j + ${L} <= i2; j += ${L}) ${memory.vector_store('to + j', f'({V})(v)')}; /* the excess is overwritten by later stores */
% endif
        for (; j < until; ++j) ${memory.scalar_store('to + j', 'v')};
        j = until;
      }
% endif
    }
  }
}

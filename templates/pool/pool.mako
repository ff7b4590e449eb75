<%doc>
Max and average pooling over up to three dims of planes, and their gradients. Dims and windows are always three
(leading ones of size 1); all sizes are arguments, so one kernel serves every window of its kind.

geometry   regular: window o starts at o * s - p and has k positions, w apart; adaptive: the dim in o equal parts;
           fractional: steps from a number drawn per plane (Graham, arXiv 1412.6071).
last       channels last: the channels of each place are adjacent, and vectors run over the channels. Forward only.
rows       channels last, and windows overlap: work-items go along rows of elements (pool/rows.mako).
one        the only window is the whole plane: vectors run along it, the last one moved back to its end. Max only.
CPU        forward: a work-item per run of output rows. Columns [lo, hi) have whole windows and are computed by vectors,
           the last vector moved back to end at hi; the others one by one. Backward: a work-item per run of planes
           accumulates in its own memory; where windows do not overlap (`apart`) nothing is accumulated, and runs of
           columns are written by vectors, by non-temporal stores if `streamed`. Max does so if each recorded position
           lies in its window. Large gradients are computed plane by plane in memory that stays in cache (`aside`) and
           copied from there by non-temporal stores; for windows that do not overlap, one part is copied while the next
           is computed, so that memory is always busy.
run        the number of columns of such windows, if these are few: averages then add up whole rows of elements, and the
           columns of the sums last. The elements are prefetched, because reading a row pauses while its windows are
           computed. For max, the number of columns of any windows; rows with a NaN are then computed one by one
           (pool/few.mako).
W          the type of positions. flat: every output gradient is the same element, the first of x.
GPU        a lane per element of a plane, which walks over the planes, so that the element's coordinates are computed
           once. Backward, the lane walks the windows that can hold its element. There are no atomics: results are
           deterministic.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="few" file="/pool/few.mako"/>\
<%namespace name="rowed" file="/pool/rows.mako"/>\
<%
V = f"{T}{L}" if L > 1 else T
IV = f"int{L}"
ids = f"({IV})({', '.join(map(str, range(L)))})"
back = action.endswith('back')
best = action.startswith('max')
wide_where = 'u_i32' if W == 'int' else 'u_i64'
LINE, AHEAD = 64, 4096  # bytes: a cache line, and the prefetch distance where windows meet each element once
STRIP = 32  # rows of windows computed one after the other for a vector of columns, where they share input, which then stays in a cache
DEEP = 4  # rows of windows through volumes that are made together, for they are met once for each plane of a window
made = f'(long)(k0 == 1 ? a0 * i1 + a1 * k1 : a0 * k0 * i1) * i2'  # elements whose windows have been met
def positions(at): return at if W == 'int' else f'convert_long{L}({at})'
def mask(condition): return f'({condition})' if M == 'int' else f'convert_{M}{L}({condition})'
def sent(at): return 'alike' if flat else memory.scalar_load(at)
def sent_vector(at): return f"({V})(alike)" if flat else memory.vector_load(at)
def element(here): return f'(long)({here}) * channels + ch' if last else here
%>\
#pragma OPENCL FP_CONTRACT OFF
${headers}
${lane_memory.helpers(memories, L, ())}\
${types()}\
% if apart and dt.cl == dt.reg:
typedef ${T}4 __attribute__((aligned(${dt.itemsize}))) four_u;
% endif
<%def name="types()">\
typedef ${I} I;
typedef ${T} T;
</%def>\
## Declare the input positions of window ${o} along dim d, [b, e), and c, the number of positions that a mean divides
## by.
<%def name="span(d, o)">\
% if geometry == 'adaptive':
const I b${d} = (I)((long)${o} * i${d} / o${d}), e${d} = (I)(((long)(${o} + 1) * i${d} + o${d} - 1) / o${d});
% elif geometry == 'fractional':
const I b${d} = ${o} == o${d} - 1 ? i${d} - k${d} : (I)((${o} + u${d}) * each${d}) - (I)(u${d} * each${d}), e${d} = b${d} + max(k${d}, (I)0);
% elif best:
I b${d} = ${o} * s${d} - p${d};
const I e${d} = min(b${d} + (k${d} - 1) * w${d} + 1, i${d});
b${d} += b${d} < 0 ? (-b${d} + w${d} - 1) / w${d} * w${d} : 0;
% else:
const I from${d} = ${o} * s${d} - p${d}, to${d} = from${d} + k${d}, b${d} = max(from${d}, (I)0), e${d} = min(to${d}, i${d});
const I c${d} = max(min(to${d}, i${d} + q${d}) - max(from${d}, -q${d}), (I)0);
% endif
</%def>\
## Declare the windows that can contain input position ${i} along dim d: f to l, both included.
<%def name="holders(d, i)">\
% if geometry == 'adaptive':
const I f${d} = (I)((long)${i} * o${d} / i${d}), l${d} = (I)(((long)(${i} + 1) * o${d} + i${d} - 1) / i${d}) - 1;
% else:
const I h${d} = ${i} + p${d} - ${f'(k{d} - 1) * w{d}' if best else f'(k{d} - 1)'};
const I f${d} = h${d} > 0 ? (h${d} + s${d} - 1) / s${d} : 0, l${d} = min((${i} + p${d}) / s${d}, o${d} - 1);
% endif
</%def>\
<%def name="step(d)">${f'j{d} += w{d}' if best and geometry == 'regular' else f'++j{d}'}</%def>\
<%def name="divisor()">\
<% count = '*'.join(f'c{d}' if geometry == 'regular' else f'(e{d} - b{d})' for d in range(3)) %>\
${f'(T)(divide ? divide : (long)({count}))' if geometry == 'regular' else f'(T)({count})'}\
</%def>\
<%def name="drawn()">\
% if geometry == 'fractional':
% for d in range(3):
% if d >= 3 - rank:
<% at = {2: 2 - d, 3: d}[rank] %>\
      const T u${d} = ${memory.scalar_load(f'samples + plane * {rank} + {at}')}, each${d} = o${d} > 1 ? (T)(i${d} - k${d}) / (T)(o${d} - 1) : (T)0;
% else:
      const T u${d} = 0, each${d} = 0;
% endif
% endfor
% endif
</%def>\
## Compute output column c, element by element, in the row of windows that b0, e0, b1, e1 bound.
<%def name="single(c, target)">\
        {
          ${span(2, c)}
% if best:
          T top = ${lowest};
          I at = (b0 * i1 + b1) * i2 + b2;
          for (I j0 = b0; j0 < e0; ${step(0)}) for (I j1 = b1; j1 < e1; ${step(1)}) for (I j2 = b2; j2 < e2; ${step(2)}) {
            const I here = (j0 * i1 + j1) * i2 + j2;
            const T v = ${memory.scalar_load(f'x + {element("here")}')};
            if (v > top || v != v) { top = v; at = here; }
          }
          ${memory.scalar_store(f'y + {target}', 'top')};
% if indices:
          where[${target}] = at;
% endif
% else:
          T total = 0;
          for (I j0 = b0; j0 < e0; ++j0) for (I j1 = b1; j1 < e1; ++j1) for (I j2 = b2; j2 < e2; ++j2)
            total += ${memory.scalar_load(f'x + {element("(j0 * i1 + j1) * i2 + j2")}')};
          const T by = b0 < e0 && b1 < e1 && b2 < e2 ? ${divisor()} : (T)1;
          ${memory.scalar_store(f'y + {target}', 'total / by')};
% endif
        }
</%def>\
<%def name="vector()">\
        {
          const I first = c * s2 - p2;
% if best:
          ${V} top = (${V})(${lowest});
          ${IV} at = (int)((b0 * i1 + b1) * i2 + first) + ${ids} * (int)s2;
% else:
% for k in range(run or 1):
          ${V} total${k if run else ''} = (${V})(0);
% endfor
% endif
          for (I j0 = b0; j0 < e0; ${step(0)}) for (I j1 = b1; j1 < e1; ${step(1)}) {
            I here = (j0 * i1 + j1) * i2 + first;
% if run and not best:
% for k in range(run):
            CLT_PREFETCH(x + here + ${k * L + AHEAD // dt.itemsize});
            total${k} += ${memory.vector_load(f'x + here + {k * L}')};
% endfor
          }
          const ${V} total = ${' + '.join(f"(({V})({', '.join(f'total{(j * run + k) // L}.s{(j * run + k) % L:x}' for j in range(L))}))" for k in range(run))};
% else:
            for (I t = 0; t < k2; ++t) {
              const ${V} v = ${few.strided('x + here')};
% if best:
              const ${M}${L} better = (v > top) | (v != v);
              top = better ? v : top;
% if indices:
              at = ${'better' if M == 'int' else f'convert_int{L}(better)'} ? (int)here + ${ids} * (int)s2 : at;
% endif
              here += w2;
% else:
              total += v;
              ++here;
% endif
            }
          }
% endif
% if best:
          ${memory.vector_store('y + o + c', 'top')};
% if indices:
          *(__global ${wide_where} *)(where + o + c) = ${positions('at')};
% endif
% else:
          const T by = e0 > b0 && e1 > b1 ? (T)(divide ? divide : (long)(c0 * c1 * k2)) : (T)1;
          ${memory.vector_store('y + o + c', f'total / ({V})(by)')};
% endif
        }
</%def>\
## Keep in `a`, lane by lane, the better of two partial maxima: the larger, the first of equal ones, or the last nan.
<%def name="better(a, b, n)">\
<%
C = f'int{n}' if n > 1 else 'int'
def lanes_of(condition): return f'convert_int{n}({condition})' if n > 1 and M != 'int' else f'({condition})'
yes = '-1' if n > 1 else '1'
%>\
          {
            const ${C} nan_a = ${lanes_of(f'{a} != {a}')}, nan_b = ${lanes_of(f'{b} != {b}')};
            const ${C} wins = (nan_b & ((nan_a ^ ${yes}) | (${b}_at > ${a}_at)))
              | ((nan_a ^ ${yes}) & (${lanes_of(f'{b} > {a}')} | (${lanes_of(f'{b} == {a}')} & (${b}_at < ${a}_at))));
            ${a} = ${f'wins' if M == 'int' or n == 1 else f'convert_{M}{n}(wins)'} ? ${b} : ${a};
            ${a}_at = wins ? ${b}_at : ${a}_at;
          }
</%def>\
## Compute the largest of the n elements of the plane at x.
<%def name="largest_of_plane()">\
          ${V} top${L} = ${memory.vector_load('x')}, more = ${memory.vector_load(f'x + min({L}, n - {L})')};
          ${IV} top${L}_at = ${ids}, more_at = ${ids} + min(${L}, n - ${L});
          for (int j = ${2 * L}; j < n; j += ${2 * L}) {
% for name, first in (('top' + str(L), 'min(j, n - ' + str(L) + ')'), ('more', f'min(j + {L}, n - {L})')):
            {
              const int at = ${first};
              const ${V} v = ${memory.vector_load('x + at')};
              const ${M}${L} larger = (v > ${name}) | (v != v);
              ${name} = larger ? v : ${name};
              ${name}_at = ${'larger' if M == 'int' else f'convert_int{L}(larger)'} ? at + ${ids} : ${name}_at;
            }
% endfor
          }
${better(f'top{L}', 'more', L)}\
<% n = L %>\
% while n > 1:
<% half = n // 2; h = str(half) if half > 1 else '' %>\
          ${T}${h} top${half} = top${n}.lo, high${half} = top${n}.hi;
          int${h} top${half}_at = top${n}_at.lo, high${half}_at = top${n}_at.hi;
${better(f'top{half}', f'high{half}', half)}\
<% n = half %>\
% endwhile
          ${memory.scalar_store('y + row', 'top1')};
% if indices:
          where[row] = top1_at;
% endif
</%def>\
## Compute channels ch and on of the output element at ${target}, whose window is [b0, e0) x [b1, e1) x [b2, e2).
<%def name="across(target)">\
<%
load, store = (memory.vector_load, memory.vector_store) if L > 1 else (memory.scalar_load, memory.scalar_store)
at_type = IV if L > 1 else 'I'
%>\
% if best:
          ${V} top = (${V})(${lowest});
          ${at_type} at = (${at_type})((b0 * i1 + b1) * i2 + b2);
% else:
          ${V} total = (${V})(0);
% endif
          for (I j0 = b0; j0 < e0; ${step(0)}) for (I j1 = b1; j1 < e1; ${step(1)}) for (I j2 = b2; j2 < e2; ${step(2)}) {
            const I here = (j0 * i1 + j1) * i2 + j2;
            const ${V} v = ${load(f'x + {element("here")}')};
% if best:
            const ${f'{M}{L}' if L > 1 else 'int'} better = (v > top) | (v != v);
            top = better ? v : top;
% if indices:
            at = ${f'convert_int{L}(better)' if L > 1 and M != 'int' else 'better'} ? (${at_type})(here) : at;
% endif
% else:
            total += v;
% endif
          }
% if best:
          ${store(f'y + {target} + ch', 'top')};
% if indices and L > 1:
          *(__global ${wide_where} *)(where + ${target} + ch) = ${positions('at')};
% elif indices:
          where[${target} + ch] = at;
% endif
% else:
          const T by = b0 < e0 && b1 < e1 && b2 < e2 ? ${divisor()} : (T)1;
          ${store(f'y + {target} + ch', f'total / ({V})(by)')};
% endif
</%def>\
## Write the result's cache lines that end at or before element `end` of the plane, with non-temporal stores.
<%def name="write_until(end)">\
      for (const long end = ${end}; written + ${LINE // dt.itemsize} <= end; written += ${LINE // dt.itemsize})
        CLT_STREAM(*(__global const uint16 *)(r + written), (__global uint16 *)(out + written));
</%def>\
<%def name="run_stores()">\
% for k in range(run):
% if streamed:
CLT_STREAM(run${k}, (__global ${V} *)(to + ${k * L})); \
% else:
${memory.vector_store(f'to + {k * L}', f'run{k}')}; \
% endif
% endfor
</%def>\
% if not gpu:
__attribute__((reqd_work_group_size(1, 1, 1)))
% endif
__kernel void ${fn}(__global const ${dt.cl} *x, __global ${dt.cl} *y\
% if action == 'max_back' or indices:
, __global ${'const ' if back else ''}${W} *where\
% endif
% if geometry == 'fractional':
, __global const ${dt.cl} *samples\
% endif
% if aside:
, __global ${dt.cl} *aside\
% endif
% for name in names:
, const I ${name}\
% endfor
, const long work, const long x0, const long chunk\
% if action == 'max_back':
, const long at0\
% endif
% if geometry == 'fractional':
, const long samples0\
% endif
% if not best:
, const long divide\
% endif
) {
  x += x0;
% if flat:
  const T alike = ${memory.scalar_load('x')};
% endif
<% each = ' * channels' if last else '' %>\
  const long isize = (long)i0 * i1 * i2${each}, osize = (long)o0 * o1 * o2${each};
% if geometry == 'fractional':
  samples += samples0;
% endif
% if action == 'max_back':
  where += at0;
% endif
% if not back and gpu:
  __global const ${dt.cl} *all = x;
  const I inside = (I)get_global_id(0);
  if (inside >= (I)osize) return;
% if last:
  const I ch = inside % (I)channels, rest = inside / (I)channels;
% else:
  const I rest = inside;
% endif
  const I a2 = rest % o2, above = rest / o2, a1 = o0 == 1 ? above : above % o1, a0 = o0 == 1 ? 0 : above / o1;
% if geometry != 'fractional':
  ${span(0, 'a0')}
  ${span(1, 'a1')}
% endif
  for (long plane = get_global_id(1); plane < work; plane += get_global_size(1)) {
      const long o = plane * osize + inside;
      x = all + plane * isize;
${drawn()}\
% if geometry == 'fractional':
      ${span(0, 'a0')}
      ${span(1, 'a1')}
% endif
${single('a2', 'o')}\
  }
% elif one:
  const long begin = get_global_id(0) * chunk, end = min(begin + chunk, work);
  const int n = (int)isize;
  x += begin * isize;
  for (long row = begin; row < end; ++row, x += isize) {
${largest_of_plane()}\
  }
% elif not back:
  const long begin = get_global_id(0) * chunk, end = min(begin + chunk, work);
  long plane = begin / ((long)o0 * o1);
  I a1 = (I)(begin % o1), a0 = (I)(begin / o1 % o0);
  x += plane * isize;
% if strips:
  for (long row = begin, rows; row < end; row += rows) {
      const long o = row * o2;
      rows = min(min(end - row, (long)(o1 - a1)), ${STRIP}L);
      ${span(0, 'a0')}
      ${IV} nan = 0;
      I c = lo, alone = lo;
      if (p2 == 1 && hi >= ${L}) {
        c = 0;
${few.strip(edge=True)}\
        c = ${L};
        alone = 0;
      }
      for (; c < hi; c += ${L}) {
        c = min(c, hi - ${L});
${few.strip()}\
      }
      if (CLT_ANY_${IV}(nan)) alone = o2;
      for (I k = 0; k < rows; ++k) {
        ${span(1, '(a1 + k)')}
        for (c = 0; c < alone; ++c)
${single('c', 'o + k * o2 + c')}\
        for (c = max(hi, alone); c < o2; ++c)
${single('c', 'o + k * o2 + c')}\
      }
      a1 += (I)rows;
      if (a1 == o1) {
        a1 = 0;
        if (++a0 == o0) { a0 = 0; ++plane; x += isize; }
      }
  }
% elif rows:
  for (long row = begin, rows; row < end; row += rows) {
      rows = min(min(end - row, (long)(o1 - a1)), k0 > 1 ? ${DEEP}L : LONG_MAX);
${rowed.strip(span, across)}\
      a1 += (I)rows;
      if (a1 == o1) {
        a1 = 0;
        if (++a0 == o0) { a0 = 0; ++plane; x += isize; }
      }
  }
% else:
  for (long row = begin; row < end; ++row) {
      const long o = row * o2;
${drawn()}\
      ${span(0, 'a0')}
      ${span(1, 'a1')}
% if last:
      for (I c = 0; c < o2; ++c) {
        ${span(2, 'c')}
        for (I ch = 0; ch < channels; ch += ${L}) {
          ch = min(ch, channels - ${L});
${across('(o + c) * channels')}\
        }
      }
% elif L > 1 and best and run:
      I c = lo, alone = lo;
      ${IV} nan = 0;
% if stride == 2 and run == 3:
      if (p2 == 1 && hi >= ${L}) {
        c = 0;
${few.vector(edge=True)}\
        c = ${L};
        alone = 0;
      }
% endif
      for (; c < hi; c += ${L}) {
        c = min(c, hi - ${L});
${few.vector()}\
      }
      if (CLT_ANY_${IV}(nan)) alone = o2;
      for (c = 0; c < alone; ++c)
${single('c', 'o + c')}\
      for (c = max(hi, alone); c < o2; ++c)
${single('c', 'o + c')}\
% elif L > 1:
      for (I c = 0; c < lo; ++c)
${single('c', 'o + c')}\
      for (I c = lo; c < hi; c += ${L}) {
        c = min(c, hi - ${L});
${vector()}\
      }
      for (I c = hi; c < o2; ++c)
${single('c', 'o + c')}\
% else:
      for (I c = 0; c < o2; ++c)
${single('c', 'o + c')}\
% endif
      if (++a1 == o1) {
        a1 = 0;
        if (++a0 == o0) { a0 = 0; ++plane; x += isize; }
      }
  }
% endif
% elif gpu:
  const I here = (I)get_global_id(0);
  if (here >= (I)isize) return;
  const I g2 = here % i2, above = here / i2, g1 = i0 == 1 ? above : above % i1, g0 = i0 == 1 ? 0 : above / i1;
  ${holders(0, 'g0')}
  ${holders(1, 'g1')}
  ${holders(2, 'g2')}
  for (long plane = get_global_id(1); plane < work; plane += get_global_size(1)) {
      __global const ${dt.cl} *g = x + plane * osize;
% if best:
      __global const ${W} *at = where + plane * osize;
% endif
      T total = 0;
      for (I a0 = f0; a0 <= l0; ++a0) for (I a1 = f1; a1 <= l1; ++a1) for (I a2 = f2; a2 <= l2; ++a2) {
        const I o = (a0 * o1 + a1) * o2 + a2;
% if best:
        if (at[o] == here) total += ${sent('g + o')};
% else:
        ${span(0, 'a0')}
        ${span(1, 'a1')}
        ${span(2, 'a2')}
        const T by = ${divisor()};
        total += ${sent('g + o')} / by;
% endif
      }
      ${memory.scalar_store('y + plane * isize + here', 'total')};
  }
% else:
  const long begin = get_global_id(0) * chunk, end = min(begin + chunk, work);
  for (long plane = begin; plane < end; ++plane) {
      __global const ${dt.cl} *g = x + plane * osize;
% if aside:
      __global ${dt.cl} *const out = y + plane * isize;
      __global ${dt.cl} *r = aside + get_global_id(0) * ((isize + ${(page + 2 * LINE) // dt.itemsize}) / ${LINE // dt.itemsize} * ${LINE // dt.itemsize});
      r += ((size_t)out - (size_t)r) % ${page} / ${dt.itemsize};
      const long lines = min(isize, (long)(-(size_t)out % ${LINE}) / ${dt.itemsize});
      long written = lines;
% else:
      __global ${dt.cl} *r = y + plane * isize;
% endif
% if apart:
      if (o0 * k0 < i0 || o1 * k1 < i1 || o2 * k2 < i2)
% endif
% if best and L > 1:
      for (long i = 0; i < isize; i += ${L}) { const long to = i < isize - ${L} ? i : isize - ${L}; ${memory.vector_store('r + to', f'({V})(0)')}; }
% else:
      for (long i = 0; i < isize; ++i) ((__global ${'ushort' if dt.cl == 'half' else dt.cl} *)r)[i] = 0;
% endif
% if best and apart:
      __global const int *at = where + plane * osize;
      for (I a0 = 0; a0 < o0; ++a0) for (I a1 = 0; a1 < o1; ++a1) {
% if aside:
${write_until(made)}\
% endif
       for (I c = 0; c < o2; c += ${L}) {
        c = min(c, o2 - ${L});
        const I o = (a0 * o1 + a1) * o2 + c;
        const ${V} v = ${sent_vector('g + o')} + (${V})(0);
        const ${IV} from = *(__global const u_i32 *)(at + o);
        for (I j0 = a0 * k0; j0 < (a0 + 1) * k0; ++j0) for (I j1 = a1 * k1; j1 < (a1 + 1) * k1; ++j1) {
          const I here = (j0 * i1 + j1) * i2 + 2 * c;
          const ${IV} ids = ${ids} * 2 + (${IV})(here);
          const ${V} left = ${mask('from == ids')} ? v : (${V})(0), right = ${mask('from == ids + 1')} ? v : (${V})(0);
          ${V} run0, run1;
          run0.even = left.lo; run0.odd = right.lo;
          run1.even = left.hi; run1.odd = right.hi;
          __global ${dt.cl} *to = r + here;
          ${run_stores()}
        }
       }
      }
% elif best:
      __global const ${W} *at = where + plane * osize;
      for (long o = 0; o < osize; ++o) {
        const long to = at[o];
        if (to >= 0 && to < isize) ${memory.scalar_store('r + to', memory.scalar_load('r + to') + ' + ' + sent('g + o'))};
      }
% else:
      for (I a0 = 0; a0 < o0; ++a0) for (I a1 = 0; a1 < o1; ++a1) {
% if aside:
${write_until(made)}\
% endif
        ${span(0, 'a0')}
        ${span(1, 'a1')}
        I c = 0;
% if L > 1:
        const T each = (T)(divide ? divide : (long)(c0 * c1 * k2));
        for (const I whole = i2 / ${run}; c < whole; c += ${L}) {
          c = min(c, whole - ${L});
          const ${V} v = ${sent_vector('g + (a0 * o1 + a1) * o2 + c')} / (${V})(each) + (${V})(0);
% for k in range(run):
          const ${V} run${k} = v.s${''.join(f'{(k * L + j) // run:x}' for j in range(L))};
% endfor
          for (I j0 = b0; j0 < e0; ++j0) for (I j1 = b1; j1 < e1; ++j1) {
            __global ${dt.cl} *to = r + (j0 * i1 + j1) * i2 + ${run} * c;
            ${run_stores()}
          }
        }
% endif
        for (; c < o2; ++c) {
          ${span(2, 'c')}
          const T by = ${divisor()}, v = ${sent('g + (a0 * o1 + a1) * o2 + c')} / by + (T)0;
          for (I j0 = b0; j0 < e0; ++j0) for (I j1 = b1; j1 < e1; ++j1) {
            __global ${dt.cl} *to = r + (j0 * i1 + j1) * i2;
            I j2 = b2;
% if dt.cl == dt.reg:
            for (; j2 + 4 <= e2; j2 += 4) *(__global four_u *)(to + j2) = (${T}4)(v);
% endif
            for (; j2 < e2; ++j2) ${memory.scalar_store('to + j2', 'v')};
          }
        }
      }
% endif
% if aside:
${write_until('isize')}\
      for (long i = 0; i < lines; ++i) out[i] = r[i];
      for (; written < isize; ++written) out[written] = r[written];
% endif
  }
% endif
}

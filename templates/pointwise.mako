<%doc>
One fused chain over n elements.
CPU: a work-item runs over one contiguous chunk, ${lanes} lanes at a time; where layouts differ, over rows of the inner
dimension. The last, partial vector of a chunk or row is handled outside the loop, which is then free of calls and
conditions and keeps its constants in registers. So are the elements before the first aligned vector of a row, where
stores are non-temporal: these need aligned vectors.
Rows that are `narrow` are taken many at a time, and each operand is put into the order of the result: the vectors of an
operand that is the same for all rows are loop constants, and one number per row is swizzled by a constant pattern.
`ahead`: operands are prefetched, as the hardware prefetcher does not look beyond a page; not where several operands
keep memory busy.
Random words are drawn ahead, for many vectors at once (codegen/drawn.py).
Vectors of bytes and 16-bit integers are short: several are read before the first is written (`unrolled`).
GPU: a work-item is a lane; consecutive work-items touch consecutive elements. If the chain is short, a lane reads
several elements (`at_once`) before it computes and writes the first; a lane makes random numbers for adjacent elements
(`beside`), which share a block of words.
Access order is the row-major order of the result, which for dense operands is the order of memory.

Names in the kernel's text, for operand or result number k:
  p<k>, o<k>, s<k>_<d>   an operand: its memory, offset, stride along dim d     q<k>, f<k>, z<k>_<d>   a result: the same
  b<k>, c<k>             an operand's, a result's first element in the current row
  a<k>, k<k>, t<k>       registers: element of operand k, Python number k, value of node k (Body in codegen/pointwise.py)
  n, n<d>, x<d>          elements in all, size of dim d, index along outer dim d
  i, j, m                index of an element, its column in the row, elements that count in a vector
</%doc>\
<%!
from cltensor.codegen.language import lanes_of
from cltensor.codegen.pointwise import plain, rows_at_a_time
# Prefetch distances in bytes: of a dense operand, and along rows, where the end of a row is followed by the next one.
DENSE, ROWS = 8192, 4096
%>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%
strided = program.rank > 0
L = lanes
def streams(dt, cls): return program.streamed and L > 1 and cls == 'd'
needed = {(dt.code, 'gather' if cls in 'gG' else 'load') for dt, cls in program.leaves if cls in 'dvgDVG'}
needed |= {(dt.code, 'scatter' if cls == 'g' else 'store') for _, dt, cls in program.outputs}
needed |= {(dt.code, helper) for dt, cls in program.leaves if program.narrow and cls == 's' for helper in ('load', 'gather')}
needed |= {(dt.code, 'stream') for _, dt, cls in program.outputs if streams(dt, cls)}
def reg(dt): return lanes_of(dt.reg, L)
%>\
#pragma OPENCL FP_CONTRACT OFF
${headers}
${lane_memory.helpers(memories, L, needed)}\
<%
across, along = program.rank - 2, program.rank - 1 # the dims along which rows, and elements of a row follow each other
def strides(prefix, cls):
    return ''.join(f', const long {prefix}{d}' for d in range(stride_count(cls, program.rank)))
def outer(prefix, cls):
    return ''.join(f' + x{d} * {prefix}{d}' for d in range(program.rank - 1)) if plain(cls) in 'vsg' else ''
# `pos`: the index of the element, and its column in the row, as C expressions.
def load(k, dt, cls, pos):
    mem, cls = memories[dt.code], plain(cls)
    if L == 1:
        at = {'d': f'p{k} + o{k} + {pos[0]}', 'c': f'p{k} + o{k}', 'v': f'b{k} + {pos[1]}', 's': f'b{k}', 'g': f'b{k} + {pos[1]} * s{k}_{along}'}[cls]
        return mem.scalar_load(at)
    if cls in 'cs':
        return mem.spread(mem.scalar_load(f'p{k} + o{k}' if cls == 'c' else f'b{k}'))
    if cls == 'g':
        return f'gather_{dt.code}(b{k} + {pos[1]} * s{k}_{along}, s{k}_{along}, m)'
    at = f'p{k} + o{k} + {pos[0]}' if cls == 'd' else f'b{k} + {pos[1]}'
    return f'load_{dt.code}({at}, m)'
ahead = program.ahead and L > 1
def ask(k, dt, cls):
    if cls == 'd': return f'CLT_PREFETCH(p{k} + o{k} + i + {DENSE // dt.itemsize})'
    far = ROWS // dt.itemsize
    onward = f's{k}_{across} - n{along}' if across >= 0 else '0' # from the end of a row to the next row
    return f'CLT_PREFETCH(b{k} + j + {far} + (j + {far} < n{along} ? 0 : {onward}))'
# Narrow rows: K of them, of W elements each, fill T vectors; places(t) is the (row, column) of each lane of vector t.
W = program.narrow
K, T = rows_at_a_time(W, L) if W else (0, 0)
def places(t): return [divmod(t * L + lane, W) for lane in range(L)]
def swizzled(t): return '.s' + ''.join(f'{row:x}' for row, _ in places(t))
def narrow_load(k, dt, cls, t):
    mem = memories[dt.code]
    if cls == 'd': return f'load_{dt.code}(p{k} + o{k} + i, m)'
    if cls == 'D': return f'load_{dt.code}(b{k} + q * {W} + {t * L}, m)'
    if cls == 'c': return mem.spread(mem.scalar_load(f'p{k} + o{k}'))
    if cls == 's': return f'row{k}{swizzled(t)}'
    if cls in 'VG': return f'still{k}_{t}'
    return mem.gathered([f'b{k} + (q + {row}) * s{k}_{across} + {col}' + (f' * s{k}_{along}' if cls == 'g' else '') for row, col in places(t)])
def still_load(k, dt, cls, t):
    mem = memories[dt.code]
    return mem.gathered([f'b{k} + {col}' + (f' * s{k}_{along}' if cls == 'G' else '') for _, col in places(t)])
def narrow_store(k, dt, cls, value, t):
    mem = memories[dt.code]
    if cls == 'd': return f'{"stream" if streams(dt, cls) else "store"}_{dt.code}(q{k} + f{k} + i, {value}, m)'
    if cls == 'D': return f'store_{dt.code}(c{k} + q * {W} + {t * L}, {value}, m)'
    at = [f'c{k} + (q + {row}) * z{k}_{across} + {col}' + (f' * z{k}_{along}' if cls == 'g' else '') for row, col in places(t)]
    return mem.scattered(at, f'w{k}', value)
def place(k, cls, pos):
    return {'d': f'q{k} + f{k} + {pos[0]}', 'v': f'c{k} + {pos[1]}', 'g': f'c{k} + {pos[1]} * z{k}_{along}', 'c': f'q{k} + f{k}', 's': f'c{k}'}[plain(cls)]
def store(k, dt, cls, value, pos, aligned=True):
    mem, cls = memories[dt.code], plain(cls)
    if L == 1: return mem.scalar_store(place(k, cls, pos), value)
    if cls == 'd': return f'{"stream" if aligned and streams(dt, cls) else "store"}_{dt.code}(q{k} + f{k} + {pos[0]}, {value}, m)'
    if cls == 'v': return f'store_{dt.code}(c{k} + {pos[1]}, {value}, m)'
    if cls == 'g': return f'scatter_{dt.code}(c{k} + {pos[1]} * z{k}_{along}, z{k}_{along}, {value}, m)'
    return f'store_{dt.code}(q{k} + f{k}, {value}, 1)' if cls == 'c' else f'store_{dt.code}(c{k}, {value}, 1)'
%>\
% if not gpu:
__attribute__((reqd_work_group_size(1, 1, 1)))
% elif at_once > 1:
__attribute__((reqd_work_group_size(${group}, 1, 1)))
% endif
__kernel void ${name}(const long n, const long chunk\
% if strided:
${''.join(f', const long n{d}' for d in range(program.rank))}\
% endif
% for k, (dt, cls) in enumerate(program.leaves):
, __global const ${dt.cl} *p${k}, const long o${k}${strides(f's{k}_', cls)}\
% endfor
% for k, dt in enumerate(program.scalars):
% if dt.is_complex:
, const ${dt.reg[:-1]} k${k}_re, const ${dt.reg[:-1]} k${k}_im\
% else:
, const ${dt.reg} k${k}_\
% endif
% endfor
% for k, (ref, dt, cls) in enumerate(program.outputs):
, __global ${dt.cl} *q${k}, const long f${k}${strides(f'z{k}_', cls)}\
% endfor
) {
% for k, dt in enumerate(program.scalars):
% if dt.is_complex:
  const ${reg(dt)} k${k} = ${f"spread_{reg(dt)}" if L > 1 else ""}((${dt.reg})(k${k}_re, k${k}_im));
% else:
  const ${reg(dt)} k${k} = (${reg(dt)})(k${k}_);
% endif
% endfor
% if drawn:
  long first = 0, last = 0;
% for draw in drawn:
  ${draw.array}
% endfor
% endif
## The statements of the chain, from elements a<k> to the values of `stores`.
<%def name="chain(indent)">\
% for line in body:
${' ' * indent}${line}
% endfor
</%def>\
## Let a<k> be the elements of number u of those that were loaded together.
<%def name="taken(u, indent)">\
% for k, (dt, cls) in enumerate(program.leaves):
${' ' * indent}const ${reg(dt)} a${k} = a${k}_${u};
% endfor
</%def>\
## Declare r<k>_<u> for the results of `count` elements that are stored together, and set those of number u.
<%def name="results(count)">\
% for k, dt, cls, value in stores:
    ${reg(dt)} ${', '.join(f'r{k}_{u}' for u in range(count))};
% endfor
</%def>\
<%def name="result(u)">\
% for k, dt, cls, value in stores:
      r${k}_${u} = ${value};
% endfor
</%def>\
## Draw random words ahead if those for the vector at i are not there yet; `at` is where they are.
<%def name="words()">\
      if (i + ${L} > last) {
        first = i & ~3L, last = first + CLT_DRAWN;
% for draw in drawn:
        ${draw.fill}
% endfor
      }
      const long at = i - first;
</%def>\
## Compute one vector; `aligned`: non-temporal stores are allowed.
<%def name="element(pos, aligned=True)">\
% if drawn:
${words()}\
% endif
% for k, (dt, cls) in enumerate(program.leaves):
% if ahead and cls in 'dv':
      ${ask(k, dt, cls)};
% endif
      const ${reg(dt)} a${k} = ${load(k, dt, cls, pos)};
% endfor
${chain(6)}\
% for k, dt, cls, value in stores:
      ${store(k, dt, cls, value, pos, aligned)};
% endfor
</%def>\
## Compute `count` vectors of dense operands, `step` apart, from i on; all loads precede the first store, so that none
## has to wait for it.
<%def name="several(count, step)">\
% for u in range(count):
% for k, (dt, cls) in enumerate(program.leaves):
    const ${reg(dt)} a${k}_${u} = ${load(k, dt, cls, (f'i + {u * step}', ''))};
% endfor
% endfor
${results(count)}\
% for u in range(count):
    {
${taken(u, 6)}\
${chain(6)}\
${result(u)}\
    }
% endfor
% for u in range(count):
% for k, dt, cls, value in stores:
    ${store(k, dt, cls, f'r{k}_{u}', (f'i + {u * step}', ''))};
% endfor
% endfor
</%def>\
## The same for strided operands whose indices fit 32 bits. Divides by sizes with a multiplication: the quotient is
## mul_hi(r, factor) or one more.
<%def name="spread(count, step)">\
% for u in range(count):
% for k, (dt, cls) in enumerate(program.leaves):
      ${dt.reg} a${k}_${u};
% endfor
% for k, (ref, dt, cls) in enumerate(program.outputs):
      __global ${dt.cl} *at${k}_${u};
% endfor
      {
        const uint i = first + ${u * step};
% if program.rank > 1:
        uint r = i;
% for d in range(along, 0, -1):
        uint y${d} = mul_hi(r, factor${d}), x${d} = r - y${d} * w${d};
        if (x${d} >= w${d}) { ++y${d}; x${d} -= w${d}; }
        r = y${d};
% endfor
        const uint x0 = r;
% endif
        const uint j = ${f'x{along}' if program.rank > 1 else 'i'};
${bases()}\
% for k, (dt, cls) in enumerate(program.leaves):
        a${k}_${u} = ${load(k, dt, cls, ('i', 'j'))};
% endfor
% for k, (ref, dt, cls) in enumerate(program.outputs):
        at${k}_${u} = ${place(k, cls, ('i', 'j'))};
% endfor
      }
% endfor
% for u in range(count):
      {
${taken(u, 8)}\
${chain(8)}\
% for k, dt, cls, value in stores:
        ${memories[dt.code].scalar_store(f'at{k}_{u}', value)};
% endfor
      }
% endfor
</%def>\
## Compute `count` adjacent elements, such that the compiler sees that they share blocks of random words. They are
## stored as vectors if the result is aligned for that.
<%def name="together(count)">\
${results(count)}\
% for u in range(count):
    {
      const long i = g * ${count} + ${u};
% for k, (dt, cls) in enumerate(program.leaves):
      const ${dt.reg} a${k} = ${load(k, dt, cls, ('i', ''))};
% endfor
${chain(6)}\
${result(u)}\
    }
% endfor
% for k, dt, cls, value in stores:
<% width = min(count, 16 // dt.itemsize) %>\
% if dt.cl == dt.reg and width in (2, 4) and not dt.is_complex:
    if (((ulong)(q${k} + f${k}) & ${width * dt.itemsize - 1}) == 0) {
% for first in range(0, count, width):
      *(__global ${dt.cl}${width} *)(q${k} + f${k} + g * ${count} + ${first}) = (${dt.cl}${width})(${', '.join(f'r{k}_{u}' for u in range(first, first + width))});
% endfor
    }
    else {
% else:
    {
% endif
% for u in range(count):
      ${store(k, dt, cls, f'r{k}_{u}', (f'g * {count} + {u}', ''))};
% endfor
    }
% endfor
</%def>\
<%def name="bases()">\
% for k, (dt, cls) in enumerate(program.leaves):
% if plain(cls) in 'vsg':
    __global const ${dt.cl} *b${k} = p${k} + o${k}${outer(f's{k}_', cls)};
% endif
% endfor
% for k, (ref, dt, cls) in enumerate(program.outputs):
% if plain(cls) in 'vsg':
    __global ${dt.cl} *c${k} = q${k} + f${k}${outer(f'z{k}_', cls)};
% endif
% endfor
</%def>\
<%def name="decode(const='const ')">\
% for d in range(across, 0, -1):
    ${const}long x${d} = r % n${d}; r /= n${d};
% endfor
% if program.rank > 1:
    ${const}long x0 = r;
% endif
</%def>\
## Narrow rows: K at a time, which fill whole vectors; the remaining rows of a strip along the last outer dim are taken
## one by one.
<%def name="narrow()">\
  const long inner = ${W}, rows = n / inner, blocks = (rows + ${K - 1}) / ${K}, each = (blocks + get_global_size(0) - 1) / get_global_size(0) * ${K};
  const long end = (get_global_id(0) + 1) * each < rows ? (get_global_id(0) + 1) * each : rows;
  for (long start = get_global_id(0) * each; start < end;) {
    long r = start;
${decode('')}\
    const long strip = n${across} - x${across} < end - start ? n${across} - x${across} : end - start;
    long q = 0;
    if (strip >= ${K}) {
${bases()}\
% for k, (dt, cls) in enumerate(program.leaves):
% if cls in 'VG':
% for t in range(T):
      const ${reg(dt)} still${k}_${t} = ${still_load(k, dt, cls, t)};
% endfor
% endif
% endfor
      for (; q + ${K} <= strip; q += ${K}) {
        const int m = ${L};
% for k, (dt, cls) in enumerate(program.leaves):
% if cls == 's':
        const ${reg(dt)} row${k} = s${k}_${across} == 1 ? load_${dt.code}(b${k} + q, ${K}) : gather_${dt.code}(b${k} + q * s${k}_${across}, s${k}_${across}, ${K});
% endif
% endfor
% for t in range(T):
        {
          const long i = (start + q) * ${W} + ${t * L};
% if drawn:
${words()}\
% endif
% for k, (dt, cls) in enumerate(program.leaves):
          const ${reg(dt)} a${k} = ${narrow_load(k, dt, cls, t)};
% endfor
${chain(10)}\
% for k, dt, cls, value in stores:
          ${narrow_store(k, dt, cls, value, t)};
% endfor
        }
% endfor
      }
    }
    for (x${across} += q; q < strip; ++q, ++x${across}) {
${bases()}\
% for j in range(0, W, L):
      {
        const int m = ${min(L, W - j)};
        const long i = (start + q) * ${W} + ${j}, j = ${j};
${element(('i', 'j'), aligned=False)}\
      }
% endfor
    }
    start += strip;
  }
</%def>\
% if gpu:
% if beside:
  for (long g = get_global_id(0); g < n / ${at_once}; g += get_global_size(0)) {
${together(at_once)}\
  }
  for (long i = n / ${at_once} * ${at_once} + get_global_id(0); i < n; i += get_global_size(0)) {
${element(('i', 'i'))}\
  }
% elif at_once > 1 and not strided:
## A group takes a block of elements, so that the distances between a lane's elements are compile-time constants.
  for (long i = get_group_id(0) * (long)${at_once * group} + get_local_id(0); i < n; i += get_num_groups(0) * (long)${at_once * group}) {
    if (i + ${(at_once - 1) * group} >= n) {
      for (long at = i; at < n; at += ${group}) {
${element(('at', 'at'))}\
      }
      break;
    }
${several(at_once, group)}\
  }
% else:
% if at_once > 1:
## The rest of the last block is taken one by one, and so are all elements if n does not fit 32 bits.
  long begin = get_global_id(0), step = get_global_size(0);
  if (n <= INT_MAX) {
% for d in range(1, program.rank):
    const uint w${d} = (uint)n${d}, factor${d} = UINT_MAX / w${d};
% endfor
    uint first = (uint)get_group_id(0) * ${at_once * group} + (uint)get_local_id(0);
    for (; first + ${(at_once - 1) * group} < (uint)n; first += (uint)get_num_groups(0) * ${at_once * group}) {
${spread(at_once, group)}\
    }
    begin = first; step = ${group};
  }
  for (long i = begin; i < n; i += step) {
% else:
  for (long i = get_global_id(0); i < n; i += get_global_size(0)) {
% endif
% if strided:
    long r = i / n${along};
    const long j = i - r * n${along};
${decode()}${bases()}\
% endif
${element(('i', 'j'))}\
  }
% endif
% elif program.narrow:
${narrow()}\
% elif not strided:
  const long lo = get_global_id(0) * chunk, hi = lo + chunk < n ? lo + chunk : n;
  long i = lo;
% if unrolled > 1:
  for (; i + ${unrolled * L} <= hi; i += ${unrolled * L}) {
    const int m = ${L};
% for k, (dt, cls) in enumerate(program.leaves):
% if ahead and cls == 'd':
    ${ask(k, dt, cls)};
% endif
% endfor
${several(unrolled, L)}\
  }
% endif
  for (; i + ${L} <= hi; i += ${L}) {
    const int m = ${L};
${element(('i', 'i'))}\
  }
% if L > 1:
  if (i < hi) {
    const int m = (int)(hi - i);
${element(('i', 'i'))}\
  }
% endif
% else:
## Indices of outer dims are incremented from row to row: for short rows divisions would take longer than the rows
## themselves.
  const long lo = get_global_id(0) * chunk, hi = lo + chunk < n ? lo + chunk : n, inner = n${along};
  long r = lo / inner, start = lo, col = lo - r * inner;
${decode('')}\
  while (start < hi) {
    const long run = inner - col < hi - start ? inner - col : hi - start;
    long j = col, i = start;
${bases()}\
% if program.streamed and L > 1:
    if (i & ${L - 1}) {
      const int m = (int)(run < ${L} - (i & ${L - 1}) ? run : ${L} - (i & ${L - 1}));
${element(('i', 'j'))}\
      j += m, i += m;
    }
% endif
    for (; j + ${L} <= col + run; j += ${L}, i += ${L}) {
      const int m = ${L};
${element(('i', 'j'))}\
    }
% if L > 1:
    if (j < col + run) {
      const int m = (int)(col + run - j);
${element(('i', 'j'))}\
    }
% endif
    start += run; col = 0;
% if program.rank > 1:
    ${''.join(f'if (++x{d} == n{d}) {{ x{d} = 0; ' for d in range(across, 0, -1))}++x0;${' }' * across}
% endif
  }
% endif
}

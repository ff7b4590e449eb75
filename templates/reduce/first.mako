<%doc>
The extreme of nred elements and its first position, for nout outputs: the CPU's schedule along the reduced dims.
A work-item owns outputs. One pass takes the extreme of every block with plain vectors and remembers the first block
that holds the best; then that block alone is searched for the element. A block with a NaN ends the pass.
Elements FURTHER bytes ahead are prefetched.
Lanes that a partial load does not fill repeat its first element, which changes neither the extreme nor its first
position.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="r" file="parts.mako"/>\
<%
L, U = lanes, unroll
step, floating = U * L, state.dt.category == 2
def wide(t, n): return t if n == 1 else f"{t}{n}"
def better(a, b): return f"({a} {state.sign} {b} ? {a} : {b})"
def either(a, b): return f"({a} | {b})"
def most(a, b): return f"({a} > {b} ? {a} : {b})"
def least(a, b): return f"({a} < {b} ? {a} : {b})"
def fold(name, kind, join):
    "Statements that join the lanes of a vector, and the name of the scalar."
    out, width, at = [], L, name
    while width > 1:
        width //= 2
        out.append(f"const {wide(kind, width)} {name}_{width} = {join(f'{at}.lo', f'{at}.hi')};")
        at = f"{name}_{width}"
    return out, at
mask = "int" if L == 1 else state.mask
R, M = wide(state.base, L), wide(mask, L)
largest, top = fold("top0", state.base, better)
odd_lanes, odd = fold("odd", mask, either)
hit_lanes, hits = fold("w", state.base, most)
lane_steps, lane = fold("at", mask, least)
%>\
#pragma OPENCL FP_CONTRACT OFF
${headers}
${lane_memory.helpers(memories, L)}\
<%def name="load(at, m, indent)">\
${r.lines(reader.element(at, m, compute)[0], indent)}\
</%def>\
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(${', '.join(parameters)}) {
% for line in reader.scalars():
  ${line}
% endfor
  const long g = get_global_id(0), part = g % parts, olo = g / parts * ochunk, ohi = min(olo + ochunk, nout);
  const long rlo = part * pchunk, rhi = min(rlo + pchunk, nred), inner = m${reader.reduced_rank - 1};
  for (long o = olo; o < ohi; o++) {
${r.lines(reader.kept_bases('o'), 4)}\
    ${state.base} s_s = ${state.identity()};
    ${state.index} s_i = ${state.unset};
% if reader.reduced_rank == 1:
    long found = rlo, length = 0, row = 0, col = rlo;
% else:
    long found = rlo, length = 0, row = rlo / inner, col = rlo - row * inner;
% endif
    int nan = 0;
    for (long start = rlo; start < rhi && !nan; row++, col = 0) {
      const long run = min(inner - col, rhi - start), end = col + run;
${r.lines(reader.reduced_bases('row'), 6)}\
      for (long j = col; j < end && !nan;) {
        const long from = j, stop = min(end, j + ${block * step});
% for u in range(U):
        ${R} top${u} = (${R})(${state.identity()});
% endfor
% if floating:
        ${M} odd = (${M})(0);
% endif
% if step > 1:
        for (; j + ${step} <= stop; j += ${step}) {
          ${R} ${', '.join(f'x{u}' for u in range(U))};
% for u in range(U):
          {
% for k, (dt, cls) in enumerate(reader.program.leaves):
% if cls == 'v':
            CLT_PREFETCH(b${k} + j + ${u * L + FURTHER // dt.itemsize});
% endif
% endfor
${load(f'j + {u * L}', str(L), 12)}\
            x${u} = v0;
          }
% endfor
% for u in range(U):
          top${u} = ${better(f'x{u}', f'top{u}')};
% endfor
% if floating:
## The compiler makes one unordered comparison of both tests: whether either number is NaN.
% for u in range(0, U - 1, 2):
          odd |= (x${u} != x${u}) | (x${u + 1} != x${u + 1});
% endfor
% if U % 2:
          odd |= x${U - 1} != x${U - 1};
% endif
% endif
        }
% endif
        for (; j < stop; j += ${L}) {
% if L > 1:
          const int m = stop - j < ${L} ? (int)(stop - j) : ${L};
% endif
${load('j', 'm' if L > 1 else '1', 10)}\
          top0 = ${better('v0', 'top0')};
% if floating:
          odd |= v0 != v0;
% endif
        }
% for u in range(1, U):
        top0 = ${better('top0', f'top{u}')};
% endfor
${r.lines(largest, 8)}\
% if floating:
${r.lines(odd_lanes, 8)}\
        nan = ${odd} != 0;
% endif
        if (nan | (${top} ${state.sign} s_s)) { s_s = ${top}; found = start + from - col; length = stop - from; }
      }
      start += run;
    }
    if (length) {
      const ${R} x = (${R})(${'nan ? NAN : s_s' if floating else 's_s'});
% if reader.reduced_rank == 1:
      const long first = found, end = first + length;
% else:
      const long line = found / inner, first = found - line * inner, end = first + length;
% endif
${r.lines(reader.reduced_bases('line'), 6)}\
      long j = first;
% if step > 1:
      for (; j + ${step} <= end && !nan; j += ${step}) {
        ${R} w = (${R})(0);
% for u in range(U):
        {
${load(f'j + {u * L}', str(L), 10)}\
          w = v0 == x ? (${R})(1) : w;
        }
% endfor
${r.lines(hit_lanes, 8)}\
        if (${hits} != 0) break;
      }
% endif
      for (; j < end; j += ${L}) {
% if L > 1:
        const int m = end - j < ${L} ? (int)(end - j) : ${L};
% endif
${load('j', 'm' if L > 1 else '1', 8)}\
% if L > 1:
        const ${M} lanes = (${M})(${', '.join(map(str, range(L)))});
        ${M} at = v0 == x ? lanes : (${M})(${L});
% if floating:
        at = v0 != v0 ? lanes : at;
% endif
${r.lines(lane_steps, 8)}\
        if (${lane} == ${L}) continue;
        ${state.base} every[${L}];
        vstore${L}(v0, 0, every);
        s_s = every[${lane}];
        s_i = (${state.index})(found - rlo + j - first + ${lane});
% else:
        if (v0 != x${' && v0 == v0' if floating else ''}) continue;
        s_s = v0;
        s_i = (${state.index})(found - rlo + j - first);
% endif
        break;
      }
    }
${r.store('s_', 1, 'o', '1', 'rlo')}\
  }
}

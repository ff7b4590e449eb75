<%doc>
What windows over channels-last images send back, on a CPU: a work-item makes rows of the input, the channels of each place by walking the
windows that can hold it, in their order. Windows and their sizes are those of pool.mako; `x` is what is sent back.

W          the type of positions. flat: every window sends back the same element, the first of x. streamed: stored past the cache, where windows do not meet.
Variables  as pool.mako's, and best: largest elements, which are sent back where their positions say, else averages.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="windows" file="/pool.mako"/>\
<%
V = f"{T}{L}"
positions = 'u_i32' if W == 'int' else 'u_i64'
def mine(lanes):
    """Whether the position of a vector, or of one element, is the element's own."""
    if lanes == 1: return 'where[from] == here'
    equal = f'*(__global const {positions} *)(where + from) == here'
    return equal if (M, W) in (('int', 'int'), ('long', 'long')) else f'convert_{M}{L}({equal})'
%>\
## The shares of one window, of all channels; `more` are added to what others sent.
<%def name="share(more)">\
I ch = 0;
% for lanes, load, store in ((L, memory.vector_load, memory.vector_store), (1, memory.scalar_load, memory.scalar_store)):
<%
R = f"{T}{lanes}" if lanes > 1 else T
value = f"({R})({memory.scalar_load('x')})" if flat else load('x + from + ch')
value += f" / ({R})(by)"
value = f"{load('to + ch')} + {value}" if more else value
%>\
          for (; ch + ${lanes} <= channels; ch += ${lanes})
% if streamed and lanes > 1:
            CLT_STREAM(${value}, (__global ${V} *)(to + ch));
% else:
            ${store('to + ch', value)};
% endif
% endfor
</%def>\
## Sums over all windows, of a vector of channels or of one.
<%def name="sums(lanes, store)">\
<%
R = f"{T}{lanes}" if lanes > 1 else T
load = memory.vector_load if lanes > 1 else memory.scalar_load
value = f"({R})({memory.scalar_load('x')})" if flat else load('x + from')
%>\
      for (; ch + ${lanes} <= channels; ch += ${lanes}) {
        ${R} total = (${R})(0);
        for (I a0 = f0; a0 <= l0; ++a0) for (I a1 = f1; a1 <= l1; ++a1) for (I a2 = f2; a2 <= l2; ++a2) {
          const long from = image * osize + (((long)a0 * o1 + a1) * o2 + a2) * channels + ch;
          total += (${mine(lanes)}) ? ${value} : (${R})(0);
        }
        ${store};
      }
</%def>\
#pragma OPENCL FP_CONTRACT OFF
${headers}
${lane_memory.helpers(memories, L, ())}\
${windows.types()}\
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global const ${dt.cl} *x, __global ${dt.cl} *y\
% if best:
, __global const ${W} *where\
% endif
% for name in names:
, const I ${name}\
% endfor
, const long work, const long x0, const long chunk, ${'const long at0' if best else 'const long divide'}) {
  const long begin = get_global_id(0) * chunk, end = min(begin + chunk, work);
  const long osize = (long)o0 * o1 * o2 * channels;
  long image = begin / ((long)i0 * i1);
  I g1 = (I)(begin % i1), g0 = (I)(begin / i1 % i0);
  x += x0;
% if best:
  where += at0;
% endif
  for (long row = begin; row < end; ++row) {
    ${windows.holders(0, 'g0')}
    ${windows.holders(1, 'g1')}
    for (I g2 = 0; g2 < i2; ++g2) {
      ${windows.holders(2, 'g2')}
      const I here = (g0 * i1 + g1) * i2 + g2;
      __global ${dt.cl} *to = y + (row * i2 + g2) * channels;
% if best:
      I ch = 0;
${sums(L, 'CLT_STREAM(total, (__global ' + V + ' *)(to + ch))' if streamed else memory.vector_store('to + ch', 'total'))}\
${sums(1, memory.scalar_store('to + ch', 'total'))}\
% else:
      bool found = false;
      for (I a0 = f0; a0 <= l0; ++a0) for (I a1 = f1; a1 <= l1; ++a1) for (I a2 = f2; a2 <= l2; ++a2) {
        const long from = image * osize + (((long)a0 * o1 + a1) * o2 + a2) * channels;
        ${windows.span(0, 'a0')}
        ${windows.span(1, 'a1')}
        ${windows.span(2, 'a2')}
        const T by = ${windows.divisor()};
        if (found) { ${share(True)} }
        else { ${share(False)} }
        found = true;
      }
      if (!found)
        for (I ch = 0; ch < channels; ++ch) ${memory.scalar_store('to + ch', '(T)(0)')};
% endif
    }
    if (++g1 == i1) {
      g1 = 0;
      if (++g0 == i0) { g0 = 0; ++image; }
    }
  }
}

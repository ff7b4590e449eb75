<%doc>
The gradient of pooling over channels-last images, on a CPU: a work-item makes rows of the input's gradient, the
channels of each place by walking the windows that can hold the place, in their order. Windows and their sizes are those
of pool.mako; `x` is the output's gradient.

W          the type of positions. flat: every output gradient is the same element, the first of x. streamed:
           non-temporal stores, where windows do not overlap.
Variables  as pool.mako's, and best: max pooling, whose gradient goes to the recorded positions; otherwise average
           pooling.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="windows" file="/pool/pool.mako"/>\
<%
V = f"{T}{L}"
regular = geometry == 'regular'
positions = 'u_i32' if W == 'int' else 'u_i64'
load, store = memory.vector_load, memory.vector_store
def mine():
    """Return the mask of channels whose recorded position is this element."""
    equal = f'*(__global const {positions} *)(where + from) == here'
    return f'({equal})' if (M, W) in (('int', 'int'), ('long', 'long')) else f'convert_{M}{L}({equal})'
%>\
## Store one window's gradient shares, for all channels; with `more` add them to what other windows have stored.
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
## Compute the gradient of one input place, by vectors of channels: the sum over the windows at these distances, or over
## all from f to l, `columns` a row.
<%def name="sums(distances=(), columns=0)">\
<%
value = f"({V})({memory.scalar_load('x')})" if flat else load('x + from')
def added(): return f"total += {mine()} ? {value} : ({V})(0);"
%>\
      for (I ch = 0; ch < channels; ch += ${L}) {
        ch = min(ch, channels - ${L});
        ${V} total = (${V})(0);
% for distance in distances:
        { const long from = first + ch + ${distance}; ${added()} }
% endfor
% if not distances:
        for (I a0 = f0; a0 <= l0; ++a0) for (I a1 = f1; a1 <= l1; ++a1) {
          long from = image * osize + (((long)a0 * o1 + a1) * o2 + f2) * channels + ch;
% for _ in range(columns):
          ${added()} from += channels;
% endfor
% if not columns:
          for (I a2 = f2; a2 <= l2; ++a2, from += channels) ${added()}
% endif
        }
% endif
        ${'CLT_STREAM(total, (__global ' + V + ' *)(to + ch))' if streamed else store('to + ch', 'total')};
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
% if regular:
    I f2 = 0, l2 = -1;
    const I reach = (k2 - 1) * ${'w2' if best else '1'} - p2;
% endif
    for (I g2 = 0; g2 < i2; ++g2) {
% if regular:
      while (f2 * s2 + reach < g2) ++f2;
      while (l2 + 1 < o2 && (l2 + 1) * s2 - p2 <= g2) ++l2;
% else:
      ${windows.holders(2, 'g2')}
% endif
      const I here = (g0 * i1 + g1) * i2 + g2;
      __global ${dt.cl} *to = y + (row * i2 + g2) * channels;
% if best:
      const long first = image * osize + (((long)f0 * o1 + f1) * o2 + f2) * channels, below = (long)o2 * channels;
      ## Most input places lie in one, two or four windows.
      const bool few = f0 == l0 && f1 <= l1 && f2 <= l2 && l1 - f1 < 2 && l2 - f2 < 2;
      if (few && f1 == l1 && f2 == l2) {
${sums(('0',))}\
      } else if (few && f1 != l1 && f2 != l2) {
${sums(('0', 'channels', 'below', 'below + channels'))}\
      } else if (few) {
        const long other = f1 == l1 ? (long)channels : below;
${sums(('0', 'other'))}\
      } else if (l2 - f2 == 2) {
${sums(columns=3)}\
      } else {
${sums()}\
      }
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

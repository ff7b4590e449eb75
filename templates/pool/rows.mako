<%doc>
Max pooling over channels-last images with windows that overlap in rows, by vectors of channels, on a CPU: pool.mako's
kernel for some rows of windows. The variables are pool.mako's. Each row of elements is read once: for each window along
the row, the maximum of its columns is compared with the maxima so far of the windows that hold the row. The comparisons
do not test for NaN: rows of windows that met a NaN are computed again one by one.

run        the number of a window's columns, if small: windows that lie within the row then have all of them.
</%doc>\
<%namespace name="few" file="/pool/few.mako"/>\
<%def name="compare(v, place, top, at)">\
<% lanes_mask = few.module.words(T, M, L, W)[4] %>\
                const ${M}${L} better = ${v} > ${top};
                ${top} = better ? ${v} : ${top};
% if indices:
                ${at} = ${lanes_mask('better')} ? ${place} : ${at};
% endif
</%def>\
## Update, for all channels, the windows at output column c, which have `taps` columns, or the columns [b2, e2).
<%def name="channels_of(taps=0)">\
<%
V, IV, ids, store_places, lanes_mask = few.module.words(T, M, L, W)
PV, places, as_places = (IV, 'u_i32', '') if W == 'int' else (f'long{L}', 'u_i64', f'convert_long{L}')
%>\
          for (I ch = 0; ch < channels; ch += ${L}) {
            ch = min(ch, channels - ${L});
% if taps:
% for t in range(taps):
            const ${V} v${t} = ${memory.vector_load(f'from + {t} * across + ch' if t else 'from + ch')};
% endfor
            ${V} v = v0;
% if indices:
            ${IV} v_at = (${IV})(here);
% endif
% for t in range(1, taps):
            {
${compare(f'v{t}', f'({IV})(here + {t})', 'v', 'v_at')}\
            }
% endfor
% if dt.is_floating_point:
            nan |= ${lanes_mask(' | '.join(f'(v{t} != v{t})' for t in range(taps)))};
% endif
% else:
            ${V} v = (${V})(${lowest});
% if indices:
            ${IV} v_at = (${IV})(here);
% endif
            for (I j2 = b2; j2 < e2; j2 += w2) {
              const ${V} u = ${memory.vector_load('from + (long)(j2 - b2) * channels + ch')};
${compare('u', f'({IV})(here + (int)(j2 - b2))', 'v', 'v_at')}\
% if dt.is_floating_point:
              nan |= ${lanes_mask('u != u')};
% endif
            }
% endif
            long o = to + ch;
            for (I a = first; a < fresh; ++a, o += pitch) {
              const ${V} top = ${memory.vector_load('y + o')};
% if indices:
              ## Load the position before the store of `y`: both have the same offset within a page, and a load after
              ## the store would wait for it.
              const ${PV} at = *(__global const ${places} *)(where + o);
% endif
              const ${M}${L} better = v > top;
              ${memory.vector_store('y + o', 'better ? v : top')};
% if indices:
              *(__global ${places} *)(where + o) = ${lanes_mask('better') if W == 'int' else 'better' if M == 'long' else f'convert_long{L}(better)'} ? ${as_places}(v_at) : at;
% endif
            }
            for (I a = fresh; a <= last; ++a, o += pitch) {
              ${memory.vector_store('y + o', 'v')};
% if indices:
              ${store_places('where + o', 'v_at')};
% endif
            }
          }
</%def>\
## Rows [a1, a1 + rows) of windows.
<%def name="strip(span, across)">\
<% V, IV, ids, store_places, lanes_mask = few.module.words(T, M, L, W) %>\
      const long pitch = (long)o2 * channels, across = (long)w2 * channels, origin = (row - a1) * pitch;
      const I bottom = a1 + (I)rows - 1;
      ${span(0, 'a0')}
      ${span(1, 'a1')}
      const I below = min(bottom * s1 - p1 + k1, i1);
      I anew = b0 < e0 ? a1 + (I)rows : a1, again = b0 < e0 ? a1 : a1 + (I)rows; /* those to make again */
      for (I j0 = b0; j0 < e0; j0 += w0) {
        I first = a1, last = a1 - 1; /* rows of windows that hold a row of elements, and the first to begin with it */
        for (I j1 = b1; j1 < below; ++j1) {
          while (first * s1 - p1 + k1 <= j1) ++first;
          while (last < bottom && (last + 1) * s1 - p1 <= j1) ++last;
          const I fresh = j0 > b0 ? last + 1 : j1 == b1 ? first : last * s1 - p1 == j1 ? last : last + 1;
          ${IV} nan = 0;
          for (I c = 0; c < o2 && first <= last; ++c) {
            ${span(2, 'c')}
            const int here = (int)((j0 * i1 + j1) * i2 + b2);
            __global const ${dt.cl} *from = x + (long)here * channels;
            const long to = origin + first * pitch + (long)c * channels;
% if run:
            if (c >= lo && c < hi) {
${channels_of(run)}\
            } else
% endif
            {
${channels_of()}\
            }
          }
          if (CLT_ANY_${IV}(nan)) {
            anew = min(anew, first);
            again = max(again, last + 1);
          }
        }
      }
      for (; anew < again; ++anew) {
        ${span(1, 'anew')}
        for (I c = 0; c < o2; ++c) {
          ${span(2, 'c')}
          for (I ch = 0; ch < channels; ch += ${L}) {
            ch = min(ch, channels - ${L});
${across('origin + anew * pitch + (long)c * channels')}\
          }
        }
      }
</%def>\

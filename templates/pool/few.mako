<%doc>
Max pooling with windows of few columns, by vectors of windows of a row, on a CPU: the part of pool.mako's kernel
between the ends of a row. The variables are pool.mako's; `nan` collects whether a NaN was met, which makes a row, or a
strip of rows, be computed again one by one.

strips     windows are three by three with stride two: a work-item goes down some rows of windows with a vector of
           columns, and reads each row of elements once.
</%doc>\
<%!
AHEAD = 4096
def words(T, M, L, W):
    """Return the types of a vector and of its positions, the lanes' numbers, how positions are stored, and a conversion of masks of elements to positions."""
    V, IV = (f"{T}{L}" if L > 1 else T), f"int{L}"
    ids = f"({IV})({', '.join(map(str, range(L)))})"
    store = lambda to, at: f"*(__global {'u_i32' if W == 'int' else 'u_i64'} *)({to}) = {at if W == 'int' else f'convert_long{L}({at})'}"
    return V, IV, ids, store, lambda condition: f'({condition})' if M == 'int' else f'convert_int{L}({condition})'
%>\
## Load a vector of one row's elements, `stride` columns apart, reading nothing beyond the last lane's element.
<%def name="strided(pointer)">\
<%
V = words(T, M, L, W)[0]
if stride == 1: text = memory.vector_load(pointer)
elif stride == 2: text = f"({V})(({memory.vector_load(pointer)}).even, ({memory.vector_load(f'{pointer} + {L - 1}')}).odd)"
else: text = f"({V})({', '.join(memory.scalar_load(f'{pointer} + {k} * s2') for k in range(L))})"
%>${text}</%def>\
## Compute the maxima of windows of few columns. Comparisons do not handle nan, so that none has to wait for such a
## test; `nan` records that the row has one. With `edge` the windows begin one column before the row.
<%def name="vector(edge=False)">\
<% V, IV, ids, store_places, lanes_mask = words(T, M, L, W) %>\
        {
          const I first = ${0 if edge else 'c * s2 - p2'};
          ${V} top = (${V})(${lowest});
% if indices:
          ${IV} at = (int)((b0 * i1 + b1) * i2 + first) + ${f'max({ids} * 2 - 1, 0)' if edge else f'{ids} * (int)s2'};
% endif
          for (I j0 = b0; j0 < e0; j0 += w0) for (I j1 = b1; j1 < e1; j1 += w1) {
            const I here = (j0 * i1 + j1) * i2 + first;
% if indices:
            const ${IV} places = (int)here + ${f'{ids} * 2 - 1' if edge else f'{ids} * (int)s2'};
% endif
% if stride == 2:
% for k in range(2 if run == 2 else 0):
            CLT_PREFETCH(x + here + ${k * L + AHEAD // dt.itemsize});
% endfor
            const ${V} low = ${memory.vector_load('x + here')}, high = ${memory.vector_load(f'x + here + {L}')};
            const ${V} even = (${V})(low.even, high.even), odd = (${V})(low.odd, high.odd);
% if edge:
            const ${V} before = (${V})((${T})(${lowest}), ${', '.join(f'odd.s{k:x}' for k in range(L - 1))});
% endif
% endif
<%
columns = [capture(strided, f'x + here + {t}').strip() if stride != 2 or t > 1 else ('even', 'odd')[t] for t in range(run)]
if edge: columns = ['before', 'even', 'odd']
%>\
% for t, column in enumerate(columns):
            {
              const ${V} v = ${column};
              const ${M}${L} better = v > top;
              top = better ? v : top;
% if indices:
              at = ${lanes_mask('better')} ? places + ${t} : at;
% endif
% if dt.is_floating_point:
              nan = ${lanes_mask('v != v')} ? (${IV})(-1) : nan;
% endif
            }
% endfor
          }
          ${memory.vector_store('y + o + c', 'top')};
% if indices:
          ${store_places('where + o + c', 'at')};
% endif
        }
</%def>\
## The maxima of a row's windows of three columns, two apart, and the maxima's columns.
<%def name="row(top, at, number, edge)">\
<% V, IV, ids, store_places, lanes_mask = words(T, M, L, W) %>\
            {
              __global const ${dt.cl} *const p = x + (b0 * i1 + ${number}) * i2 + first;
              const ${V} low = ${memory.vector_load('p')}, high = ${memory.vector_load(f'p + {L}')};
              const ${V} even = (${V})(low.even, high.even), odd = (${V})(low.odd, high.odd);
% if edge:
              const ${V} v0 = (${V})((${T})(${lowest}), ${', '.join(f'odd.s{k:x}' for k in range(L - 1))}), v1 = even, v2 = odd;
% else:
              const ${V} v0 = even, v1 = odd, v2 = ${strided('p + 2')};
% endif
              ${top} = v0;
% if indices:
              ${at} = column0;
% endif
% for t in (1, 2):
              {
                const ${M}${L} better = v${t} > ${top};
                ${top} = better ? v${t} : ${top};
% if indices:
                ${at} = ${lanes_mask('better')} ? column${t} : ${at};
% endif
              }
% endfor
% if dt.is_floating_point:
              nan |= ${lanes_mask('(v0 != v0) | (v1 != v1) | (v2 != v2)')};
% endif
            }
</%def>\
## Compute columns c and on of some rows of 3 x 3 windows, two apart. The row of elements that two rows of windows share
## is read once.
<%def name="strip(edge=False)">\
<% V, IV, ids, store_places, lanes_mask = words(T, M, L, W) %>\
        {
          const I first = ${0 if edge else 'c * 2 - p2'};
          ${V} last = (${V})(0);
          ${IV} last_at = 0;
% if indices:
% for t in range(3):
          const ${IV} column${t} = (int)(b0 * i1 * i2 + first) + ${f'max({ids} * 2 + {t - 1}, 0)' if edge else f'{ids} * 2 + {t}'};
% endfor
% endif
          I upper = a1 * 2 - p1;
          ## For a window that begins above the plane, its second row stands in for the first as well.
${row('last', 'last_at', 'max(upper, (I)0)', edge)}\
% if indices:
          const ${IV} below = (int)i2;
          ${IV} above = (int)(upper * i2);
          last_at += upper < 0 ? below : (${IV})(0);
% endif
          for (I k = 0; k < rows; ++k, upper += 2) {
            ${V} top = last;
% if indices:
            ${IV} at = last_at + above;
            above += below;
% endif
% for next in (1, 2):
<% v, v_at = ('v', 'v_at') if next == 1 else ('last', 'last_at') %>\
            if (upper + ${next} < i1) {
% if next == 1:
              ${V} v;
              ${IV} v_at;
% endif
${row(v, v_at, f'(upper + {next})', edge)}\
              const ${M}${L} better = ${v} > top;
              top = better ? ${v} : top;
% if indices:
              at = ${lanes_mask('better')} ? ${v_at} + above : at;
% endif
            }
% if indices and next == 1:
            above += below;
% endif
% endfor
            ${memory.vector_store('y + o + k * o2 + c', 'top')};
% if indices:
            ${store_places('where + o + k * o2 + c', 'at')};
% endif
          }
        }
</%def>\

<%doc>
Compaction by a mask. CPU schedule, two launches: `count` writes how many elements each of the work-items' chunks keeps;
then each work-item starts from the sum of the counts before its own and walks its chunk. GPU schedule: an inclusive
scan of the mask gave every element its place, and a lane moves its element.
action select: out[place] = src[p]; nonzero: out[place] = the coordinates of p; scatter: dst[p] = values[place].
</%doc>\
<%namespace name="w" file="walk.mako"/>\
<%
names = ['m'] + (['s'] if action in ('select', 'scatter') else [])
zero = '(clt_ld_m(mask + om + p_m).x != 0 || clt_ld_m(mask + om + p_m).y != 0)' if mask.is_complex else '(clt_ld_m(mask + om + p_m) != 0)'
%>\
${w.prelude()}
typedef ${I} I;
typedef ${T} T;
${w.element(mask, 'm')}
<%def name="keep()">
% if action == 'select':
            out[place] = src[os + p_s];
% elif action == 'scatter':
            if (place < limit) src[os + p_s] = out[place];
            else if (!status[0]) { status[0] = 1; status[1] = (long)place; status[2] = 0; status[3] = (long)p_i; }
% elif action == 'nonzero':
            I q = p_i;
% for d in reversed(range(coords)):
% if d:
            out[place * ${coords} + ${d}] = (T)(q % d${d}); q /= d${d};
% else:
            out[place * ${coords}] = (T)q;
% endif
% endfor
% endif
</%def>\
% if not gpu:
__attribute__((reqd_work_group_size(1, 1, 1)))
% endif
__kernel void ${fn}(__global const ${mask.cl} *mask, __global ${"long" if gpu else "const long" if action != "count" else "long"} *places\
% if action in ('select', 'scatter'):
, __global T *src\
% endif
% if action != 'count':
, __global T *out\
% endif
% if action == 'scatter':
, __global long *status, const I slot, const I limit\
% endif
, const I n, const I om\
% if action in ('select', 'scatter'):
, const I os\
% endif
% if action == 'nonzero':
% for d in range(coords):
, const I d${d}\
% endfor
% endif
${w.params('p', rank, names)}\
) {
% if action == 'scatter':
    status += slot;
% endif
% if gpu:
<%w:lane p="p" rank="${rank}" names="${names}" last="n">
        if (${zero}) {
            const I place = (I)places[p_i] - 1;
            ${keep()}
        }
</%w:lane>
% else:
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), first = n / parts * part + min(part, (I)(n % parts));
    const I size = n / parts + (part < n % parts);
% if action == 'count':
    I total = 0;
<%w:each p="p" rank="${rank}" names="${names}" first="first" last="first + size" units="${units}">
        total += ${zero};
</%w:each>
    places[part] = total;
% else:
    I place = 0;
    for (I k = 0; k < part; ++k) place += places[k];
% if action == 'scatter':
    status += 4 * part;
% endif
<%w:each p="p" rank="${rank}" names="${names}" first="first" last="first + size" units="${units}">
        if (${zero}) {
            ${keep()}
            ++place;
        }
</%w:each>
% endif
% endif
}

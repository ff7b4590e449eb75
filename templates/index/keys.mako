<%doc>
The destination of each contribution as one integer: row * product of the indexed sizes + linear index; `none`, larger
than all, for a bad index.
A work-item is a lane, grid-stride over (positions of s unless no index varies along it) x (positions of c).
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%
k = len(index)
names = ['d', 's'] + [f'i{j}' for j in range(k)]
%>\
${w.prelude()}
typedef ${I} I;
__kernel void ${fn}(__global ${key} *keys\
% for j, t in enumerate(index):
, __global const ${t} *i${j}\
% endfor
, __global long *status, const I slot, const I n, const I nc\
% for j in range(k):
, const I oi${j}, const I t${j}_size, const I t${j}_step\
% endfor
${w.params('c', rank_c, names)}${w.params('s', rank_s, names)}\
, const long none) {
    status += slot;
    for (I i = (I)get_global_id(0); i < n; i += (I)get_global_size(0)) {
        ${w.decode('c', rank_c, names, 'i % nc')}
        ${w.decode('s', rank_s, names, 'i / nc')}
        ulong key = (ulong)(i / nc);
        I ignored = 0;
        int bad = 0;
% for j in range(k):
        const I x_i${j} = c_i${j}_at + s_i${j}_at;
% endfor
        ${w.lookup(k, 'x', 'ignored', wrap, True, 'bad = 1;', 'i')}
        if (!bad) {
% for j in range(k):
            {
                long v = (long)i${j}[oi${j} + x_i${j}];
                v += v < 0 ? (long)t${j}_size : 0;
                key = key * (ulong)t${j}_size + (ulong)v;
            }
% endfor
        }
        keys[i] = (${key})(bad ? (ulong)none : key);
    }
}

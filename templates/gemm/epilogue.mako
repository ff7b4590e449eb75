<%doc>
The epilogue of a product, computed while its elements are in registers: finish(i, j, m, product, ...) computes a
pointwise chain at row i, columns j .. j+m-1 (m <= ${lanes}) and stores its results. Each operation is rounded, as in
the chain's own kernel.
Variables: program lanes body stores memories headers parameters.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%
L = lanes
needed = {(dt.code, 'gather' if cls == 'g' else 'load') for dt, cls in program.leaves if cls in 'vg'}
needed |= {(dt.code, 'scatter' if cls == 'g' else 'store') for _, dt, cls in program.outputs}
def reg(dt): return dt.reg if L == 1 else f"{dt.reg}{L}"
def load(k, dt, cls):
    mem, at = memories[dt.code], f'p{k} + p{k}_at + i * p{k}_row + j * p{k}_col'
    if L == 1:
        return mem.scalar_load(at)
    if cls in 'cs':
        return f'({mem.reg})({mem.scalar_load(at)})'
    return f'gather_{dt.code}({at}, p{k}_col, m)' if cls == 'g' else f'load_{dt.code}({at}, m)'
def store(k, dt, cls, value):
    mem, at = memories[dt.code], f'q{k} + q{k}_at + i * q{k}_row + j * q{k}_col'
    if L == 1:
        return mem.scalar_store(at, value)
    return f'scatter_{dt.code}({at}, q{k}_col, {value}, m)' if cls != 'v' else f'store_{dt.code}({at}, {value}, m)'
%>\
#pragma OPENCL FP_CONTRACT OFF
${headers}
${lane_memory.helpers(memories, L, needed)}\
static inline void finish(const long i, const long j, const int m, \
% for k, (dt, cls) in enumerate(program.leaves):
% if cls == 'p':
const ${reg(dt)} a${k}, \
% endif
% endfor
${', '.join(parameters)})
{
% for k, dt in enumerate(program.scalars):
    const ${reg(dt)} k${k} = (${reg(dt)})(k${k}_);
% endfor
% for k, (dt, cls) in enumerate(program.leaves):
% if cls != 'p':
    const ${reg(dt)} a${k} = ${load(k, dt, cls)};
% endif
% endfor
% for line in body:
    ${line}
% endfor
% for k, dt, cls, value in stores:
    ${store(k, dt, cls, value)};
% endfor
}
#pragma OPENCL FP_CONTRACT ON

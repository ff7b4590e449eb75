<%doc>
Packs the weights (gates * width, width) of a recurrent layer's state. CPU: [block of units][term][vector]; GPU:
[term][gate][unit]. Forward, a block has vectors for ${G} gates, its terms are the units of the previous state, followed
by the bias. Backward, a block is one of columns, and all rows are terms (a GPU reads the weights in place then).
</%doc>\
<%namespace name="square" file="/square.mako"/>\
<%namespace name="steps" file="steps.mako"/>\
${steps.helpers()}
__kernel void ${fn}(__global const T *weights, const long weights_o,
% if bias:
    __global const T *bias, const long bias_o,
% endif
    __global T *packed, const long width)
{
% if gpu:
    const long units = ${G} * width;
    for (long i = get_global_id(0); i < (width + 1) * units; i += get_global_size(0)) {
        const long k = i / units, unit = i % units;
        packed[i] = k < width ? weights[weights_o + unit * width + k] : ${'bias[bias_o + unit]' if bias else '0'};
    }
% elif transposed:
    const long length = (width + 1) * ${G * U * V};
    for (long j = get_global_id(0); j < BLOCKS; j += get_global_size(0))
        for (int n = 0; n < ${G * U}; n++) {
            const long first = n / ${U} * width + START(j * ${U} + n % ${U});
            __global T *out = packed + j * length + n * ${V};
            for (long v = 0; v * ${V} < width; v++) {
                const long k = START(v);
                __global const T *p = weights + weights_o + first * width + k;
                __global T *q = out + k * ${G * U * V};
% if V == 1:
                *q = *p;
% else:
% for i in range(V):
                const F r${i} = GET(p + ${i} * width);
% endfor
${square.turned('F', V, 'r', 't')}\
% for i in range(V):
                AT(q + ${i * G * U * V}) = t${i};
% endfor
% endif
            }
            AT(out + width * ${G * U * V}) = ${'GET(bias + bias_o + first)' if bias else '(F)(0)'};
        }
% else:
    for (long j = get_global_id(0); j < BLOCKS; j += get_global_size(0)) {
        __global T *q = packed + j * ${G} * width * ${U * V};
        for (long k = 0; k < ${G} * width; k++, q += ${U * V}) {
% for u in range(U):
            AT(q + ${u * V}) = GET(weights + weights_o + k * width + START(j * ${U} + ${u}));
% endfor
        }
    }
% endif
}

## Shared by the kernels of recurrent layers: vectors, gates, loops over steps and blocks, and the product in registers.
## A step takes R rows by a block of U vectors of hidden units at a time. The last vector is moved back to end with the
## row (START): some units are computed twice, with the same values, since no step overwrites what it reads; so is the
## last row, in place of rows past the end. Weights are packed in the order the product reads them.
<%def name="helpers()">\
% if dt.code == 'f64':
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% else:
#define CLT_LANES ${V}
${exp}
% endif
#pragma OPENCL FP_CONTRACT ON
<% F = dt.reg + (str(V) if V > 1 else '') %>\
typedef ${dt.reg} T;
typedef ${F} F;
typedef F FU __attribute__((aligned(${dt.itemsize})));
#define AT(p) *(__global FU *)(p)
#define GET(p) *(__global const FU *)(p)
#define START(v) min((v) * ${V}, width - ${V})
#define BLOCKS ((width + ${V * U - 1}) / ${V * U})
</%def>\
<%def name="gates()">\
<% F = dt.reg + (str(V) if V > 1 else '') %>\
static inline F sigmoid(const F x) {
% if dt.code == 'f64':
    return 1 / (1 + exp(-x));
% else:
    const F e = clt_exp_neg_${F}(x > 0 ? -x : x);
    return (x < 0 ? e : (F)(1.0f)) / (1 + e);
% endif
}
## tanh: a polynomial near zero, where the quotient would lose digits.
static inline F hyperbolic(const F x) {
% if dt.code == 'f64':
    return tanh(x);
% else:
    const F z = x * x, e = clt_exp_neg_${F}(x > 0 ? x * -2.0f : x * 2.0f), far = (1 - e) / (1 + e);
    const F near = ((((z * -5.895156615e-3f + 2.079597052e-2f) * z - 5.378382998e-2f) * z + 1.333192412e-1f) * z - 3.33332980e-1f) * z * x + x;
    return z < 0.36f ? near : x < 0 ? -far : far;
% endif
}
</%def>\
## The range of batch rows of this work-item (on a GPU, of this work-group).
<%def name="rows()">\
    const long from = ${'get_group_id(0)' if gpu else 'get_global_id(0)'} * share, until = min(from + share, batch);
</%def>\
## Declare ${name}_at, the first row of step `s` in the data, and ${name}_rows, its number of rows: 0 if there is no
## such step.
<%def name="step(name, s, inside)">\
        const long ${name}_rows = ${inside} ? ${f'plan[2 * ({s}) + 1]' if plan else 'batch'} : 0;
        const long ${name}_at = ${inside} ? ${f'plan[2 * ({s})]' if plan else f'(reverse ? steps - 1 - ({s}) : {s}) * batch'} : 0;
</%def>\
<%def name="blocks()">\
% if gpu:
        for (long block = 0; block < width; block += ${lanes}) {
            const long j = min(block + unit, width - 1);
% else:
        for (long j = 0; j < BLOCKS; j += 1)
% endif
</%def>\
## On a GPU: this lane's unit within a block, its part of a product's terms, and local memory for the sums of all parts
## but the first.
<%def name="lane(N)">\
% if gpu:
    const int unit = get_local_id(0) % ${lanes}, part = get_local_id(0) / ${lanes};
% if parts > 1:
    __local T sums[${(parts - 1) * R * N * lanes}];
% endif
% endif
</%def>\
## Add up the sums of all parts in the lanes of the first part, which alone run what follows, up to `ended`.
<%def name="joined(N)">\
% if parts > 1:
                if (part) {
% for r in range(R):
% for n in range(N):
                    sums[((part - 1) * ${R * N} + ${r * N + n}) * ${lanes} + unit] = a${r}_${n};
% endfor
% endfor
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                if (part == 0)
                    for (int p = 0; p < ${parts - 1}; p++) {
% for r in range(R):
% for n in range(N):
                        a${r}_${n} += sums[(p * ${R * N} + ${r * N + n}) * ${lanes} + unit];
% endfor
% endfor
                    }
% endif
                if (part == 0 && block + unit < width) {
</%def>\
<%def name="ended()">\
                }
% if parts > 1:
                barrier(CLK_LOCAL_MEM_FENCE);
% endif
</%def>\
## Add to a0_0, ... the product of the rows at x0, x1, ... and the weights, N vectors for each of `terms`.
<%def name="product(N, terms, length)">\
% if gpu:
<% ahead = max(16 // (N * R), 2) %>\
                const long share_of = (${terms} + ${parts - 1}) / ${parts}, last = min((part + 1) * share_of, (long)${terms});
                long k = part * share_of;
                __global const T *w = packed + j + k * ${N} * width;
% for A in (ahead, 1): ## so many terms are on their way at once
                for (; k + ${A} <= last; k += ${A}) {
% for u in range(A):
% for n in range(N):
                    const T w${u}_${n} = *w; w += width;
% endfor
% for r in range(R):
                    const T x${r}_${u} = x${r}[k + ${u}];
% endfor
% endfor
% for u in range(A):
% for r in range(R):
                    ${' '.join(f'a{r}_{n} = x{r}_{u} * w{u}_{n} + a{r}_{n};' for n in range(N))}
% endfor
% endfor
                }
% endfor
% else:
                __global const T *w = packed + j * ${f'({length}) * {N * V}'};
                for (long k = 0; k < ${terms}; k++) {
% for n in range(N):
                    const F w${n} = GET(w + ${n} * ${V});
% endfor
% for r in range(R):
                    { const T x = x${r}[k]; ${' '.join(f'a{r}_{n} = x * w{n} + a{r}_{n};' for n in range(N))} }
% endfor
                    w += ${N * V};
                }
% endif
</%def>\

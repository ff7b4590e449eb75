<%doc>
Lines of a sparse matrix times a dense one: out[i] = sum over e in [pointer[i], pointer[i + 1]) of values[e] *
dense[other[e]], in the order of the entries; the last line ends at `count`; without `valued` all values are one. CPU:
lines are divided so that work-items have about the same number of entries; each keeps up to four vectors of ${V}
columns in registers (with `one`, there is one column). GPU: a lane takes one column of a line.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%
R = dt.reg
vector = not gpu and not one
by = 'clt_ld_e(values + e) * ' if valued else ''
plain = dt.cl == R
%>\
% if dt.code == 'f64':
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
#pragma OPENCL FP_CONTRACT OFF
${w.prelude()}
${headers}
typedef ${I} I;
typedef ${R} R;
${w.element(dt, 'e')}
% if vector:
typedef ${R}${V} RV;
% if plain:
typedef ${R}${V} RU __attribute__((aligned(${dt.itemsize})));
#define LOAD(p) (*(__global const RU *)(p))
#define STORE(p, v) *(__global RU *)(p) = (v)
% else:
#define LOAD(p) (RV)(${', '.join(f'clt_ld_e((p) + {j})' for j in range(V))})
#define STORE(p, v) do { ${' '.join(f'clt_st_e((p) + {j}, (v).s{j:x});' for j in range(V))} } while (0)
% endif
% endif
#define CLT_START(i) ((i) < lines ? (I)pointer[i] : count)
<%def name="block(vectors)">
            for (; c + ${vectors * V} <= width; c += ${vectors * V}) {
% for u in range(vectors):
                RV s${u} = (RV)0;
% endfor
                for (I e = from; e < to; ++e) {
                    __global const ${dt.cl} *p = d + (I)other[e] * step + c;
% if ahead:
                    __global const ${dt.cl} *soon = d + (I)other[e + ${ahead} < count ? e + ${ahead} : e] * step + c;
% for j in range(0, vectors * V, 64 // dt.itemsize):
                    CLT_PREFETCH(soon + ${j});
% endfor
% endif
% if valued:
                    const RV by = (RV)clt_ld_e(values + e);
% endif
% for u in range(vectors):
                    s${u} += ${'by * ' if valued else ''}LOAD(p + ${u * V});
% endfor
                }
% for u in range(vectors):
                STORE(o + c + ${u * V}, s${u});
% endfor
            }
</%def>\
__kernel void ${fn}(__global const long *restrict pointer, __global const long *restrict other, \
% if valued:
__global const ${dt.cl} *restrict values,\
% endif

                    __global const ${dt.cl} *restrict d, __global ${dt.cl} *restrict out,
                    const I lines, const I count, const I width, const I step, const I op, const I oo, const I od${', const I ov' if valued else ''}) {
    pointer += op; other += oo; d += od;
% if valued:
    values += ov;
% endif
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
% if gpu:
    for (I q = part; q < lines * width; q += parts) {
        const I i = q / width, c = q % width, from = (I)pointer[i], to = CLT_START(i + 1);
        R sum = 0;
        for (I e = from; e < to; ++e) sum += ${by}clt_ld_e(d + (I)other[e] * step + c);
        clt_st_e(out + q, sum);
    }
% else:
    ## Parts have equal numbers of lines plus entries: find the lines at which this part begins and ends.
    I bounds[2];
    for (int side = 0; side < 2; ++side) {
        const long share = (long)(count + lines) * (part + side) / parts;
        I low = 0, high = lines;
        while (low < high) {
            const I mid = (low + high) / 2;
            if (pointer[mid] + mid < share) low = mid + 1; else high = mid;
        }
        bounds[side] = low;
    }
    for (I i = bounds[0]; i < bounds[1]; ++i) {
        const I from = (I)pointer[i], to = CLT_START(i + 1);
        __global ${dt.cl} *o = out + i * width;
% if one:
        R sum = 0;
        for (I e = from; e < to; ++e) {
% if ahead:
            CLT_PREFETCH(d + (I)other[e + ${ahead} < count ? e + ${ahead} : e] * step);
% endif
            sum += ${by}clt_ld_e(d + (I)other[e] * step);
        }
        clt_st_e(o, sum);
% else:
        I c = 0;
        ${block(4)}
        ${block(1)}
        if (c < width) {
            R sum[${V}];
            const I rest = width - c;
            for (I j = 0; j < rest; ++j) sum[j] = 0;
            for (I e = from; e < to; ++e) {
                __global const ${dt.cl} *p = d + (I)other[e] * step + c;
% if valued:
                const R by = clt_ld_e(values + e);
% endif
                for (I j = 0; j < rest; ++j) sum[j] += ${'by * ' if valued else ''}clt_ld_e(p + j);
            }
            for (I j = 0; j < rest; ++j) clt_st_e(o + c + j, sum[j]);
        }
% endif
    }
% endif
}

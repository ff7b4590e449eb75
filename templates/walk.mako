## Walks over strided regions, shared by the data-moving templates.
##
## A space `p` of rank r has arguments p_n0.. (sizes) and, for each operand x, p_x0.. (strides). `each` runs its body for
## the linear positions [first, last) of the space; inside, p_x is the element offset of x relative to the caller's base,
## and p_i the linear position. CPU: an odometer with a plain inner loop; GPU callers give a range of one position.

<%def name="prelude()">
#pragma OPENCL EXTENSION cl_khr_byte_addressable_store : enable
typedef struct { ulong lo, hi; } clt_b16;
</%def>

<%def name="params(p, rank, names)">
% for d in range(rank):
, const I ${p}_n${d}\
% endfor
% for x in names:
% for d in range(rank):
, const I ${p}_${x}${d}\
% endfor
% endfor
</%def>

<%def name="decode(p, rank, names, position)">
    I ${p}_q = ${position};
% for d in reversed(range(rank)):
% if d:
    I ${p}_at${d} = ${p}_q % ${p}_n${d}; ${p}_q /= ${p}_n${d};
% else:
    I ${p}_at0 = ${p}_q;
% endif
% endfor
% for x in names:
    I ${p}_${x}_at = ${" + ".join(f"{p}_at{d} * {p}_{x}{d}" for d in range(rank))};
% endfor
</%def>

<%def name="each(p, rank, names, first, last, units=(), run='', limit='', start='0')">
<% z = rank - 1 %>
{
    const I ${p}_last = ${last};
    I ${p}_pos = ${first};
    ${decode(p, rank, names, f"{p}_pos")}
    while (${p}_pos < ${p}_last) {
        const I ${p}_run = min((I)(${p}_last - ${p}_pos), (I)(${p}_n${z} - ${p}_at${z}));
        ${run}
        for (I ${p}_j = ${start}; ${p}_j < ${limit or p + '_run'}; ++${p}_j) {
% for k, x in enumerate(names):
            const I ${p}_${x} = ${p}_${x}_at + ${p}_j${"" if k < len(units) and units[k] else f" * {p}_{x}{z}"};
% endfor
            const I ${p}_i = ${p}_pos + ${p}_j;
            ${caller.body()}
        }
        ${p}_pos += ${p}_run; ${p}_at${z} += ${p}_run;
% for x in names:
        ${p}_${x}_at += ${p}_run * ${p}_${x}${z};
% endfor
% for d in reversed(range(1, rank)):
        if (${p}_at${d} == ${p}_n${d}) {
            ${p}_at${d} = 0; ++${p}_at${d - 1};
% for x in names:
            ${p}_${x}_at += ${p}_${x}${d - 1} - ${p}_n${d} * ${p}_${x}${d};
% endfor
% endfor
% for d in range(1, rank):
        }
% endfor
    }
}
</%def>

<%def name="lane(p, rank, names, last)">
for (I ${p}_i = (I)get_global_id(0); ${p}_i < ${last}; ${p}_i += (I)get_global_size(0)) {
    ${decode(p, rank, names, f"{p}_i")}
% for x in names:
    const I ${p}_${x} = ${p}_${x}_at;
% endfor
    ${caller.body()}
}
</%def>

## Loads and stores of one element of dtype `dt` in its register type: clt_ld_<tag>(p), clt_st_<tag>(p, v).
<%def name="element(dt, tag)">
% if dt.code == "f16":
static inline float clt_ld_${tag}(__global const half *p) { return vload_half(0, p); }
static inline void clt_st_${tag}(__global half *p, const float v) { vstore_half(v, 0, p); }
% elif dt.code == "bf16":
static inline float clt_ld_${tag}(__global const ushort *p) { return as_float((uint)*p << 16); }
static inline void clt_st_${tag}(__global ushort *p, const float v) {
    const uint u = as_uint(v);
    *p = v != v ? (ushort)0x7fc0 : (ushort)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
% elif dt.code == "c32":
static inline float2 clt_ld_${tag}(__global const uint *p) { return vload_half2(0, (__global const half *)p); }
static inline void clt_st_${tag}(__global uint *p, const float2 v) { vstore_half2_rte(v, 0, (__global half *)p); }
% else:
static inline ${dt.reg} clt_ld_${tag}(__global const ${dt.cl} *p) { return *p; }
static inline void clt_st_${tag}(__global ${dt.cl} *p, const ${dt.reg} v) { *p = v; }
% endif
</%def>

## Read index operands 0..k-1 at offsets ${p}_i0.. and add value * step to `target`; a bad index is noted, and `leave`
## is executed.
<%def name="lookup(count, p, target, wrap, gpu, leave, position, inner='')">
% for k in range(count):
    {
        long clt_v = (long)i${k}[oi${k} + ${p}_i${k}${inner.format(k=k)}];
% if wrap:
        const long clt_raw = clt_v;
        clt_v += clt_v < 0 ? (long)t${k}_size : 0;
% else:
        const long clt_raw = clt_v;
% endif
        if (clt_v < 0 || clt_v >= (long)t${k}_size) {
% if gpu:
            if (atomic_cmpxchg((volatile __global int *)status, 0, 1) == 0) {
                status[1] = clt_raw; status[2] = ${k}; status[3] = (long)(${position});
            }
% else:
            if (!status[0]) {
                status[0] = 1; status[1] = clt_raw; status[2] = ${k}; status[3] = (long)(${position});
            }
% endif
            ${leave}
        }
        ${target} += (I)clt_v * t${k}_step;
    }
% endfor
</%def>

## As `lookup`, but without a branch, for loops over many elements: a bad index counts as 0 and sets `bad`. If `bad` is
## set, the caller repeats the loop with `lookup`, which notes the index. The caller must not read anything if a size is
## 0.
<%def name="lookup_all(count, p, target, wrap, bad)">
% for k in range(count):
    long clt_v${k} = (long)i${k}[oi${k} + ${p}_i${k}];
% if wrap:
    clt_v${k} += clt_v${k} < 0 ? (long)t${k}_size : 0;
% endif
% endfor
    const int clt_ok = ${" & ".join(f"((ulong)clt_v{k} < (ulong)t{k}_size)" for k in range(count))};
    ${bad} |= !clt_ok;
    ${target} += clt_ok ? ${" + ".join(f"(I)clt_v{k} * t{k}_step" for k in range(count))} : 0;
</%def>

## As `lookup_all` for the eight elements of a run from `at` on: declares the vector `target` of their offsets. `flat`:
## whether an index operand is contiguous along the run. Eight elements far apart are then read at once, which has more
## loads in flight than one at a time.
<%def name="lookup_eight(index, flat, p, z, at, target, wrap, bad)">
% for k, t in enumerate(index):
<% place = f"oi{k} + {p}_i{k}_at + {at}" %>\
% if flat[k]:
    long8 clt_w${k} = convert_long8(*(__global const clt_index${k} *)(i${k} + ${place}));
% else:
    long8 clt_w${k} = (long8)(${", ".join(f"i{k}[{place.replace(at, f'({at} + {j}) * {p}_i{k}{z}')}]" for j in range(8))});
% endif
% if wrap:
    clt_w${k} += (clt_w${k} >> 63) & (long8)(t${k}_size);
% endif
% endfor
    const long8 clt_oks = ${" & ".join(f"(as_ulong8(clt_w{k}) < (ulong8)((ulong)t{k}_size))" for k in range(len(index)))};
    ${bad} |= ~clt_oks;
    const long8 ${target} = clt_oks & (${" + ".join(f"clt_w{k} * (long8)(t{k}_step)" for k in range(len(index)))});
</%def>

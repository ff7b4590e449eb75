<%doc>
Images of bytes resampled along width, then height, on a CPU: fixed-point weights, rounded to bytes after each axis.
Four adjacent bytes are summed at once: those of a pixel with `packed` channels, else those of the same place of four
planes, which are interleaved in `line` first. An axis is 'same', or reads size[o] positions from start[o] on;
weight[k * no + o] is the k-th one's weight, 0 beyond the last.
A work-item takes rows of the output of a group of planes: each input row is resampled along the width once, into a ring
buffer of as many rows as an output row may read, whose bytes lie plane by plane, as in the output. `taps`: positions
that each output place of the width reads, if few, else 0.
</%doc>\
<%
planes_each = 1 if packed else 4
each = packed or 4  # bytes of a place
%>\
typedef ${I} I;
typedef uint u_uint __attribute__((aligned(1)));
typedef int4 u_int4 __attribute__((aligned(4)));
typedef uchar16 u_uchar16 __attribute__((aligned(1)));
typedef uint16 u_uint16 __attribute__((aligned(4)));
#if defined(__has_builtin)
#if __has_builtin(__builtin_convertvector)
#define CLT_TO(x, T) __builtin_convertvector(x, T)
#endif
#endif
#ifndef CLT_TO
#define CLT_TO(x, T) convert_##T(x)
#endif
static inline int16 clt_bytes(const int16 sum, const int shift) { return max(min(sum >> shift, (int16)(255)), (int16)(0)); }
## Compute `sum`: the bytes of `many` places from ow on, of pixels `each` bytes apart.
<%def name="across(many)">\
<%
lanes = 4 * many
%>\
% for k in range(many):
            __global const uchar *const from${k} = line + w_start[ow + ${k}] * ${each};
% endfor
            int${lanes} sum = (int${lanes})(w_round);
% if taps:
% for k in range(taps):
            ${tap(many, k)}
% endfor
% else:
% if many > 1:
            const int4 n = *(__global const u_int4 *)(w_size + ow);
            const int reads = max(max(n.s0, n.s1), max(n.s2, n.s3));
% else:
            const int reads = w_size[ow];
% endif
            for (int k = 0; k < reads; ++k) ${tap(many, 'k')}
% endif
            sum = max(min(sum >> w_shift, (int${lanes})(255)), (int${lanes})(0));
</%def>\
<%def name="tap(many, k)">\
{
% if many > 1:
                const uint4 p = (uint4)(${', '.join(f'*(__global const u_uint *)(from{u} + {k} * {each})' for u in range(4))});
                const int4 w = *(__global const u_int4 *)(w_weight + ${k} * mw + ow);
                sum += CLT_TO(as_uchar16(p), int16) * w.s0000111122223333;
% else:
                sum += CLT_TO(as_uchar4(*(__global const u_uint *)(from0 + ${k} * ${each})), int4) * w_weight[${k} * mw + ow];
% endif
            }
</%def>\
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global const uchar *restrict src, __global uchar *restrict out, __global uchar *scratch\
% for a, kind in (('h', high), ('w', wide)):
% if kind != 'same':
, __global const int *restrict ${a}_start, __global const int *restrict ${a}_size, __global const int *restrict ${a}_weight
    , __global const int *restrict ${a}_bits\
% endif
% endfor
    , const I planes, const I channels, const I os, const I sn, const I sc, const I nh, const I mh, const I sh, const I nw, const I mw, const I sw,
    const I room, const I pitch, const I slots) {
    const I groups = ${'planes' if packed else '(planes + 3) / 4'}, width = ${f'mw * {packed}' if packed else 'mw'};
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), total = groups * mh;
    const I begin = total / parts * part + min(part, (I)(total % parts)), end = begin + total / parts + (part < total % parts);
    ## Scratch memory: the interleaved input row, the row resampled along the width, pixel by pixel, and the ring of
    ## such rows.
    __global uchar *const line = scratch + part * room, *const beside = line + (nw + ${spare}) * 4, *const ring = beside + (mw + 16) * 4;
% if wide != 'same':
    const int w_shift = w_bits[0], w_round = 1 << (w_shift - 1);
% endif
% if high != 'same':
    const int h_shift = h_bits[0], h_round = 1 << (h_shift - 1);
% endif
    I group = begin / mh, oh = begin % mh, done = 0;
    for (I row = begin; row < end; ++row) {
        __global const uchar *plane[${planes_each}];
% if packed:
        plane[0] = src + os + group * sn;
% else:
        const int several = (int)min((I)4, planes - group * 4);
        for (int l = 0; l < 4; ++l) {
            const I number = group * 4 + min(l, several - 1);
            plane[l] = src + os + number / channels * sn + number % channels * sc;
        }
% endif
% if high == 'same':
        const I h_first = oh;
        const int h_n = 1;
% else:
        const I h_first = h_start[oh];
        const int h_n = h_size[oh];
% endif
        for (done = max(done, h_first); done < h_first + h_n; ++done) {
            __global uchar *const to = ring + done % slots * pitch * ${planes_each};
% if wide == 'same':
## The width is not resampled: copy the row to the ring.
% if packed:
            __global const uchar *const from = plane[0] + done * sh;
            if (sw == ${packed}) for (I x = 0; x < width; ++x) to[x] = from[x];
            else for (I x = 0; x < mw; ++x) for (I c = 0; c < ${packed}; ++c) to[x * ${packed} + c] = from[x * sw + c];
% else:
            for (int l = 0; l < several; ++l) {
                __global const uchar *const from = plane[l] + done * sh;
                for (I x = 0; x < mw; ++x) to[l * pitch + x] = from[x * sw];
            }
% endif
% else:
% if packed:
            __global const uchar *const from = plane[0] + done * sh;
            if (sw == ${packed}) {
                const I length = nw * ${packed};
                I x = 0;
                if (length >= 16) for (; x < length; x += 16) {
                    x = min(x, length - 16);
                    *(__global u_uchar16 *)(line + x) = *(__global const u_uchar16 *)(from + x);
                }
                for (; x < length; ++x) line[x] = from[x];
            } else for (I x = 0; x < nw; ++x) for (I c = 0; c < ${packed}; ++c) line[x * ${packed} + c] = from[x * sw + c];
% else:
            I x = 0;
            if (sw == 1 && nw >= 16) for (; x < nw; x += 16) {
                x = min(x, nw - 16);
                uint16 all = CLT_TO(*(__global const u_uchar16 *)(plane[0] + done * sh + x), uint16);
% for l in range(1, 4):
                all |= CLT_TO(*(__global const u_uchar16 *)(plane[${l}] + done * sh + x), uint16) << ${8 * l};
% endfor
                *(__global u_uint16 *)(line + x * 4) = all;
            }
            for (; x < nw; ++x)
                for (int l = 0; l < 4; ++l) line[x * 4 + l] = plane[l][done * sh + x * sw];
% endif
            __global uchar *const made = ${'to' if packed else 'beside'};
            I ow = 0;
            if (mw >= 4) for (; ow < mw; ow += 4) {
                ow = min(ow, mw - 4);
${across(4)}\
                const uchar16 value = CLT_TO(sum, uchar16);
% if packed:
                ## Each store has 4 bytes; those beyond a pixel's channels are overwritten by the next pixel's store.
                const uint4 pixels = as_uint4(value);
% for p in range(4):
                *(__global u_uint *)(made + (ow + ${p}) * ${packed}) = pixels.s${p};
% endfor
% else:
                *(__global u_uchar16 *)(made + ow * 4) = value;
% endif
            }
            for (; ow < mw; ++ow) {
${across(1)}\
                *(__global u_uint *)(made + ow * ${packed or 4}) = as_uint(CLT_TO(sum, uchar4));
            }
% if not packed:
            for (I x = 0; x < mw; x += 16) {
                const uint16 all = *(__global const u_uint16 *)(made + x * 4);
% for l in range(4):
                *(__global u_uchar16 *)(to + ${l} * pitch + x) = CLT_TO(all${f' >> {8 * l}' if l else ''}, uchar16);
% endfor
            }
% endif
% endif
        }
        for (int l = 0; l < ${'1' if packed else 'several'}; ++l) {
            __global uchar *const to = out + ((group * ${planes_each} + l) * mh + oh) * width;
            __global const uchar *const from = ring + l * pitch;
            I j = 0;
<%def name="down(vectors)">\
% if high == 'same':
            __global const uchar *const p = from + h_first % slots * (pitch * ${planes_each}) + j;
% for u in range(max(vectors, 1)):
            ${f'*(__global u_uchar16 *)(to + j + {16 * u}) = *(__global const u_uchar16 *)(p + {16 * u});' if vectors else 'to[j] = *p;'}
% endfor
% else:
            I slot = h_first % slots;
            int${'16' if vectors else ''} ${', '.join(f'sum{u} = h_round' for u in range(max(vectors, 1)))};
            for (int k = 0; k < h_n; ++k) {
                __global const uchar *const p = from + slot * (pitch * ${planes_each}) + j;
                const int w = h_weight[k * mh + oh];
% for u in range(max(vectors, 1)):
                sum${u} += ${f'CLT_TO(*(__global const u_uchar16 *)(p + {16 * u}), int16)' if vectors else '(int)*p'} * w;
% endfor
                if (++slot == slots) slot = 0;
            }
% for u in range(max(vectors, 1)):
% if vectors:
            *(__global u_uchar16 *)(to + j + ${16 * u}) = CLT_TO(clt_bytes(sum${u}, h_shift), uchar16);
% else:
            to[j] = (uchar)max(min(sum0 >> h_shift, 255), 0);
% endif
% endfor
% endif
</%def>\
            for (; j + 64 <= width; j += 64) {
${down(4)}\
            }
            if (width >= 16) for (; j < width; j += 16) {
                j = min(j, width - 16);
${down(1)}\
            }
            for (; j < width; ++j) {
${down(0)}\
            }
        }
        if (++oh == mh) oh = 0, done = 0, ++group;
    }
}

<%doc>
Compaction by a mask. CPU schedule, two launches: `count` writes how many elements each of the work-items' chunks keeps;
then each work-item starts from the sum of the counts before its own and walks its chunk. A single work-item (`alone`)
needs one launch: it counts first and writes the total to places[0]. GPU schedule: an inclusive scan of the mask gave
every element its place, and a lane moves its element.
action select: out[place] = src[p]; nonzero: out[d][place] = coordinate d of p, `many` in a row; scatter: dst[p] =
values[place].
There is no branch on the mask's data, which a CPU would mispredict: every element is written at the next place, and the
place advances if the element is kept. The walk ends after as many elements as the chunk keeps, so nothing is written
beyond its last place. `words`: the mask's bytes are contiguous. Eight of them then become the bits of one number,
`kept`, for which a table says which elements go to the front (`packed`: with x86's shuffles; AVX-512 has an instruction
for it); where few are kept, eight zeros are skipped at once.
</%doc>\
<%!
# AVX-512's compress instruction by the type of an element: the builtin's suffix, its number type, lanes, its mask type.
PACKS = {'uint': ('si', 'int', 16, 'ushort'), 'ulong': ('di', 'long', 8, 'uchar')}
few = 256
FRONT = ', '.join(str(k) for bits in range(256) for k in sorted(range(8), key=lambda k: not bits >> k & 1))
%>\
<%namespace name="w" file="/walk.mako"/>\
<%
names = ['m'] + (['s'] if action in ('select', 'scatter') else [])
one = '(clt_ld_m(mask + om + p_m).x != 0 || clt_ld_m(mask + om + p_m).y != 0)' if mask.is_complex else '(clt_ld_m(mask + om + p_m) != 0)'
%>\
${w.prelude()}
typedef ${I} I;
typedef ${T} T;
<%
words = not gpu and mask.itemsize == 1 and units[0]
packs = words and T in PACKS and all(units) and action == 'select'
packed = words and T != 'clt_b16' and all(units) and action == 'select'
eights = packed or words and action == 'nonzero'
vectors = not gpu and (action == 'count' or alone) and units[0] and mask.category < 3 and mask.cl == mask.reg
lanes = min(16, 64 // mask.itemsize)
%>\
% if packs or eights:
## popcount() is a call into a library on some drivers.
#define clt_count popcount
#ifdef __has_builtin
#if __has_builtin(__builtin_popcount)
#undef clt_count
#define clt_count __builtin_popcount
#endif
#endif
% endif
% if packs:
${pack_helpers()}
% endif
% if words:
typedef ulong W __attribute__((aligned(1)));
% endif
% if eights:
__constant uchar clt_front[2048] __attribute__((aligned(8))) = {${FRONT}};
#if defined(__SSE2__) && defined(__has_builtin)
#if __has_builtin(__builtin_ia32_pmovmskb128)
#define CLT_BITS
typedef char B16 __attribute__((vector_size(16)));
#endif
#endif
static inline uint clt_bits(const ulong w) {
#ifdef CLT_BITS
    const ulong2 eight = (ulong2)(w, 0);
    return (uchar)~__builtin_ia32_pmovmskb128(__builtin_astype(eight, B16) == (B16){});
#else
    const ulong ones = (((w & 0x7f7f7f7f7f7f7f7fUL) + 0x7f7f7f7f7f7f7f7fUL | w) & 0x8080808080808080UL) >> 7;
    return (uint)(ones * 0x0102040810204080UL >> 56);
#endif
}
#define clt_first(kept) (*(__constant const uchar8 *)(clt_front + 8 * (kept)))
% endif
% if packed:
${shuffle_helpers()}
% elif eights:
typedef long8 E8 __attribute__((aligned(8)));
% endif
% if vectors:
typedef ${mask.cl}${lanes} __attribute__((aligned(${mask.itemsize}))) U;
typedef ${ {1: 'char', 2: 'short', 4: 'int', 8: 'long'}[mask.itemsize]}${lanes} N;
typedef long${lanes} L;
% endif
${w.element(mask, 'm')}
<%def name="keep()">
% if action == 'select':
            out[place] = src[os + p_s];
% elif action == 'nonzero':
% for d in range(rank):
            out[${f'{d} * many + ' if d else ''}place] = p_at${d}${' + p_j' if d == rank - 1 and not gpu else ''};
% endfor
% elif gpu:
            if (place < limit) src[os + p_s] = out[place];
            else if (!status[0]) { status[0] = 1; status[1] = (long)place; status[2] = 0; status[3] = (long)p_i; }
% else:
            const T here = src[os + p_s], there = out[place];
            src[os + p_s] = one ? there : here;
% endif
</%def>\
<%def name="pack_helpers()">
<% kind, number, lanes, bits = PACKS[T] %>\
#if defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__has_builtin)
#if __has_builtin(__builtin_ia32_compress${kind}512_mask) && __has_builtin(__builtin_ia32_cvtb2mask128)
#define CLT_PACK
typedef char M16 __attribute__((vector_size(16)));
typedef char U16 __attribute__((vector_size(16), aligned(1)));
typedef ${number} P __attribute__((vector_size(64)));
typedef ${number} Q __attribute__((vector_size(64), aligned(${64 // lanes})));
#endif
#endif
</%def>\
## Compact sixteen elements at a time, as long as whole vectors can be stored before `end`: kept elements move to the
## front of a vector.
<%def name="pack_run()">
<% kind, number, lanes, bits = PACKS[T] %>\
#ifdef CLT_PACK
        for (; many_kept && p_start + 16 <= p_run && place + 16 <= end; p_start += 16) {
            const uint kept = (ushort)__builtin_ia32_cvtb2mask128(*(__global const U16 *)(mask + om + p_m_at + p_start) != (M16){});
% for k in range(0, 16, lanes):
            {
                const ${bits} some = (${bits})(kept >> ${k});
                const P v = *(__global const Q *)(src + os + p_s_at + p_start + ${k});
                *(__global Q *)(out + place) = __builtin_ia32_compress${kind}512_mask(v, (P){}, some);
                place += clt_count((uint)some);
            }
% endfor
        }
#endif
</%def>\
## Move the kept ones of eight elements to the front, where the processor has a shuffle for it.
<%def name="shuffle_helpers()">
#if defined(__AVX2__) && defined(__has_builtin)
#if __has_builtin(__builtin_ia32_permvarsi256) && __has_builtin(__builtin_ia32_pshufb128)
#define CLT_SHUFFLES
% if T in ('uint', 'ulong'):
typedef int S8 __attribute__((vector_size(32)));
typedef int X8 __attribute__((vector_size(32), aligned(4)));
% else:
typedef char S16 __attribute__((vector_size(16)));
% endif
typedef ${T}8 E8 __attribute__((aligned(${ {'uchar': 1, 'ushort': 2, 'uint': 4, 'ulong': 8}[T]})));
static inline void clt_pack(__global ${T} *to, __global const ${T} *of, const uint kept) {
% if T == 'uint':
    const int8 places = convert_int8(clt_first(kept));
    *(__global X8 *)to = __builtin_ia32_permvarsi256(*(__global const X8 *)of, __builtin_astype(places, S8));
% elif T == 'ulong':
    ## Two vectors of four elements each. The low four's kept elements come first: clt_count(low) of them.
    const uint low = kept & 15, high = kept >> 4;
    const int4 a = convert_int4(clt_first(low).lo), b = convert_int4(clt_first(high).lo);
    const int8 pa = (int8)(2 * a.x, 2 * a.x + 1, 2 * a.y, 2 * a.y + 1, 2 * a.z, 2 * a.z + 1, 2 * a.w, 2 * a.w + 1);
    const int8 pb = (int8)(2 * b.x, 2 * b.x + 1, 2 * b.y, 2 * b.y + 1, 2 * b.z, 2 * b.z + 1, 2 * b.w, 2 * b.w + 1);
    const S8 first = __builtin_ia32_permvarsi256(*(__global const X8 *)of, __builtin_astype(pa, S8));
    const S8 second = __builtin_ia32_permvarsi256(*(__global const X8 *)(of + 4), __builtin_astype(pb, S8));
    *(__global X8 *)to = first;
    *(__global X8 *)(to + clt_count(low)) = second;
% elif T == 'ushort':
    const ushort8 places = convert_ushort8(clt_first(kept)) * (ushort8)(0x0202) + (ushort8)(0x0100);
    const ushort8 v = *(__global const E8 *)of;
    *(__global E8 *)to = __builtin_astype(__builtin_ia32_pshufb128(__builtin_astype(v, S16), __builtin_astype(places, S16)), ushort8);
% else:
    const uchar8 v = *(__global const E8 *)of, places = clt_first(kept);
    const uchar16 both = (uchar16)(v, v), twice = (uchar16)(places, places);
    *(__global E8 *)to = __builtin_astype(__builtin_ia32_pshufb128(__builtin_astype(both, S16), __builtin_astype(twice, S16)), uchar16).lo;
% endif
}
#endif
#endif
</%def>\
## Compact eight elements at a time, as long as eight can be stored before `end`.
<%def name="eight_run()">
% if packed:
#ifdef CLT_SHUFFLES
% endif
        for (; many_kept && p_start + 8 <= p_run && place + 8 <= end; p_start += 8) {
            __global const uchar *const eight = (__global const uchar *)mask + om + p_m_at + p_start;
            const uint kept = clt_bits(*(__global const W *)eight);
% if packed:
            clt_pack(out + place, src + os + p_s_at + p_start, kept);
% else:
            const long8 first = convert_long8(clt_first(kept)) + (long8)(p_at${rank - 1} + p_start);
% for d in range(rank):
            *(__global E8 *)(out + ${f'{d} * many + ' if d else ''}place) = ${'first' if d == rank - 1 else f'(long8)(p_at{d})'};
% endfor
% endif
            place += clt_count(kept);
        }
% if packed:
#endif
% endif
</%def>\
<%def name="count_run(one, at)">
        I p_j = 0;
% if vectors:
        ## Count in lanes as wide as the mask's, downwards, as true is -1 in vectors; `stop` is where such a lane could
        ## overflow.
        while (p_j + ${4 * lanes} <= p_run) {
            const I stop = min(p_run, (I)(p_j + ${min((1 << (8 * mask.itemsize - 1)) - 1, 1 << 16) * lanes}));
            N found = 0;
            for (; p_j + ${lanes} <= stop; p_j += ${lanes}) found += *(__global const U *)(mask + om + p_m_at + p_j) != (U)(0);
            const L wide = convert_long${lanes}(found);
            total -= ${' + '.join(f'wide.s{k:x}' for k in range(lanes))};
        }
% endif
        while (p_j < p_run) {
            const I stop = min(p_run, (I)(p_j + ${1 << 16}));
            int found = 0;
            for (; p_j < stop; ++p_j) {
                const I p_m = ${at('m')};
                found += ${one};
            }
            total += found;
        }
</%def>\
<%def name="keep_run(one, at, names, words, packs)">
        I p_start = 0;
% if packs:
        ${pack_run()}
% endif
% if eights:
        ${eight_run()}
% endif
        for (I p_j = p_start; p_j < p_run && place < end;) {
% if words:
            if (p_j + 8 <= p_run && *(__global const W *)(mask + om + p_m_at + p_j) == 0) { p_j += 8; continue; }
% endif
            const I stop = min(p_run, (I)(p_j + 8));
            for (; p_j < stop && place < end; ++p_j) {
% for x in names:
                const I p_${x} = ${at(x)};
% endfor
                const int one = ${one};
                ${keep()}
                place += one;
            }
        }
</%def>\
% if not gpu:
#define CLT_WHOLE
__attribute__((reqd_work_group_size(1, 1, 1)))
% endif
__kernel void ${fn}(__global const ${mask.cl} *mask, __global ${"const " if not (gpu or alone or action == "count") else ""}${counted} *places\
% if action in ('select', 'scatter'):
, __global T *src\
% endif
% if action != 'count':
, __global T *out\
% endif
% if action == 'nonzero':
, ${"I" if alone else "const I"} many\
% endif
% if action == 'scatter':
, __global long *status, const I slot, const I limit\
% endif
, const I n, const I om\
% if action in ('select', 'scatter'):
, const I os\
% endif
${w.params('p', rank, names)}\
) {
% if action == 'scatter':
    status += slot;
% endif
% if gpu:
<%w:lane p="p" rank="${rank}" names="${names}" last="n">
        if (${one}) {
            const I place = (I)places[p_i] - 1;
            ${keep()}
        }
</%w:lane>
% else:
<%
def at(x): return f"p_{x}_at + p_j" + ('' if units[names.index(x)] else f" * p_{x}{rank - 1}")
%>\
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), first = n / parts * part + min(part, (I)(n % parts));
    const I size = n / parts + (part < n % parts);
% if action == 'count' or alone:
    I total = 0;
% endif
% if alone:
<% counting = capture(count_run, one, at) %>\
<%w:each p="p" rank="${rank}" names="${names}" first="first" last="first + size" units="${units}" run="${counting}" limit="0">
</%w:each>
    places[0] = total;
    I place = 0;
    const I end = total;
% if action == 'nonzero':
    many = total;
% endif
% elif action != 'count':
    I place = 0;
    for (I k = 0; k < part; ++k) place += places[k];
    const I end = place + places[part];
% endif
% if action == 'scatter':
    if (end > limit) {
        status += 4 * part;
        status[0] = 1; status[1] = (long)limit; status[2] = 0; status[3] = (long)first;
        return;
    }
% endif
% if packs or eights:
    ## If few elements are kept, skipping zeros takes less time, as the elements between the kept ones are not read.
    const int many_kept = end - place > size / ${few};
% endif
<%
run = capture(count_run, one, at) if action == 'count' else capture(keep_run, one, at, names, words, packs)
%>\
<%w:each p="p" rank="${rank}" names="${names}" first="first" last="first + size" units="${units}" run="${run}" limit="0">
</%w:each>
% if action == 'count':
    places[part] = total;
% endif
% endif
}

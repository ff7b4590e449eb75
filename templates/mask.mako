<%doc>
Compaction by a mask. CPU schedule, two launches: `count` writes how many elements each of the work-items' chunks keeps;
then each work-item starts from the sum of the counts before its own and walks its chunk. A work-item that is `alone` needs one launch: it
counts first and writes that to places[0]. GPU schedule: an inclusive
scan of the mask gave every element its place, and a lane moves its element.
action select: out[place] = src[p]; nonzero: out[d][place] = coordinate d of p, `many` in a row; scatter: dst[p] = values[place].
No branch asks a CPU's predictor what a mask holds: every element is written at the next place, and stays if it is kept. The chunk's own
count ends the walk, so nothing is written behind its last place. AVX-512 selects a vector at a time. `words`: the mask's bytes are dense, and eight zeros are passed over at once.
</%doc>\
<%!
# By the type of an element: of x86's instruction the name, its type of a number, lanes, and its type of a mask.
PACKS = {'uint': ('si', 'int', 16, 'ushort'), 'ulong': ('di', 'long', 8, 'uchar')}
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
vectors = not gpu and (action == 'count' or alone) and units[0] and mask.category < 3 and mask.cl == mask.reg
lanes = min(16, 64 // mask.itemsize)
%>\
% if packs:
${pack_helpers()}
% endif
% if words:
typedef ulong W __attribute__((aligned(1)));
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
## Sixteen elements at a time as long as what is written stays before `end`: those kept go to the front of a vector.
<%def name="pack_run()">
<% kind, number, lanes, bits = PACKS[T] %>\
#ifdef CLT_PACK
        for (; p_start + 16 <= p_run && place + 16 <= end; p_start += 16) {
            const uint kept = (ushort)__builtin_ia32_cvtb2mask128(*(__global const U16 *)(mask + om + p_m_at + p_start) != (M16){});
% for k in range(0, 16, lanes):
            {
                const ${bits} some = (${bits})(kept >> ${k});
                const P v = *(__global const Q *)(src + os + p_s_at + p_start + ${k});
                *(__global Q *)(out + place) = __builtin_ia32_compress${kind}512_mask(v, (P){}, some);
                place += popcount((uint)some);
            }
% endfor
        }
#endif
</%def>\
<%def name="count_run(one, at)">
        I p_j = 0;
% if vectors:
        // Numbers as wide as the mask's count down what is found in each lane, as a vector's true is -1: that many do not overflow.
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

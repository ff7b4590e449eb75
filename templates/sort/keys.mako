## Order-preserving unsigned keys of storage bits, made with integer arithmetic alone. All NaNs share the largest key and
## both zeros one key, so that equal values keep their order. Only for these two keys is the value read from the source
## instead of made from the key, as random reads of the source are slow. Without `order` positions are unknown: -0 then
## comes before 0, and all NaNs become the same one.
<%def name="keys(dt, descending, order=True)">
<%
size = dt.itemsize
U = {1: 'uchar', 2: 'ushort', 4: 'uint', 8: 'ulong'}[size]
suffix = 'UL' if size == 8 else 'u'
sign = f'0x{1 << (8 * size - 1):x}{suffix}'
full = f'0x{(1 << (8 * size)) - 1:x}{suffix}'
infinity = {'f16': 0x7c00, 'bf16': 0x7f80, 'f32': 0x7f800000, 'f64': 0x7ff0000000000000}.get(dt.code)
flip = '~' if descending else ''
original = ', __global const K *original' if order else ''
kept = f'k == (K){full} || k == (K){sign} ? *original : ' if order else ''
%>
typedef ${U} K;
#define CLT_TOP ((K)${full})
static inline K clt_key(const K u) {
% if infinity is not None:
    const K a = u & (K)~${sign};
    K k = (u & (K)${sign}) ? (K)~u : (K)(u | (K)${sign});
    k = a > (K)0x${f'{infinity:x}'}${suffix} ? (K)${full} : ${f'a == 0 ? (K){sign} : ' if order else ''}k;
    return (K)${flip}k;
% elif dt.is_signed:
    return (K)${flip}(u ^ (K)${sign});
% else:
    return (K)${flip}u;
% endif
}
% if infinity is not None:
static inline int clt_is_nan_key(const K key) { return (K)(${flip}key) == (K)${full}; }
static inline K clt_bits(const K key${original}) {
    const K k = (K)(${flip}key);
    return ${kept}(k & (K)${sign}) ? (K)(k ^ (K)${sign}) : (K)~k;
}
% elif dt.is_signed:
static inline int clt_is_nan_key(const K key) { return 0; }
static inline K clt_bits(const K key${original}) { return (K)(${flip}key ^ (K)${sign}); }
% else:
static inline int clt_is_nan_key(const K key) { return 0; }
static inline K clt_bits(const K key${original}) { return (K)${flip}key; }
% endif
</%def>

## Keys of `lanes` values at a time: clt_keys(), and clt_any() for whether a mask is set in any lane. The key of -0 is
## not that of 0 as in clt_key(), but the one next to it: as no key lies between, comparisons with other keys give the
## same.
<%def name="vector_keys(dt, descending, lanes)">
<%
size = dt.itemsize
U, S = {1: ('uchar', 'char'), 2: ('ushort', 'short'), 4: ('uint', 'int'), 8: ('ulong', 'long')}[size]
suffix = 'UL' if size == 8 else 'u'
sign = f'(KV)((K)0x{1 << (8 * size - 1):x}{suffix})'
infinity = {'f16': 0x7c00, 'bf16': 0x7f80, 'f32': 0x7f800000, 'f64': 0x7ff0000000000000}.get(dt.code)
flip = '~' if descending else ''
n = lanes
%>
typedef ${U}${n} KV;
typedef ${U}${n} __attribute__((aligned(${size}))) KU;
static inline KV clt_keys(const KV u) {
% if infinity is not None:
    const KV a = u & ~${sign};
    KV k = (u & ${sign}) ? ~u : (u | ${sign});
    k = a > (KV)((K)0x${f'{infinity:x}'}${suffix}) ? (KV)(CLT_TOP) : k;
    return ${flip}k;
% else:
    return ${flip}${f'(u ^ {sign})' if dt.is_signed else 'u'};
% endif
}
static inline int clt_any(const ${S}${n} v${n}) {
% while n > 1:
<% n //= 2; width = n if n > 1 else '' %>\
    const ${S}${width} v${n} = v${2 * n}.lo | v${2 * n}.hi;
% endwhile
    return v1 != 0;
}
</%def>

## Sort by counting, for so few keys that each is compared with all others, a vector of them at a time: `few` declares
## the memory, `each_of_few` runs its body for each of the `count` keys held[i], whose sorted position is `to`; equal
## keys keep their order.
<%def name="few(dt)">
<% L, wide = (16, 'uint') if dt.itemsize <= 4 else (8, 'ulong') %>
#define CLT_FEW 128
    typedef ${wide}${L} V;
    typedef ${wide[1:]}${L} S;
    const S lane = (S)(${', '.join(map(str, range(L)))});
    ${wide} held[CLT_FEW] __attribute__((aligned(64)));
    ${wide[1:]} places_of[${L}] __attribute__((aligned(64)));
</%def>
<%def name="each_of_few(dt, count)">
<% L = 16 if dt.itemsize <= 4 else 8 %>
            for (int b = 0; b < ${count}; b += ${L}) {
                const V mine = *(const V *)(held + b);
                S before = 0; // counts downwards, as true is -1 in vectors
                int j = 0;
                for (; j < b; ++j) before += (V)held[j] <= mine;
                for (; j < min(b + ${L}, ${count}); ++j) before += ((V)held[j] < mine) | (((V)held[j] == mine) & ((S)(j - b) < lane));
                for (; j < ${count}; ++j) before += (V)held[j] < mine;
                *(S *)places_of = -before;
                for (int i = b; i < min(b + ${L}, ${count}); ++i) {
                    const int to = (int)places_of[i - b];
                    ${caller.body()}
                }
            }
</%def>

## The words that a sort moves: the key in the upper bits, its position in the lower ones; or without `order` the key
## alone.
<%def name="words(order)">
% if order:
typedef ulong W;
static inline W clt_word(const ulong key, const ulong position) { return key << 32 | position; }
% else:
typedef K W;
static inline W clt_word(const K key, const ulong position) { return key; }
% endif
</%def>

## clt_radix: stable sort of `count` words by `bits` bits of (key - lowest), keys beginning at bit `at` of a word,
## moving between the buffers a and b; returns whether the result is in b. If *low is set, low digits may be skipped if
## hardly any two keys agree in the other ones; *low then receives the number of skipped digits.
<%def name="radix(at, most)">
#define CLT_ROOM ${max(-(-b // m) << -(-b // -(-b // m)) for m in (8, 11) for b in range(1, most + 1))}
static int clt_radix(__global W *a, __global W *b, uint *hist, const I count, const W lowest, const int bits, int *low) {
    ## Digits of 11 bits have more values than the first-level cache has lines; they take fewer passes, but longer to
    ## add up the counts.
    const int widest = count < (1 << 12) ? 8 : 11, passes = (bits + widest - 1) / widest, width = (bits + passes - 1) / passes, radix = 1 << width;
    const uint mask = radix - 1;
    int in = 0, skipped = 0;
    for (int i = 0; i < passes << width; ++i) hist[i] = 0;
% for p in range(1, min(4, -(-most // 8)) + 1):
    ${'else ' if p > 1 else ''}if (passes == ${p}) {
        for (I i = 0; i < count; ++i) {
            const W k = (a[i] - lowest) >> ${at};
            ++hist[(uint)k & mask];
% for d in range(1, p):
            ++hist[(${d} << width) + ((uint)(k >> ${f'{d} * ' if d > 1 else ''}width) & mask)];
% endfor
        }
    }
% endfor
% if most > 32:
    else {
        for (I i = 0; i < count; ++i) {
            W k = a[i] - lowest;
            for (int d = 0; d < passes << width; d += radix) { ++hist[d + ((uint)k & mask)]; k >>= width; }
        }
    }
% endif
    if (*low) {
        ## Expected number of keys that agree with a key in the digits kept so far, if digits were independent.
        float alike = (float)count;
        for (skipped = passes; skipped > 0 && alike > 0.25f;) {
            const uint *h = hist + (--skipped << width);
            float8 squares = 0;
            float sum = 0;
            int i = 0;
            for (; i + 8 <= radix; i += 8) {
                const float8 c = convert_float8(vload8(0, h + i));
                squares += c * c;
            }
            for (; i < radix; ++i) sum += (float)h[i] * (float)h[i];
            const float4 s4 = squares.lo + squares.hi;
            alike *= (sum + s4.x + s4.y + s4.z + s4.w) / ((float)count * (float)count);
        }
        *low = skipped;
    }
    for (int d = skipped; d < passes; ++d) {
        uint *h = hist + (d << width), total = 0, single = 0;
        for (int i = 0; i < radix; ++i) {
            const uint c = h[i];
            single |= c == (uint)count;
            h[i] = total; total += c;
        }
        if (single) continue;
        const int down = ${at} + d * width;
        I i = 0;
        for (; i + 4 <= count; i += 4) {
% for u in range(4):
            const W k${u} = a[i + ${u}];
% endfor
% for u in range(4):
            const uint t${u} = h[(uint)((k${u} - lowest) >> down) & mask]++;
            b[t${u}] = k${u};
% endfor
% for u in range(4):
            CLT_PREFETCH_TO_WRITE(b + t${u} + 64 / sizeof(W));
% endfor
        }
        for (; i < count; ++i) { const W k = a[i]; b[h[(uint)((k - lowest) >> down) & mask]++] = k; }
        __global W *const t = a; a = b; b = t;
        in ^= 1;
    }
    return in;
}
</%def>

## Order-preserving unsigned keys of storage bits, made with integer arithmetic alone. All NaNs share the largest key and
## both zeros one key, so that equal values keep their order; for those two the bits come from the source, not the key:
## read there alone, as a source in no order is slow to read.
## Without `order` there is no source to ask: -0 comes before 0, and every NaN is the same one.
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

## The same keys of ${lanes} values at a time: clt_keys(), and clt_any() for whether a comparison of them holds anywhere. Only that of -0
## is not the one of 0, but beside it: no key lies between, so what comes before another key still does.
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

## Keys of which there are so few that each is compared with all others, a vector of them at a time: `few` makes room for them,
## `each_of_few` runs its body for each of the `count` keys held[i], which goes to place `to`; equal keys keep their order.
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
                S before = 0; // minus how many: a vector's true is -1
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

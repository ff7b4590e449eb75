## Vectors of L lanes in memory, shared by the families that compute: full, partial (first m lanes) and strided accesses.
## A partial load repeats element 0 in the lanes it does not read, so that every lane holds data of the operand.
## Strided accesses go lane by lane between memory and register: by way of an array they took twice the time, because a
## vector load that follows scalar stores to the same memory has to wait (no store forwarding). Partial accesses are one
## masked instruction of AVX-512; elsewhere they are made of halves, quarters, … of a vector, as the bits of m say.
## `needed`: the (dtype code, helper) pairs a kernel calls; None for all. u_<code> is a vector type with an element's
## alignment, which drivers load with one instruction, while vload is a call into their library. Loops over lanes are
## kept as loops: unrolled, they would take a quarter of a kernel's build time.
<%!
# AVX-512's masked loads and stores, by bytes of a number and lanes: the builtin's suffix, its number type, its mask
# type.
MASKED = {
    (4, 16): ("si512", "int", "ushort"), (4, 8): ("si256", "int", "uchar"), (4, 4): ("si128", "int", "uchar"),
    (8, 8): ("di512", "long", "uchar"), (8, 4): ("di256", "long", "uchar"), (8, 2): ("di128", "long", "uchar"),
    (2, 16): ("hi256", "short", "ushort"), (2, 8): ("hi128", "short", "uchar"), (1, 16): ("qi128", "char", "ushort"),
}
# AVX2's masked loads and stores, by bytes of a number: lanes, the builtin's suffix, its number type.
HALF_MASKED = {4: (8, "d256", "int"), 8: (4, "q256", "long")}
WORDS = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}
%>\
<%def name="helpers(memories, L, needed=None, apart=False)">\
<% rolled = '_Pragma("clang loop vectorize(disable) unroll(disable)")' %>\
% if L > 1:
#if defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__has_builtin)
#if __has_builtin(__builtin_ia32_loaddqusi512_mask)
#define CLT_MASKS
#endif
#elif defined(__AVX2__) && defined(__has_builtin)
#if __has_builtin(__builtin_ia32_maskloadd256)
#define CLT_HALF_MASKS
#endif
#endif
% endif
<%
def by_halves(code, mem): return not mem.dt.is_complex and (needed is None or (code, 'load') in needed or (code, 'store') in needed)
sizes = {mem.dt.itemsize for code, mem in memories.items() if by_halves(code, mem)}
%>\
% for size, word in ((size, WORDS[size]) for size in sorted(sizes)):
% for k in (2 ** e for e in range(1, L.bit_length() - 1)):
typedef ${word}${k} u_${word}${k} __attribute__((aligned(${size})));
% endfor
% endfor
% for code, mem in memories.items():
% if L > 1 and mem.dt.is_complex:
${pairs(code, mem, L, needed)}\
% elif L > 1:
<%
masked, number, mask = MASKED.get((mem.dt.itemsize, L), ("", "", ""))
bits = f'clt_bits_{code}'
of_bits, to_bits = mem.of_bits, mem.to_bits('v')
lanes_of_m = f'({mask})((1u << m) - 1)'
word = WORDS[mem.dt.itemsize]
%>\
% if masked:
#ifdef CLT_MASKS
typedef ${number} ${bits} __attribute__((vector_size(${mem.dt.itemsize * L})));
#endif
% endif
% if code not in ('f16', 'bf16'):
typedef ${mem.reg} u_${code} __attribute__((aligned(${mem.dt.itemsize})));
% endif
<%
some, halves, of_half = HALF_MASKED.get(mem.dt.itemsize, (0, "", ""))
halved = some and some < L and code not in ('f16', 'bf16') # vectors of two registers
kind = f'clt_part_{code}'
%>\
<%def name="load_part()">\
% if halved:
#ifdef CLT_HALF_MASKS
  typedef ${of_half} ${kind} __attribute__((vector_size(32)));
  const ${word}${L} known = as_${word}${L}((${of_half}${L})(${', '.join(map(str, range(L)))}) < (${of_half}${L})(m));
  const __private ${kind} *const from = (const __private ${kind} *)(size_t)p;
% for k in range(L // some):
<% lanes = f"known.s{''.join(f'{k * some + i:x}' for i in range(some))}" %>\
  const ${word}${some} part${k} = __builtin_astype(__builtin_ia32_maskload${halves}(from + ${k}, __builtin_astype(${lanes}, ${kind})), ${word}${some});
% endfor
  const ${word}${L} number = (${word}${L})(${', '.join(f'part{k}' for k in range(L // some))}) | (~known & (${word}${L})(*(__global const ${word} *)p));
  return ${of_bits('number')};
#else
% endif
  __global const ${word} *const q = (__global const ${word} *)p;
  const ${word} first = *q;
${halves_read(word, L)}\
  return ${of_bits(f'r{L}')};
% if halved:
#endif
% endif
</%def>\
<%def name="store_part()">\
  __global ${word} *q = (__global ${word} *)p;
  const ${word}${L} r${L} = ${f'as_{word}{L}({to_bits})'};
${halves_written(word, L)}\
</%def>\
% if apart:
#ifndef CLT_MASKS
% if (needed is None or (code, 'load') in needed) and not halved:
__attribute__((noinline)) static ${mem.reg} load_part_${code}(__global const ${mem.cl} *p, const int m) {
${load_part()}\
}
% endif
% if needed is None or (code, 'store') in needed:
__attribute__((noinline)) static void store_part_${code}(__global ${mem.cl} *p, const ${mem.reg} v, const int m) {
${store_part()}\
}
% endif
#endif
% endif
% if needed is None or (code, 'load') in needed:
static inline ${mem.reg} load_${code}(__global const ${mem.cl} *p, const int m) {
% if masked:
#ifdef CLT_MASKS
  const ${bits} first = ${f"*(__global const {number} *)p" if mem.dt.reg != mem.cl else f"__builtin_astype(*p, {number})"} - (${bits}){};
  return ${of_bits(f'__builtin_ia32_loaddqu{masked}_mask((const {number} *)(size_t)p, first, {lanes_of_m})')};
#else
% endif
  if (m == ${L}) return ${mem.vector_load('p')};
% if apart and not halved:
  return load_part_${code}(p, m);
% else:
${load_part()}\
% endif
% if masked:
#endif
% endif
}
% endif
% if needed is None or (code, 'gather') in needed:
static inline ${mem.reg} gather_${code}(__global const ${mem.cl} *p, const long stride, const int m) {
% if code in ('f16', 'bf16'):
  __global const ushort *const q = (__global const ushort *)p; // gathered as 16-bit words, which are widened together
  return ${of_bits(f"(ushort{L})({', '.join(f'q[({k} < m ? {k} : 0) * stride]' for k in range(L))})")};
% else:
  return (${mem.reg})(${', '.join(mem.scalar_load(f'p + ({k} < m ? {k} : 0) * stride') for k in range(L))});
% endif
}
% endif
% if needed is None or (code, 'store') in needed:
static inline void store_${code}(__global ${mem.cl} *p, const ${mem.reg} v, const int m) {
% if masked:
#ifdef CLT_MASKS
  __builtin_ia32_storedqu${masked}_mask((${number} *)(size_t)p, __builtin_astype(${to_bits}, ${bits}), ${lanes_of_m});
#else
% endif
  if (m == ${L}) { ${mem.vector_store('p', 'v')}; return; }
% if apart:
  store_part_${code}(p, v, m);
% else:
${store_part()}\
% endif
% if masked:
#endif
% endif
}
% endif
% if needed is not None and (code, 'stream') in needed:
static inline void stream_${code}(__global ${mem.cl} *p, const ${mem.reg} v, const int m) {
% if code in ('f16', 'bf16'):
  if (m == ${L}) { const ushort${L} bits = ${to_bits}; CLT_STREAM(bits, (__global ushort${L} *)p); }
% else:
  if (m == ${L}) CLT_STREAM(v, (__global ${mem.reg} *)p);
% endif
  else store_${code}(p, v, m);
}
% endif
% if needed is None or (code, 'scatter') in needed:
static inline void scatter_${code}(__global ${mem.cl} *p, const long stride, const ${mem.reg} v, const int m) {
% if code in ('f16', 'bf16'):
  __global ushort *const q = (__global ushort *)p;
  const ushort${L} bits = as_ushort${L}(${to_bits});
  if (m == ${L}) { ${' '.join(f'q[{k} * stride] = bits.s{k:x};' for k in range(L))} return; }
  ushort t[${L}];
  vstore${L}(bits, 0, t);
  ${rolled}
  for (int k = 0; k < m; k++) q[k * stride] = t[k];
% else:
  if (m == ${L}) { ${' '.join(mem.scalar_store(f'p + {k} * stride', f'v.s{k:x}') + ';' for k in range(L))} return; }
  ${mem.dt.reg} t[${L}];
  vstore${L}(v, 0, t);
  ${rolled}
  for (int k = 0; k < m; k++) ${mem.scalar_store('p + k * stride', 't[k]')};
% endif
}
% endif
% endif
% endfor
</%def>\
## Load the first m numbers at q (m < L), and fill the other lanes with `first`. r<k> is a vector of k lanes with the
## last m % k of them.
<%def name="halves_read(word, L)">\
  const ${word}2 r2 = (${word}2)(m & 1 ? q[m & ~1] : first, first);
% for k in (2 ** e for e in range(1, L.bit_length() - 1)):
<% some = f"*(__global const u_{word}{k} *)(q{f' + (m & ~{2 * k - 1})' if 2 * k < L else ''})" %>\
  const ${word}${2 * k} r${2 * k} = m & ${k} ? (${word}${2 * k})(${some}, r${k}) : (${word}${2 * k})(r${k}, (${word}${k})(first));
% endfor
</%def>\
## Store the first m lanes of r<L> at q.
<%def name="halves_written(word, L)">\
% for k in (L >> e for e in range(1, L.bit_length() - 1)):
  const ${word}${k} r${k} = m & ${k} ? r${2 * k}.hi : r${2 * k}.lo;
  if (m & ${k}) { *(__global u_${word}${k} *)q = r${2 * k}.lo; q += ${k}; }
% endfor
  if (m & 1) *q = r2.lo;
</%def>\
## Loads and stores of complex numbers, a vector of real parts and one of imaginary parts in registers, interleaved in
## memory.
<%def name="pairs(code, mem, L, needed)">\
<%
rolled = '_Pragma("clang loop vectorize(disable) unroll(disable)")'
real = mem.dt.reg[:-1]
V = f"{real}{L}"
def wanted(helper): return needed is None or (code, helper) in needed
%>\
typedef ${V} u_${code} __attribute__((aligned(${mem.dt.itemsize // 2})));
static inline ${mem.reg} gather_${code}(__global const ${mem.cl} *p, const long stride, const int m) {
  ${real} x[${L}], y[${L}];
  ${rolled}
  for (int k = 0; k < ${L}; k++) {
    const ${mem.cl} z = p[(k < m ? k : 0) * stride];
    x[k] = z.x, y[k] = z.y;
  }
  return make_${mem.reg}(vload${L}(0, x), vload${L}(0, y));
}
static inline void scatter_${code}(__global ${mem.cl} *p, const long stride, const ${mem.reg} v, const int m) {
  ${real} x[${L}], y[${L}];
  vstore${L}(v.lo, 0, x);
  vstore${L}(v.hi, 0, y);
  ${rolled}
  for (int k = 0; k < m; k++) p[k * stride] = (${mem.cl})(x[k], y[k]);
}
% if wanted('load'):
static inline ${mem.reg} load_${code}(__global const ${mem.cl} *p, const int m) {
  if (m < ${L}) return gather_${code}(p, 1, m);
  __global const u_${code} *q = (__global const u_${code} *)p;
  const ${V} a = q[0], b = *(__global const u_${code} *)((__global const ${real} *)p + ${L});
  return make_${mem.reg}((${V})(a.even, b.even), (${V})(a.odd, b.odd));
}
% endif
% for helper in ('store', 'stream'):
% if wanted(helper) and not (helper == 'stream' and needed is None):
static inline void ${helper}_${code}(__global ${mem.cl} *p, const ${mem.reg} v, const int m) {
  if (m < ${L}) {
    scatter_${code}(p, 1, v, m);
    return;
  }
  ${V} a, b;
  a.even = v.lo.lo, a.odd = v.hi.lo;
  b.even = v.lo.hi, b.odd = v.hi.hi;
  __global ${real} *q = (__global ${real} *)p;
% if helper == 'stream':
  CLT_STREAM(a, (__global ${V} *)q);
  CLT_STREAM(b, (__global ${V} *)(q + ${L}));
% else:
  *(__global u_${code} *)q = a;
  *(__global u_${code} *)(q + ${L}) = b;
% endif
}
% endif
% endfor
</%def>\
## Add up the lanes of each of the L vectors s0_0, s0_1, …: the sums are the lanes of s<log2 of L>_0. Each step adds
## neighbouring lanes, of two vectors into one.
<%def name="joined(reg, L, indent)">\
% for stage in range(1, L.bit_length()):
% for k in range(L >> stage):
<% one, two = f's{stage - 1}_{2 * k}', f's{stage - 1}_{2 * k + 1}' %>\
${' ' * indent}const ${reg} s${stage}_${k} = (${reg})(${one}.even + ${one}.odd, ${two}.even + ${two}.odd);
% endfor
% endfor
</%def>\

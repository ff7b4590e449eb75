## Vectors of L lanes in memory, shared by the families that compute: full, partial (first m lanes) and strided accesses.
## A partial load repeats element 0 in the lanes it does not read, so that every lane holds data of the operand.
## Strided accesses go lane by lane between memory and register: by an array in between they took twice the time.
## `needed`: the (dtype code, helper) pairs a kernel calls; None for all. u_<code> is a vector at any element's address, which
## drivers load with one instruction where vload is a call into their library. Loops over a partial vector stay loops: unrolled,
## they are a quarter of a kernel's build.
<%def name="helpers(memories, L, needed=None)">\
<% rolled = '_Pragma("clang loop vectorize(disable) unroll(disable)")' %>\
% for code, mem in memories.items():
% if L > 1:
% if code not in ('f16', 'bf16'):
typedef ${mem.reg} u_${code} __attribute__((aligned(${mem.dt.itemsize})));
% endif
% if needed is None or (code, 'load') in needed:
static inline ${mem.reg} load_${code}(__global const ${mem.cl} *p, const int m) {
  if (m == ${L}) return ${mem.vector_load('p')};
  ${mem.dt.reg} t[${L}];
  ${rolled}
  for (int k = 0; k < ${L}; k++) t[k] = ${mem.scalar_load('p + (k < m ? k : 0)')};
  return vload${L}(0, t);
}
% endif
% if needed is None or (code, 'gather') in needed:
static inline ${mem.reg} gather_${code}(__global const ${mem.cl} *p, const long stride, const int m) {
  return (${mem.reg})(${', '.join(mem.scalar_load(f'p + ({k} < m ? {k} : 0) * stride') for k in range(L))});
}
% endif
% if needed is None or (code, 'store') in needed:
static inline void store_${code}(__global ${mem.cl} *p, const ${mem.reg} v, const int m) {
  if (m == ${L}) { ${mem.vector_store('p', 'v')}; return; }
  ${mem.dt.reg} t[${L}];
  vstore${L}(v, 0, t);
  ${rolled}
  for (int k = 0; k < m; k++) ${mem.scalar_store('p + k', 't[k]')};
}
% endif
% if needed is not None and (code, 'stream') in needed:
static inline void stream_${code}(__global ${mem.cl} *p, const ${mem.reg} v, const int m) {
  if (m == ${L}) CLT_STREAM(v, (__global ${mem.reg} *)p);
  else store_${code}(p, v, m);
}
% endif
% if needed is None or (code, 'scatter') in needed:
static inline void scatter_${code}(__global ${mem.cl} *p, const long stride, const ${mem.reg} v, const int m) {
  if (m == ${L}) { ${' '.join(mem.scalar_store(f'p + {k} * stride', f'v.s{k:x}') + ';' for k in range(L))} return; }
  ${mem.dt.reg} t[${L}];
  vstore${L}(v, 0, t);
  ${rolled}
  for (int k = 0; k < m; k++) ${mem.scalar_store('p + k * stride', 't[k]')};
}
% endif
% endif
% endfor
</%def>\

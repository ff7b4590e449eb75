## A function that transposes strided rows to contiguous ones, by squares in registers. `word`: an element's type, of
## `size` bytes.
<%def name="helper(word, size, line, turn)">\
<% many, n = min(16, 32 // size), 16 // size %>\
typedef ${word}${many} clt_across __attribute__((aligned(${size})));
typedef ${word} clt_of_row;
## Copy `rows` rows, adjacent in memory, of n elements with stride `step`, to contiguous rows `pitch` elements
## apart.
CLT_WIDE static inline void turn_rows(__global clt_of_row *restrict to, const long pitch, __global const clt_of_row *restrict from, const long step, const long rows, const long n) {
  for (long k = 0; k < n; k += ${many}) {
    const long j = k + ${many} <= n ? k : n - ${many};
    for (long i = 0; i < rows; i += ${line // size})
      for (int u = 0; u < ${many}; u++) CLT_PREFETCH_BESIDE(from + (j + ${2 * many} + u) * step + i);
    for (long h = 0; h < rows; h += ${many}) {
      const long i = h + ${many} <= rows ? h : rows - ${many};
      if (i < 0) {
        for (int u = 0; u < ${many}; u++)
          for (long v = 0; v < rows; v++) to[v * pitch + j + u] = from[(j + u) * step + v];
        break;
      }
% for u in range(many):
      const clt_across r${u} = *(__global const clt_across *)(from + (j + ${u}) * step + i);
% endfor
<% statements, columns = turn(n, many, 'clt_across') %>\
% for text in statements:
      ${text}
% endfor
% for u, name in enumerate(columns):
      *(__global clt_across *)(to + (i + ${u}) * pitch + j) = ${name};
% endfor
    }
  }
}
</%def>\

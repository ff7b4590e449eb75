## Walks along rows by blocks of indices, between which lines of the next row are asked for.
<%! block = 64 %>\

## How many elements of `touched` are asked for with each block of n indices: whole cache lines of `line`.
<%def name="share(touched, n, line)">\
(${touched} / ${line} / (${n} / ${block} + 1) + 1) * ${line}\
</%def>

## Asks for the next such lines of the row `soon`, of which those before `next` were.
<%def name="ask_share(ask, line)">
for (const I stop = min((I)touched, (I)(next + asked)); next < stop; next += ${line}) ${ask}(soon + next);
</%def>

## clt_bad(i0, n, size) says whether one of n indices is bad, and clt_wrapped(v, size) counts a negative one from the end.
<%def name="checks(index, wrap)">
typedef ${index}8 clt_index8 __attribute__((aligned(${4 if index == 'int' else 8})));
% if wrap:
static inline long clt_wrapped(const long v, const long size) { return v + ((v >> 63) & size); }
% endif
static inline int clt_bad(__global const ${index} *i0, const I n, const long size) {
  // Of a bad index v one of v and size - 1 - v is negative.
  long8 all = 0;
  I j = 0;
  for (; j + 8 <= n; j += 8) {
    long8 v = convert_long8(*(__global const clt_index8 *)(i0 + j));
% if wrap:
    v += (v >> 63) & (long8)(size);
% endif
    all |= v | ((long8)(size - 1) - v);
  }
  const long4 four = all.lo | all.hi;
  long any = four.x | four.y | four.z | four.w;
  for (; j < n; j++) {
    const long v = ${'clt_wrapped((long)i0[j], size)' if wrap else '(long)i0[j]'};
    any |= v | (size - 1 - v);
  }
  return any < 0;
}
</%def>

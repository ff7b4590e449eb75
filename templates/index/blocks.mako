## Shared by kernels that walk along rows by blocks of indices and prefetch a share of the next row with each block.
<%! block = 64 %>\

## The elements of a row's `touched` ones that are prefetched with each block, if the row has n indices: whole cache
## lines of `line` elements.
<%def name="share(touched, n, line)">\
(${touched} / ${line} / (${n} / ${block} + 1) + 1) * ${line}\
</%def>

## Prefetch the next share of the row `soon`, from element `next` on.
<%def name="ask_share(ask, line)">
for (const I stop = min((I)touched, (I)(next + asked)); next < stop; next += ${line}) ${ask}(soon + next);
</%def>

## clt_bad(i0, n, size) returns whether any of n indices is out of range; clt_wrapped(v, size) makes a negative index
## count from the end.
<%def name="checks(index, wrap)">
typedef ${index}8 clt_index8 __attribute__((aligned(${4 if index == 'int' else 8})));
% if wrap:
static inline long clt_wrapped(const long v, const long size) { return v + ((v >> 63) & size); }
% endif
static inline int clt_bad(__global const ${index} *i0, const I n, const long size) {
  ## For an index v out of range, v or size - 1 - v is negative.
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

## Shared by the GPU schedules of sorts: a work-group of LANES stably sorts the positions of a tile of LANES * ITEMS
## keys by a digit of four bits. Keys stay in place, in local memory. A lane has ITEMS consecutive positions and counts
## their digits in counters of its own, two of 16 bits per word: digits d and d + 8. Prefix sums of the counters, over
## digits and then lanes, are where its positions go. Arrays with a stride between lanes are padded by a word per lane,
## to avoid bank conflicts.
<%def name="room(lanes, items, word)">
    __local ${word} staged[${lanes * (items + 1)}]; // indexed with CLT_AT
    __local ushort held[${lanes * (items + 1)}];
    __local uint counts[${lanes * 9}], sums[${2 * lanes}];
    const int lane = (int)get_local_id(0);
</%def>

## Macros for all kernels of a program, which precede them.
<%def name="sizes(lanes, items)">
#define LANES ${lanes}
#define ITEMS ${items}
#define TILE ${lanes * items}
#define EACH_ITEM _Pragma("unroll") for (int j = 0; j < ITEMS; ++j)
#define CLT_AT(p) ((uint)(p) + (uint)(p) / ITEMS)
#define CLT_AT_EACH (CLT_AT(lane) + j * (LANES + LANES / ITEMS)) // CLT_AT(lane + j * LANES)
#define CLT_COUNTER(d) (((d) & 7) * LANES + lane + (((d) & 7) * LANES + lane) / 8)
</%def>

## Declare `prefix`, the sum of `own` over the lanes before, and `total`, over all lanes. Between two uses there has to
## be a barrier.
<%def name="scan(own)">
    sums[lane] = ${own};
    barrier(CLK_LOCAL_MEM_FENCE);
    int now = 0;
    for (int gap = 1; gap < LANES; gap <<= 1) {
        const uint sum = sums[now + lane] + (lane >= gap ? sums[now + lane - gap] : 0u);
        now ^= LANES;
        sums[now + lane] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const uint prefix = sums[now + lane] - ${own}, total = sums[now + LANES - 1];
</%def>

## Sort place[j] of all lanes by a digit, given as an expression, and leave the order in held[], too. The digit is
## computed twice instead of kept, as tiles are short of registers.
<%def name="order_by(digit)">
    {
        uint rank[ITEMS];
        _Pragma("unroll") for (int j = 0; j < 8; ++j) counts[lane * 9 + j] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        EACH_ITEM {
            const uint d = ${digit}, at = CLT_COUNTER(d), high = (d >> 3) * 16, c = counts[at];
            rank[j] = (c >> high) & 0xffff;
            counts[at] = c + (1u << high);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        uint own = 0;
        _Pragma("unroll") for (int j = 0; j < 8; ++j) own += counts[lane * 9 + j];
        ${scan('own')}
        uint before = prefix + (total << 16); // the upper halves, digits 8 to 15, come after all lower digits
        _Pragma("unroll") for (int j = 0; j < 8; ++j) {
            const uint c = counts[lane * 9 + j];
            counts[lane * 9 + j] = before;
            before += c;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        EACH_ITEM {
            const uint d = ${digit};
            rank[j] += (counts[CLT_COUNTER(d)] >> ((d >> 3) * 16)) & 0xffff;
            held[CLT_AT(rank[j])] = (ushort)place[j];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        EACH_ITEM place[j] = held[lane * (ITEMS + 1) + j];
    }
</%def>

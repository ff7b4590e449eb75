## What the GPU schedules of sorts share: a work-group of LANES puts the places of a tile of LANES * ITEMS keys in the order of a digit of four bits of
## these, stably. Keys stay where they are, in local memory; a lane has ITEMS places that follow each other, and counts their digits in
## counters of its own, two of 16 bits to a word: digit d and d + 8. Their sums, digit by digit and lane by lane, are where its places go.
## What lane by lane is far apart has a word more: its parts then lie in banks of their own.
<%def name="room(lanes, items, word)">
    __local ${word} staged[${lanes * (items + 1)}]; // by CLT_AT
    __local ushort held[${lanes * (items + 1)}];
    __local uint counts[${lanes * 9}], sums[${2 * lanes}];
    const int lane = (int)get_local_id(0);
</%def>

## For all kernels of a program, before them.
<%def name="sizes(lanes, items)">
#define LANES ${lanes}
#define ITEMS ${items}
#define TILE ${lanes * items}
#define EACH_ITEM _Pragma("unroll") for (int j = 0; j < ITEMS; ++j)
#define CLT_AT(p) ((uint)(p) + (uint)(p) / ITEMS)
#define CLT_AT_EACH (CLT_AT(lane) + j * (LANES + LANES / ITEMS)) // of lane + j * LANES
#define CLT_COUNTER(d) (((d) & 7) * LANES + lane + (((d) & 7) * LANES + lane) / 8)
</%def>

## `prefix`, the sum of `own` of the lanes before, and `total`, of all; other barriers lie between two of these.
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

## Puts place[j] of all lanes in the order of a digit, which an expression says, and leaves the order in held[], too. The digit is asked twice, so
## that it need not be kept: registers are what tiles are short of.
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
        uint before = prefix + (total << 16); // digits of 8 and more come after all others
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

## What matrix products of devices where a work-item is a lane share. A work-group of G x G items makes a tile of TM x TM numbers, TM = G * W.
## Item (lx, ly) has W x W of them in registers: rows and columns by fours, 4 * G between two fours, so that it reads local memory by
## vectors and its neighbours read what lies beside. Nothing is indexed by a number that is not known here: no compiler then keeps the sums in memory.
## Sums go through K in order, whatever G, W and BK are.

<%def name="tiles(acc, G, W, BK)">\
<% TM = G * W %>\
    __local ${acc}4 tiles[${max(2 * BK * (TM // 4 + 1), G * TM // 4)}];
    __local ${acc} *const at = (__local ${acc} *)tiles, *const bt = at + ${BK * (TM + 4)};
    const int lx = get_local_id(0), ly = get_local_id(1), lane = ly * ${G} + lx;
</%def>

## Where number (k, i) of a tile lies in `at` or `bt`.
<%def name="place(k, i, TM)">(${k}) * ${TM + 4} + ${i}</%def>

<%def name="sums(acc, W)">\
% for r in range(W):
        ${acc}4 ${', '.join(f's{r}_{h} = ({acc}4)(0)' for h in range(W // 4))};
% endfor
</%def>

<%def name="step(acc, G, W, BK)">\
<% pitch = G * W // 4 + 1 %>\
            for (int k = 0; k < ${BK}; k++) {
% for h in range(W // 4):
                const ${acc}4 x${h} = tiles[k * ${pitch} + ly + ${h * G}], y${h} = tiles[k * ${pitch} + lx + ${BK * pitch + h * G}];
% endfor
% for r in range(W):
% for h in range(W // 4):
                s${r}_${h} = x${r // 4}.s${r % 4} * y${h} + s${r}_${h};
% endfor
% endfor
            }
</%def>

## Runs its body for each number `y` of the tile at row i and column j of it, neighbours along j beside each other.
<%def name="numbers(acc, G, W)">\
<% TM = G * W %>\
        for (int r = 0; r < ${W}; r++) {
            ${acc}4 ${', '.join(f'v{h}' for h in range(W // 4))};
            switch (r) {
% for r in range(W):
            ${f'case {r}' if r < W - 1 else 'default'}: ${' '.join(f'v{h} = s{r}_{h};' for h in range(W // 4))} break;
% endfor
            }
            barrier(CLK_LOCAL_MEM_FENCE);
% for h in range(W // 4):
            tiles[ly * ${TM // 4} + lx + ${h * G}] = v${h};
% endfor
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int e = lane; e < ${G * TM}; e += ${G * G}) {
                const int i = r / 4 * ${4 * G} + e / ${TM} * 4 + r % 4, j = e % ${TM};
                ${acc} y = at[e];
${caller.body()}\
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
</%def>

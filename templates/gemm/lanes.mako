## Shared by matrix products on devices where a work-item is a lane. A work-group of G x G items makes a tile of TM x TM
## numbers, TM = G * W. Item (lx, ly) has W x W of them in registers: rows and columns in runs of 4, spaced 4 * G apart,
## so that it reads local memory by vectors and neighbouring items read adjacent vectors. Sums are separate variables,
## never an array with a runtime index, which a compiler would keep in memory. Each sum adds its terms in the order of
## K, whatever G, W and BK are.

<%def name="tiles(acc, G, W, BK)">\
<% TM = G * W %>\
    __local ${acc}4 tiles[${max(2 * BK * (TM // 4 + 1), G * TM // 4)}];
    __local ${acc} *const at = (__local ${acc} *)tiles, *const bt = at + ${BK * (TM + 4)};
    const int lx = get_local_id(0), ly = get_local_id(1), lane = ly * ${G} + lx;
</%def>

## The index of number (k, i) of a tile in `at` or `bt`.
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

## Run the body for each result `y` of the tile, at its row i and column j; neighbouring lanes have neighbouring j, for
## coalesced stores.
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

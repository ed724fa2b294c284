/**
 * The layout of a directed acyclic graph, in layers from the roots down.
 *
 * The steps are Sugiyama's: layers by longest path, a dummy for each layer that an edge crosses, an order within the layers with
 * few crossings, and places near the neighbours' mean by isotonic regression, which is exact. Nothing recurses, and nothing depends
 * on the meaning of nodes.
 */

const GAP = 26; // between neighbours in a layer
const RISE = 74; // between layers
const SWEEPS = 12;

/** Layer of each node: one more than its deepest predecessor's. */
function layersOf(count, edges) {
  const waiting = new Array(count).fill(0);
  const after = Array.from({ length: count }, () => []);
  for (const { from, to } of edges) {
    waiting[to]++;
    after[from].push(to);
  }
  const layer = new Array(count).fill(0);
  const ready = waiting.flatMap((n, i) => (n ? [] : [i]));
  for (let at; (at = ready.pop()) !== undefined; ) {
    for (const to of after[at]) {
      layer[to] = Math.max(layer[to], layer[at] + 1);
      if (!--waiting[to]) ready.push(to);
    }
  }
  return layer;
}

/** Cells: the nodes, and a dummy of no width for each layer that an edge crosses. Links join cells of neighbouring layers; `shift`
 * is the place on the upper cell's lower side where the link leaves it. */
function subdivide(nodes, edges) {
  const layer = layersOf(nodes.length, edges);
  const cells = nodes.map(({ width, height }, i) => ({
    layer: layer[i],
    width,
    height,
    up: [],
    down: [],
  }));
  const join = (upper, lower, shift) => {
    const link = { upper, lower, shift };
    cells[upper].down.push(link);
    cells[lower].up.push(link);
  };
  const routes = edges.map(({ from, to, shift = 0 }) => {
    const route = [from];
    for (let l = layer[from] + 1; l < layer[to]; l++) {
      cells.push({ layer: l, width: 6, height: 0, up: [], down: [], dummy: true });
      join(route.at(-1), cells.length - 1, route.length === 1 ? shift : 0);
      route.push(cells.length - 1);
    }
    join(route.at(-1), to, route.length === 1 ? shift : 0);
    route.push(to);
    return route;
  });
  return { cells, routes };
}

/** The number of pairs of links that cross between the layers. */
function crossings(rows, cells) {
  let count = 0;
  for (const row of rows) {
    const ends = row.flatMap((id) =>
      cells[id].down
        .slice()
        .sort((a, b) => a.shift - b.shift)
        .map((link) => cells[link.lower].rank),
    );
    for (let i = 0; i < ends.length; i++)
      for (let j = i + 1; j < ends.length; j++) count += ends[i] > ends[j];
  }
  return count;
}

/** Orders each layer by the mean rank of the neighbours, downwards and upwards; keeps the best order. */
function order(cells) {
  const rows = [];
  cells.forEach((cell, id) => (rows[cell.layer] ??= []).push(id));
  const number = () =>
    rows.forEach((row) =>
      row.forEach((id, rank) => {
        cells[id].rank = rank;
      }),
    );
  number();
  let best = rows.map((row) => row.slice());
  let fewest = crossings(rows, cells);
  for (let sweep = 0; sweep < SWEEPS && fewest; sweep++) {
    const downwards = sweep % 2 === 0;
    for (const row of downwards ? rows : rows.slice().reverse()) {
      const key = new Map(
        row.map((id) => {
          const ranks = cells[id][downwards ? 'up' : 'down'].map(
            (link) => cells[downwards ? link.upper : link.lower].rank + link.shift / 1000,
          );
          return [id, ranks.length ? ranks.reduce((a, b) => a + b) / ranks.length : cells[id].rank];
        }),
      );
      row.sort((a, b) => key.get(a) - key.get(b) || cells[a].rank - cells[b].rank);
      row.forEach((id, rank) => {
        cells[id].rank = rank;
      });
    }
    const found = crossings(rows, cells);
    if (found < fewest) [fewest, best] = [found, rows.map((row) => row.slice())];
  }
  best.forEach((row) =>
    row.forEach((id, rank) => {
      cells[id].rank = rank;
    }),
  );
  return best;
}

/** The places nearest to the wanted ones that keep the order and the gaps: blocks of touching cells move together to the weighted
 * mean of their wanted places. */
function settle(row, cells, wanted) {
  let offset = 0;
  const blocks = [];
  row.forEach((id, i) => {
    if (i) offset += (cells[row[i - 1]].width + cells[id].width) / 2 + GAP;
    const weight = cells[id].dummy ? 4 : 1;
    let block = { sum: weight * (wanted[i] - offset), weight, members: [[id, offset]] };
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).weight > block.sum / block.weight) {
      const left = blocks.pop();
      block = {
        sum: left.sum + block.sum,
        weight: left.weight + block.weight,
        members: [...left.members, ...block.members],
      };
    }
    blocks.push(block);
  });
  for (const { sum, weight, members } of blocks)
    for (const [id, from] of members) cells[id].x = sum / weight + from;
}

function place(rows, cells) {
  for (const row of rows) {
    let x = 0;
    for (const id of row) {
      cells[id].x = x + cells[id].width / 2;
      x += cells[id].width + GAP;
    }
  }
  const pull = (row, sides) =>
    settle(
      row,
      cells,
      row.map((id) => {
        const wants = sides.flatMap((side) =>
          cells[id][side].map((link) =>
            side === 'up' ? cells[link.upper].x + link.shift : cells[link.lower].x - link.shift,
          ),
        );
        return wants.length ? wants.reduce((a, b) => a + b) / wants.length : cells[id].x;
      }),
    );
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    for (const row of rows.slice(1)) pull(row, ['up']);
    for (const row of rows.slice(0, -1).reverse()) pull(row, ['down']);
  }
  for (const row of rows) pull(row, ['up', 'down']);
}

/** A smooth path through points, vertical at both ends. */
function curve(points) {
  let path = `M${points[0][0].toFixed(1)} ${points[0][1].toFixed(1)}`;
  for (let i = 1; i < points.length; i++) {
    const [[x0, y0], [x1, y1]] = [points[i - 1], points[i]];
    const half = (y1 - y0) / 2;
    path += `C${x0.toFixed(1)} ${(y0 + half).toFixed(1)} ${x1.toFixed(1)} ${(y1 - half).toFixed(1)} ${x1.toFixed(1)} ${y1.toFixed(1)}`;
  }
  return path;
}

/** A point on the first segment of such a path. */
function pointOnSegment([[x0, y0], [x1, y1]], t) {
  const half = (y1 - y0) / 2;
  const mix = (a, b, c, d) =>
    (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t * t * c + t ** 3 * d;
  return [mix(x0, x0, x1, x1), mix(y0, y0 + half, y1 - half, y1)];
}

/** The place of each edge's end on the upper side of its node: side by side, in the order of their origins. */
function arrivals(cells, routes) {
  const shifts = new Array(routes.length).fill(0);
  const arriving = new Map();
  routes.forEach((route, e) =>
    arriving.set(route.at(-1), [...(arriving.get(route.at(-1)) ?? []), e]),
  );
  for (const [id, edges] of arriving) {
    const originX = (e) => cells[routes[e].at(-2)].x;
    edges.sort((a, b) => originX(a) - originX(b) || a - b);
    const step = Math.min(30, (0.7 * cells[id].width) / edges.length);
    edges.forEach((e, k) => {
      shifts[e] = step * (k - (edges.length - 1) / 2);
    });
  }
  return shifts;
}

/** Lays a graph out.
 * @param {{width: number, height: number}[]} nodes
 * @param {{from: number, to: number, shift?: number}[]} edges by index of node; `shift` is the distance from the middle of the
 * node's lower side at which the edge leaves
 * @returns {{width: number, height: number, nodes: {x: number, y: number, layer: number}[], edges: {path: string, at: (t: number)
 * => [number, number]}[]}} middles of nodes; paths of edges, and points on their first segment */
export function layout(nodes, edges) {
  if (!nodes.length) return { width: 0, height: 0, nodes: [], edges: [] };
  const { cells, routes } = subdivide(nodes, edges);
  const rows = order(cells);
  place(rows, cells);
  const left = Math.min(...cells.map((cell) => cell.x - cell.width / 2));
  let y = 0;
  for (const row of rows) {
    const tallest = Math.max(...row.map((id) => cells[id].height));
    for (const id of row) Object.assign(cells[id], { x: cells[id].x - left, y: y + tallest / 2 });
    y += tallest + RISE;
  }
  const arrive = arrivals(cells, routes);
  const drawn = routes.map((route, e) => {
    const points = route.map((id, i) => {
      const { x, y: at, height } = cells[id];
      return i === 0
        ? [x + (edges[e].shift ?? 0), at + height / 2]
        : i === route.length - 1
          ? [x + arrive[e], at - height / 2]
          : [x, at];
    });
    return { path: curve(points), at: (t) => pointOnSegment(points, t) };
  });
  return {
    width: Math.max(...cells.map((cell) => cell.x + cell.width / 2)),
    height: y - RISE,
    nodes: cells.slice(0, nodes.length).map(({ x, y: at, layer }) => ({ x, y: at, layer })),
    edges: drawn,
  };
}

/** The drawing of a recorded graph: made once for each pass; then only classes and texts change. */
import { make } from '../chart.js';
import { layout } from './layout.js';
import { nodeTitle, edgeFinder } from './replay.js';
import { label } from './summary.js';

const CHAR = 7.3; // width of a character of the drawing's type
const LINE = 17;
const PAD = 12;
const MARGIN = 30;
const SEED = 34; // room above a root for its gradient

const shorten = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** The text for a saved value in its box. */
function chipText({ field, of, text, tensor }) {
  const version = of && of.now !== of.saved ? ` v${of.saved}→${of.now}` : of ? ` v${of.saved}` : '';
  return shorten(`${field}${tensor ? version : ` = ${text}`}`, 26);
}

/** The lines of text in a node's box: [class, text]. */
function linesOf(node) {
  const value = node.value ? ` = ${label(node.value)}` : '';
  const lines = [['name', shorten(node.leaf ? (node.label ?? 'leaf') : node.name, 34)]];
  if (node.leaf) lines[0][1] += value;
  else if (node.label || value)
    lines.push(['of', shorten(`${node.label ?? ''}${value}`.trim(), 34)]);
  if (node.leaf) lines.push(['grad', '.grad = none']);
  for (const saved of node.saved) {
    const written = saved.of && saved.of.now !== saved.of.saved;
    if (saved.tensor || saved.text === '(packed)')
      lines.push([written ? 'saved written' : 'saved', chipText(saved)]);
  }
  return lines;
}

/** Makes a drawing in `host`.
 * @param {HTMLElement} host the scrolling element
 * @param {(what: {kind: 'node' | 'edge', id: number}) => void} chosen called with the reader's choice */
export function makeDrawing(host, chosen) {
  let pass, placed, middles, svg, boxes, arrows, seeds, catches, edgeOf;
  let scale = 1;

  function widthOf(node, lines) {
    const grads = node.leaf
      ? pass.events
          .filter((e) => e.node === node.id && e.leaf)
          .map((e) => `.grad = ${label(e.leaf)}`.length)
      : [];
    return Math.max(
      64,
      2 * PAD + CHAR * Math.max(...lines.map(([, text]) => text.length), ...grads),
    );
  }

  function box(node, lines, { x, y }, { width, height }) {
    const texts = lines.map(([kind, text], i) =>
      make(
        'text',
        { class: kind, x: -width / 2 + PAD, y: -height / 2 + PAD + LINE * i + 11 },
        text,
      ),
    );
    if (!node.leaf) {
      const [, head, tail] = /^(.*?)(Backward\w*)?$/.exec(lines[0][1]);
      texts[0].replaceChildren(head, ...(tail ? [make('tspan', {}, tail)] : []));
    }
    const made = make(
      'g',
      {
        'class': `node${node.leaf ? ' leaf' : ''}`,
        'transform': `translate(${x} ${y})`,
        'role': 'button',
        'tabindex': '-1',
        'aria-label': `${nodeTitle(node)}${node.value ? `, value ${label(node.value)}` : ''}`,
      },
      make('rect', { x: -width / 2, y: -height / 2, width, height, rx: node.leaf ? 16 : 6 }),
      ...texts,
    );
    made.onclick = () => choose('node', node.id);
    made.onfocus = () => chosen({ kind: 'node', id: node.id });
    made.onkeydown = (event) => travel(event, 'node', node.id);
    return made;
  }

  function arrow(edge, i) {
    const { path } = placed.edges[i];
    const [x, y] = middles[i];
    const text = make('text', { x, 'y': y + 4, 'text-anchor': 'middle' });
    const made = make(
      'g',
      {
        'class': 'edge',
        'role': 'button',
        'tabindex': '-1',
        'aria-label': `edge from ${nodeTitle(pass.nodes[edge.from])} to ${nodeTitle(pass.nodes[edge.to])}`,
      },
      make('path', { class: 'hit', d: path }),
      make('path', { 'class': 'way', 'd': path, 'marker-end': 'url(#graph-tip)' }),
      make('rect', { y: y - 10, height: 20, rx: 10, width: 0 }),
      text,
    );
    made.onclick = () => choose('edge', i);
    made.onfocus = () => chosen({ kind: 'edge', id: i });
    made.onkeydown = (event) => travel(event, 'edge', i);
    return made;
  }

  /** Draws the graph of a pass. */
  function show(given) {
    pass = given;
    edgeOf = edgeFinder(pass);
    const lines = pass.nodes.map(linesOf);
    const sizes = pass.nodes.map((node, i) => ({
      width: widthOf(node, lines[i]),
      height: 2 * PAD + LINE * lines[i].length - 5,
    }));
    const slots = pass.nodes.map((node) => pass.edges.filter((e) => e.from === node.id).length);
    const ranks = pass.edges.map(
      (edge, i) => pass.edges.slice(0, i).filter((e) => e.from === edge.from).length,
    );
    const shifted = pass.edges.map((edge, i) => {
      const n = slots[edge.from];
      return {
        ...edge,
        shift: (sizes[edge.from].width * 0.7 * (ranks[i] - (n - 1) / 2)) / Math.max(n, 2),
      };
    });
    placed = layout(sizes, shifted);
    // Spreads the labels of one node's edges.
    middles = placed.edges.map(({ at }, i) =>
      at(
        slots[pass.edges[i].from] === 1
          ? 0.5
          : 0.3 + (0.4 * ranks[i]) / (slots[pass.edges[i].from] - 1),
      ),
    );
    boxes = pass.nodes.map((node, i) => box(node, lines[i], placed.nodes[i], sizes[i]));
    arrows = pass.edges.map(arrow);
    const tip = make(
      'marker',
      {
        id: 'graph-tip',
        viewBox: '0 0 8 8',
        refX: 7,
        refY: 4,
        markerWidth: 10,
        markerHeight: 10,
        markerUnits: 'userSpaceOnUse',
        orient: 'auto',
      },
      make('path', { d: 'M0 0L8 4L0 8z' }),
    );
    const sideTexts = (name, side) =>
      pass.nodes.map((_, i) =>
        make('text', {
          'class': name,
          'x': placed.nodes[i].x,
          'y': placed.nodes[i].y + side * (sizes[i].height / 2 + 10) + (side > 0 ? 8 : 0),
          'text-anchor': 'middle',
        }),
      );
    [seeds, catches] = [sideTexts('seed', -1), sideTexts('seed', 1)];
    svg = make(
      'svg',
      {
        'role': 'group',
        'aria-label': `The backward graph: ${pass.nodes.length} nodes. Arrow keys go along it.`,
        'viewBox': `${-MARGIN} ${-SEED} ${placed.width + 2 * MARGIN} ${placed.height + SEED + MARGIN}`,
      },
      make('defs', {}, tip),
      ...arrows,
      ...boxes,
      ...seeds,
      ...catches,
    );
    host.replaceChildren(svg);
    boxes[0]?.setAttribute('tabindex', '0');
    zoom(0);
  }

  /** Zooms in (1), out (-1), or to fit (0). */
  function zoom(direction) {
    if (!svg) return;
    const [width, height] = [placed.width + 2 * MARGIN, placed.height + SEED + MARGIN];
    const em = parseFloat(getComputedStyle(host).fontSize) / 16;
    const fit = Math.min(
      (host.clientWidth - 2) / width,
      (host.clientHeight - 2) / height,
      1.4 * em,
    );
    scale = direction
      ? Math.min(4, Math.max(0.25, scale * (direction > 0 ? 1.25 : 0.8)))
      : Math.max(0.85 * em, fit);
    svg.setAttribute('width', Math.round(width * scale));
    svg.setAttribute('height', Math.round(height * scale));
  }

  function labelEdge(i, grad) {
    const [, , pill, text] = arrows[i].children;
    const words = grad ? label(grad) : '';
    text.textContent = words;
    const width = words ? words.length * CHAR + 14 : 0;
    pill.setAttribute('width', width);
    pill.setAttribute('x', middles[i][0] - width / 2);
  }

  function updateEdge({ edges, event }, i) {
    const grad = edges.get(i);
    labelEdge(i, grad);
    const now = event?.kind === 'leave' && edgeOf(event.node, pass.edges[i].slot) === i;
    arrows[i].setAttribute('class', `edge${grad ? ' lit' : ''}${now ? ' now' : ''}`);
  }

  function updateNode(state, id) {
    const { event } = state;
    const { leaf } = pass.nodes[id];
    const gradientText = (grads, before) => (grads.has(id) ? before + label(grads.get(id)) : '');
    const now = event && (event.node === id || (event.kind === 'seed' && state.seeds.has(id)));
    const freed = state.over && !pass.retain;
    boxes[id].setAttribute(
      'class',
      `node${leaf ? ' leaf' : ''} ${state.nodes[id]}${now ? ` now ${event.kind}` : ''}${freed ? ' freed' : ''}`,
    );
    seeds[id].textContent = gradientText(state.seeds, '↓ ');
    catches[id].textContent = gradientText(state.captured, 'asked for: ');
    if (leaf)
      boxes[id].querySelector('.grad').textContent =
        `.grad = ${state.leaves.get(id) ? label(state.leaves.get(id)) : 'none'}`;
  }

  /** Shows a state of the replay. */
  function update(state) {
    arrows.forEach((_, i) => updateEdge(state, i));
    boxes.forEach((_, id) => updateNode(state, id));
    if (state.event?.node !== undefined) reveal(state.event.node);
  }

  /** Scrolls the host, not the page, until a node is visible. */
  function reveal(id) {
    const [x, y] = [(placed.nodes[id].x + MARGIN) * scale, (placed.nodes[id].y + SEED) * scale];
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = host;
    if (x < scrollLeft + 60 || x > scrollLeft + clientWidth - 60)
      host.scrollLeft = x - clientWidth / 2;
    if (y < scrollTop + 50 || y > scrollTop + clientHeight - 50)
      host.scrollTop = y - clientHeight / 2;
  }

  // ---------------------------------------------------------------- choosing

  const elements = { node: () => boxes, edge: () => arrows };

  function mark(kind, id) {
    for (const made of [...boxes, ...arrows]) {
      made.removeAttribute('aria-pressed');
      made.setAttribute('tabindex', '-1');
    }
    elements[kind]()[id].setAttribute('aria-pressed', 'true');
    elements[kind]()[id].setAttribute('tabindex', '0');
  }

  function choose(kind, id, focus = true) {
    if (!elements[kind]()[id]) return;
    mark(kind, id);
    if (focus) elements[kind]()[id].focus({ preventScroll: true });
    if (kind === 'node' && focus) reveal(id);
    chosen({ kind, id });
  }

  /** Arrow keys: down and up along edges, left and right within a layer, or among a node's edges. */
  function travel(event, kind, id) {
    const neighbour = (step) => {
      const same =
        kind === 'node'
          ? (i) => placed.nodes[i].layer === placed.nodes[id].layer
          : (i) => pass.edges[i].from === pass.edges[id].from;
      const at = kind === 'node' ? (i) => placed.nodes[i].x : (i) => middles[i][0];
      const row = (kind === 'node' ? pass.nodes : pass.edges)
        .map((_, i) => i)
        .filter(same)
        .sort((a, b) => at(a) - at(b));
      return [kind, row[row.indexOf(id) + step]];
    };
    const to = {
      'ArrowDown': () =>
        kind === 'node'
          ? ['edge', pass.edges.findIndex((e) => e.from === id)]
          : ['node', pass.edges[id].to],
      'ArrowUp': () =>
        kind === 'node'
          ? ['edge', pass.edges.findIndex((e) => e.to === id)]
          : ['node', pass.edges[id].from],
      'ArrowLeft': () => neighbour(-1),
      'ArrowRight': () => neighbour(1),
      'Enter': () => [kind, id],
      ' ': () => [kind, id],
    }[event.key];
    if (!to) return;
    event.preventDefault();
    event.stopPropagation();
    choose(...to());
  }

  /** Highlights the nodes that a line of the program made. */
  function point(line) {
    boxes?.forEach((made, id) => made.toggleAttribute('data-line', pass.nodes[id].line === line));
  }

  return { show, update, zoom, mark, point };
}

/** The state of a recorded backward after any number of its events, from the record alone. */
import { label } from './summary.js';

/** The name of a node: its kind, and its variable if it has one. */
export function nodeTitle(node) {
  if (node.leaf) return node.label ? `leaf ${node.label}` : 'a leaf';
  return node.label ? `${node.name} (${node.label})` : node.name;
}

/** A function that finds the edge at a slot of a node. */
export function edgeFinder(pass) {
  const found = new Map(pass.edges.map((edge, i) => [`${edge.from} ${edge.slot}`, i]));
  return (node, slot) => found.get(`${node} ${slot}`);
}

/** The state after the first `count` events.
 * @returns {{edges: Map<number, any>, seeds: Map<number, any>, nodes: string[], incoming: Map<number, any[]>,
 *   leaves: Map<number, any>, captured: Map<number, any>, fired: Map<number, string>, event: any, over: boolean}} */
export function stateAt(pass, count) {
  const edgeOf = edgeFinder(pass);
  const state = {
    edges: new Map(),
    seeds: new Map(),
    nodes: pass.nodes.map(() => 'idle'),
    incoming: new Map(),
    leaves: new Map(pass.nodes.filter((n) => n.leaf).map((n) => [n.id, n.gradBefore])),
    captured: new Map(),
    fired: new Map(),
    event: pass.events[count - 1] ?? null,
    over: false,
  };
  const apply = {
    seed: ({ seeds }) =>
      seeds.forEach(({ node, grad }) => {
        state.seeds.set(node, grad);
        state.nodes[node] = 'ready';
      }),
    hook: ({ node, what }) => state.fired.set(node, what),
    enter({ node, grads }) {
      state.nodes[node] = 'active';
      state.incoming.set(node, grads);
    },
    leave({ node, grads, leaf }) {
      state.nodes[node] = 'done';
      if (leaf !== undefined) state.leaves.set(node, leaf);
      grads.forEach((grad, slot) => {
        const edge = edgeOf(node, slot);
        if (edge === undefined || !grad) return;
        state.edges.set(edge, grad);
        const { to } = pass.edges[edge];
        if (state.nodes[to] === 'idle') state.nodes[to] = 'ready';
      });
    },
    capture({ node, grad }) {
      state.captured.set(node, grad);
      if (state.nodes[node] !== 'done') state.nodes[node] = 'done';
    },
    end: () => {
      state.over = true;
    },
  };
  for (const event of pass.events.slice(0, count)) apply[event.kind](event);
  return state;
}

/** An event in a sentence. */
export function describe(event, pass) {
  if (!event)
    return pass.events.length
      ? 'Before backward: the graph as the forward left it.'
      : 'No backward was run: this is the graph that the forward left.';
  const node = pass.nodes[event.node];
  const list = (grads) => grads.map(label).join(', ') || 'nothing';
  switch (event.kind) {
    case 'seed':
      return `Backward begins: ${event.seeds.map(({ node: id, grad }) => `${nodeTitle(pass.nodes[id])} is given ${label(grad)}`).join(', ')}.`;
    case 'enter': {
      const from = pass.edges.filter((edge) => edge.to === event.node).length;
      return `${nodeTitle(node)} receives ${list(event.grads)}${from > 1 ? `, the sum over ${from} edges` : ''}.`;
    }
    case 'hook':
      return [
        `A ${event.what} fires at ${nodeTitle(node)}`,
        event.line && ` (registered in line ${event.line})`,
        event.replaced && ` and replaces the gradient by ${label(event.replaced)}`,
        '.',
      ]
        .filter(Boolean)
        .join('');
    case 'leave':
      return node.leaf
        ? `${nodeTitle(node)} adds it to .grad, now ${label(event.leaf)}.`
        : `${nodeTitle(node)} sends on ${list(event.grads)}.`;
    case 'capture':
      return `The gradient asked for, by ${event.name ?? nodeTitle(node)}, is ${label(event.grad)}.`;
    default:
      if (event.thrown) return 'Backward was ended by an error.';
      return `Backward is over${pass.retain ? '; the saved values are kept (retain_graph)' : '; the saved values are freed'}.`;
  }
}

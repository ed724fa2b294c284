/** The inspector: the chosen part of the drawing in words, numbers and colours. */
import { make } from '../chart.js';
import { drawSigned } from '../pixels.js';
import { nodeTitle } from './replay.js';
import { brief } from './summary.js';

const MOST_CELLS = 64;

/** Numbers as a table coloured by sign, or as an image if there are many. */
function elementsOf({ values, rows, columns, high, low }) {
  if (!values.length) return make('p', { class: 'quiet' }, 'no elements');
  if (values.length > MOST_CELLS) {
    const canvas = make('canvas', {
      'class': 'heat',
      'role': 'img',
      'aria-label': `an image of ${rows} by ${columns} elements`,
    });
    drawSigned(canvas, values, columns);
    return canvas;
  }
  const most = Math.max(Math.abs(high), Math.abs(low)) || 1;
  const line = (from) =>
    make(
      'tr',
      {},
      ...values.slice(from, from + columns).map((value) =>
        make(
          'td',
          {
            style: `--share:${Math.round((45 * Math.abs(value)) / most)}%`,
            class: value < 0 ? 'below' : 'above',
          },
          brief(value),
        ),
      ),
    );
  return make(
    'div',
    { class: 'scroll' },
    make(
      'table',
      { class: 'elements' },
      make('tbody', {}, ...Array.from({ length: rows }, (_, i) => line(i * columns))),
    ),
  );
}

/** A tensor with its title. @param {any} summary of summary.js, or null */
function tensorBlock(title, summary, kind, remark = '') {
  const block = make('section', { class: `tensor ${kind}` }, make('h3', {}, title));
  if (remark) block.append(make('p', { class: 'remark' }, remark));
  if (!summary) return block.append(make('p', { class: 'quiet' }, 'none')) ?? block;
  const { shape, dtype, numel, low, high, mean, rows, columns } = summary;
  const facts = `${dtype} [${shape.join(', ')}]${numel > 1 ? `, from ${brief(low)} to ${brief(high)}, mean ${brief(mean)}` : ''}`;
  const cut =
    numel > rows * columns ? `; shown: ${rows} × ${columns} of ${numel.toLocaleString('en')}` : '';
  block.append(make('p', { class: 'quiet' }, facts + cut), elementsOf(summary));
  return block;
}

/** A saved value, and later writes to the tensor that it was saved from. */
function savedBlock({ field, tensor, text, of }) {
  if (!tensor)
    return make(
      'section',
      { class: 'tensor' },
      make('h3', {}, `saved ${field}`),
      make('p', { class: 'mono' }, text),
    );
  const name = of?.name ?? 'the tensor';
  const remark = !of
    ? ''
    : of.saved === of.now
      ? `${name}, at version ${of.saved}`
      : `${name}, saved at version ${of.saved}; it was written since and is at version ${of.now}. This is the snapshot.`;
  return tensorBlock(`saved ${field}`, tensor, 'value', remark);
}

function nodeParts(node, pass, state) {
  const parts = [];
  if (node.value)
    parts.push(
      tensorBlock(
        node.leaf
          ? `${node.label ?? 'the leaf'}`
          : `${node.label ?? 'output'}, computed in forward`,
        node.value,
        'value',
      ),
    );
  if (node.leaf) parts.push(tensorBlock('.grad', state.leaves.get(node.id), 'grad'));
  (state.incoming.get(node.id) ?? []).forEach((grad, i, all) => {
    parts.push(
      tensorBlock(all.length > 1 ? `gradient of output ${i}` : 'gradient received', grad, 'grad'),
    );
  });
  pass.edges.forEach((edge, i) => {
    if (edge.from === node.id && state.edges.has(i))
      parts.push(
        tensorBlock(`sent to ${nodeTitle(pass.nodes[edge.to])}`, state.edges.get(i), 'grad'),
      );
  });
  if (state.captured.has(node.id))
    parts.push(tensorBlock('gradient asked for', state.captured.get(node.id), 'grad'));
  return [...parts, ...node.saved.map(savedBlock)];
}

/** Fills `host` with the chosen part, in a state of the replay.
 * @param {{kind: 'node' | 'edge', id: number} | {kind: 'variable', variable: any}} what */
export function inspect(host, what, pass, state) {
  let title, facts, parts;
  if (what.kind === 'variable') {
    const { name, value, grad, made, leaf } = what.variable;
    [title, facts] = [
      name,
      made
        ? `made by ${made}`
        : leaf && value.requires_grad
          ? 'a leaf that requires a gradient'
          : 'outside of the graph',
    ];
    parts = [
      tensorBlock(
        'value',
        value,
        'value',
        value.version === null ? 'an inference tensor' : `version ${value.version}`,
      ),
    ];
    if (leaf && value.requires_grad) parts.push(tensorBlock('.grad, at the end', grad, 'grad'));
  } else if (what.kind === 'edge') {
    const edge = pass.edges[what.id];
    [title, facts] = [
      'An edge',
      `from ${nodeTitle(pass.nodes[edge.from])} to output ${edge.nr} of ${nodeTitle(pass.nodes[edge.to])}`,
    ];
    parts = [tensorBlock('gradient that passed', state.edges.get(what.id) ?? null, 'grad')];
  } else {
    const node = pass.nodes[what.id];
    title = nodeTitle(node);
    facts = [
      node.line && `made in line ${node.line}`,
      node.name,
      state.fired.has(node.id) && `a ${state.fired.get(node.id)} fired`,
    ]
      .filter(Boolean)
      .join(' · ');
    parts = nodeParts(node, pass, state);
  }
  host.replaceChildren(
    make('h2', {}, title),
    make('p', { class: 'quiet' }, facts),
    make('div', { class: 'tensors' }, ...parts),
  );
}

/**
 * Records a program's use of the graph: the line that made each node, the saved values of nodes and the tensors they come from, and
 * each backward as a list of events, in the order in which hooks saw them.
 *
 * The library is instrumented once, through its public functions; the record is plain data.
 */
import { identifiers, lineOf } from './snippet.js';
import { summarise, versionOf } from './summary.js';

const MOST_PASSES = 24;
const MOST_NODES = 200;
const MOST_EVENTS = 4000;
const WATCHER = -1; // the engine's number for the watcher of walks
let torch;
/** The record in progress, or null. */
let run = null;

const isTensor = (value) => value instanceof torch.Tensor;
const currentLine = () => lineOf(new Error().stack);
const quietly = (fn) => torch.no_grad(() => torch.scope(fn));
const summary = (tensor) => (tensor ? quietly(() => summarise(tensor)) : null);

// ---------------------------------------------------------------- lines of nodes

/** The address and shape of a tensor: equal for a tensor and its saved snapshot. */
function addressOf(tensor) {
  const engine = torch._engine;
  const storage = engine.u32(tensor.alive() + engine.layout.storage);
  const bytes = engine.u32(storage + engine.layout.storage_bytes);
  const offset = engine.word((tensor.handle + engine.layout.offset) / 8);
  const first =
    engine.u32(bytes + engine.layout.bytes_data) + Number(offset) * tensor.dtype.itemsize;
  return `${first} ${tensor.shape}`;
}

/** The names of a node's saved values. */
const savedFields = (node) =>
  Object.getOwnPropertyNames(Object.getPrototypeOf(node)).filter((name) =>
    name.startsWith('_saved_'),
  );

/** The saved values of a node, by name. Packed values stay packed, as reading them would run the program's hooks; a failing getter
 * gives its reason. */
function readSaved(node) {
  const read = (name, get, raw) => {
    try {
      return [name, raw()?.unpack_hook ? '(packed)' : get()];
    } catch (error) {
      return [name, `(${/freed/.test(error.message) ? 'freed' : error.message})`];
    }
  };
  const own = savedFields(node).map((name) =>
    read(
      name.slice('_saved_'.length),
      () => node[name],
      () => [node[`_raw${name}`]].flat()[0],
    ),
  );
  return own.length
    ? own
    : (node._raw_saved_tensors ?? []).map((raw, i) =>
        read(
          `saved_tensors[${i}]`,
          () => raw.data,
          () => raw,
        ),
      );
}

/** Records for the new nodes behind a result the line, and the arguments that their saved values come from. */
function note(result, args) {
  const line = currentLine();
  const given = [...args.flat(), result].flat().filter(isTensor);
  const places = new Map(given.filter((t) => t.handle).map((t) => [addressOf(t), t]));
  for (const tensor of [result].flat()) {
    const pending = isTensor(tensor) && tensor.grad_fn ? [tensor.grad_fn] : [];
    for (let node; (node = pending.pop()); ) {
      if (run.made.has(node.address) || node.name().endsWith('AccumulateGrad')) continue;
      const sources = new Map();
      for (const [field, value] of readSaved(node)) {
        const source = isTensor(value) && places.get(addressOf(value));
        if (source) sources.set(field, { tensor: source, version: versionOf(source) });
      }
      run.made.set(node.address, {
        node,
        line,
        sources,
        output: node === tensor.grad_fn ? tensor : null,
      });
      pending.push(...node.next_functions.flatMap(([next]) => (next ? [next] : [])));
    }
  }
}

let noting = false;

function withNotes(fn) {
  return function wrapper(...args) {
    const result = fn.apply(this, args);
    if (!run || noting || !(isTensor(result) || (Array.isArray(result) && result.some(isTensor))))
      return result;
    noting = true;
    try {
      torch.no_grad(() => note(result, [this, ...args]));
    } finally {
      noting = false;
    }
    return result;
  };
}

/** Functions that make no node, or that the recorder itself uses. */
const UNTOUCHED = new Set([
  'constructor',
  'scope',
  'tensor',
  'no_grad',
  'detach',
  'alive',
  'dispose',
  'backward',
  'tolist',
  'toTypedArray',
  'register_hook',
  'register_post_accumulate_grad_hook',
  'data_ptr',
  'is_inference',
]);

/** Wraps the functions of an object in `withNotes`, if their names are lower case: ops, not classes. */
function noteAll(object) {
  for (const [name, { value, writable }] of Object.entries(
    Object.getOwnPropertyDescriptors(object),
  )) {
    if (typeof value === 'function' && writable && /^[a-z_]/.test(name) && !UNTOUCHED.has(name))
      object[name] = withNotes(value);
  }
}

// ---------------------------------------------------------------- the names of the program

/** The tensors of the program by name: variables, elements of arrays and plain objects, parameters. */
function namedTensors() {
  const found = [];
  const add = (name, value, deep) => {
    if (isTensor(value)) {
      if (value.handle) found.push([name, value]);
    } else if (typeof value?.named_parameters === 'function') {
      for (const [path, tensor] of value.named_parameters())
        found.push([`${name}.${path}`, tensor]);
    } else if (deep && Array.isArray(value))
      value.slice(0, 64).forEach((each, i) => add(`${name}[${i}]`, each, false));
    else if (deep && value && Object.getPrototypeOf(value) === Object.prototype) {
      for (const [key, each] of Object.entries(value).slice(0, 64))
        add(`${name}.${key}`, each, false);
    }
  };
  for (const name of run.names) {
    let value;
    try {
      value = run.look(name);
    } catch {
      continue; // not a variable, or none yet
    }
    if (value !== torch && value !== globalThis) add(name, value, true);
  }
  return found;
}

// ---------------------------------------------------------------- the graph of a backward

function describeSaved(node) {
  const sources = run.made.get(node.address)?.sources;
  return readSaved(node).map(([field, value]) => {
    if (value === null || value === undefined) return { field, text: 'none' };
    if (!isTensor(value))
      return { field, text: Array.isArray(value) ? `[${value}]` : String(value) };
    const source = sources?.get(field);
    return {
      field,
      tensor: summary(value),
      of: source && {
        name: run.label(source.tensor),
        saved: source.version,
        now: source.tensor.handle ? versionOf(source.tensor) : source.version,
      },
    };
  });
}

function describeNode(id, node, names) {
  const leaf = node.name().endsWith('AccumulateGrad');
  const variable = leaf ? node.variable : null;
  const made = run.made.get(node.address);
  const output = made?.output?.handle ? made.output : null;
  return {
    id,
    name: node.name().replace('torch::autograd::', ''),
    leaf,
    line: made?.line ?? null,
    label: leaf
      ? (names.leaves.get(variable.handle) ?? null)
      : (names.nodes.get(node.address) ?? null),
    shapes: node._input_metadata.map(({ shape }) => shape),
    value: summary(variable ?? output),
    gradBefore: leaf ? summary(variable.grad) : null,
    saved: torch.no_grad(() => torch.scope(() => describeSaved(node))),
  };
}

/** The names of leaves by handle and of nodes by address. */
function labels() {
  const [leaves, nodes] = [new Map(), new Map()];
  for (const [name, tensor] of namedTensors()) {
    if (tensor.is_leaf) leaves.has(tensor.handle) || leaves.set(tensor.handle, name);
    else if (tensor.grad_fn && !nodes.has(tensor.grad_fn.address))
      nodes.set(tensor.grad_fn.address, name);
  }
  return { leaves, nodes };
}

const arrival = (tensor) => torch.autograd.graph.get_gradient_edge(tensor).node;

/** All nodes behind the roots, nearest first, and the edges between them. */
function walk(roots) {
  const ids = new Map();
  const nodes = [];
  const reach = (node) => {
    if (!ids.has(node.address)) {
      ids.set(node.address, nodes.length);
      nodes.push(node);
    }
    return ids.get(node.address);
  };
  for (const root of roots) if (root.requires_grad) reach(arrival(root));
  const edges = [];
  for (let at = 0; at < nodes.length && nodes.length <= MOST_NODES; at++) {
    nodes[at].next_functions.forEach(([next, nr], slot) => {
      if (next) edges.push({ from: at, to: reach(next), slot, nr });
    });
  }
  return { ids, nodes, edges };
}

// ---------------------------------------------------------------- one backward

/** The current pass: the innermost. */
const current = () => run?.open.at(-1);

function tell(event) {
  const pass = current();
  if (!pass) return;
  if (pass.events.length < MOST_EVENTS) pass.events.push(event);
  else pass.truncated = true;
}

/** Opens a pass; false if nothing is recorded. A null root or input is an edge, which is not shown. */
function begin(kind, given, grads, wanted, retain, create) {
  const roots = given.filter(Boolean);
  const seeds = grads.filter((_, i) => given[i]);
  if (!run || !roots.length || run.passes.length >= MOST_PASSES) return false;
  const { ids, nodes, edges } = walk(roots);
  const names = labels();
  run.label = (tensor) =>
    names.leaves.get(tensor.handle) ??
    (tensor.grad_fn ? names.nodes.get(tensor.grad_fn.address) : null) ??
    null;
  const pass = {
    kind,
    line: currentLine(),
    retain,
    create,
    nodes: nodes.map((node, id) => describeNode(id, node, names)),
    edges,
    events: [],
    ids,
    handles: [],
    wanted,
  };
  run.passes.push(pass);
  run.open.push(pass);
  pass.truncated = nodes.length > MOST_NODES;
  tell({
    kind: 'seed',
    seeds: roots.flatMap((root, i) =>
      root.requires_grad
        ? [
            {
              node: ids.get(arrival(root).address),
              nr: root.output_nr,
              grad: summary(seeds[i]) ?? { ...summary(root), values: [1] },
            },
          ]
        : [],
    ),
  });
  nodes.forEach((node, id) => {
    pass.handles.push(
      raw.prehook.call(node, (grads) => {
        tell({ kind: 'enter', node: id, grads: grads.map(summary) });
      }),
    );
    pass.handles.push(
      raw.hook.call(node, (grads) => {
        tell({
          kind: 'leave',
          node: id,
          grads: grads.map(summary),
          ...(pass.nodes[id].leaf && { leaf: summary(node.variable.grad) }),
        });
      }),
    );
  });
  return true;
}

/** Closes the innermost pass, with the gradients that it found, or after an error. */
function end(result, thrown = false) {
  const pass = run.open.pop();
  pass.handles.forEach((handle) => handle.remove());
  if (pass.kind === 'grad' && result) {
    pass.wanted.forEach((tensor, i) => {
      const at = tensor?.requires_grad ? pass.ids.get(arrival(tensor).address) : undefined;
      if (at !== undefined)
        pass.events.push({
          kind: 'capture',
          node: at,
          grad: summary(result[i]),
          name: run.label(tensor),
        });
    });
  }
  pass.events.push({ kind: 'end', thrown });
}

const raw = {};

/** The function to which the engine reports walks: see wasm_core/walk/watch.h. */
function watcher() {
  const started = [];
  let found = null;
  return (what, words, tensors) => {
    if (what === 0) {
      const [count, , retain, create, accumulate, rows, ...handles] = words;
      const all = tensors(handles);
      const wanted = rows ? [] : all.slice(2 * count); // results of stacked backwards are not shown
      started.push(
        begin(
          accumulate ? 'backward' : 'grad',
          all.slice(0, count),
          all.slice(count, 2 * count),
          wanted,
          Boolean(retain),
          Boolean(create),
        ),
      );
      found = null;
    } else if (what === 1) {
      found = tensors(words);
    } else if (started.pop()) end(found, words[0] === 1);
  };
}

/** Makes an event of each call of an unpack hook of the program. */
function watchUnpacking(graph) {
  const { saved_tensors_hooks } = graph;
  graph.saved_tensors_hooks = (pack, unpack, fn) => {
    const line = currentLine();
    const reportUnpack = (packed) => {
      const result = unpack(packed);
      const node = current()?.events.findLast(({ kind }) => kind === 'enter')?.node;
      if (node !== undefined)
        tell({ kind: 'hook', what: 'hook that unpacks', node, line, replaced: null });
      return result;
    };
    return saved_tensors_hooks(
      pack,
      run && typeof unpack === 'function' ? reportUnpack : unpack,
      fn,
    );
  };
}

/** Makes an event of each call of a hook that the program registers. */
function watchHooks() {
  const reportCalls = (what, fn, owner) => {
    const line = currentLine();
    return (...args) => {
      const result = fn(...args);
      const pass = current();
      const node = pass?.ids.get((isTensor(owner) ? arrival(owner) : owner).address);
      const replaced = [result].flat().find(isTensor);
      if (node !== undefined) tell({ kind: 'hook', what, node, line, replaced: summary(replaced) });
      return result;
    };
  };
  const watch = (prototype, name, what) => {
    const original = prototype[name];
    prototype[name] = function register(fn) {
      return original.call(this, run ? reportCalls(what, fn, this) : fn);
    };
    return original;
  };
  watch(torch.Tensor.prototype, 'register_hook', 'tensor hook');
  watch(torch.Tensor.prototype, 'register_post_accumulate_grad_hook', 'hook after accumulation');
  raw.hook = watch(torch.autograd.graph.Node.prototype, 'register_hook', 'node hook');
  raw.prehook = watch(torch.autograd.graph.Node.prototype, 'register_prehook', 'node prehook');
}

// ---------------------------------------------------------------- the record

/** Instruments a library; once. */
export function instrument(library) {
  torch = library;
  Error.stackTraceLimit = 60; // the program's frame is below those of modules and hooks
  watchHooks();
  watchUnpacking(torch.autograd.graph);
  for (const space of [
    torch,
    torch.nn.functional,
    torch.linalg,
    torch.special,
    torch.Tensor.prototype,
  ])
    noteAll(space);
  const { get } = Object.getOwnPropertyDescriptor(torch.autograd.Function, 'apply');
  Object.defineProperty(torch.autograd.Function, 'apply', {
    get() {
      return withNotes(get.call(this));
    },
  });
  torch.nn.Module.prototype.call = withNotes(torch.nn.Module.prototype.call);
}

/** Runs `program(names)` and records it; its error is thrown on, with the record so far as `record`.
 * @param {string} source @param {(names: (look: (name: string) => any) => void) => void} program */
export function record(source, program) {
  run = {
    made: new Map(),
    passes: [],
    open: [],
    names: identifiers(source),
    look: () => undefined,
    label: () => null,
  };
  let failure = null;
  torch._hooks.set(WATCHER, watcher());
  torch._C._watch_walks(WATCHER);
  try {
    torch.scope(() => {
      try {
        program((look) => {
          run.look = look;
        });
      } catch (error) {
        failure = { name: error.name, message: error.message, line: lineOf(error.stack) };
      }
      finish();
    });
    return { ...run.result, failure };
  } finally {
    torch._C._watch_walks(0);
    torch._hooks.delete(WATCHER);
    run = null;
  }
}

/** Converts the record to plain data, while its tensors are alive. */
function finish() {
  const named = namedTensors();
  if (!run.passes.length) {
    const last = named.filter(([, tensor]) => tensor.grad_fn).at(-1);
    if (last && begin('none', [last[1]], [null], [], false, false)) {
      run.open.pop().handles.forEach((handle) => handle.remove());
      run.passes[0].events = [];
    }
  }
  const variables = named.map(([name, tensor]) => ({
    name,
    value: summary(tensor),
    grad: tensor.is_leaf ? summary(tensor.grad) : null,
    made: tensor.grad_fn?.name() ?? null,
    leaf: tensor.is_leaf,
  }));
  const passes = run.passes.map(({ ids, handles, wanted, ...plain }) => plain);
  run.result = { variables, passes };
}

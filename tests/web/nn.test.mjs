// Modules and layers: what they register, name, save and load; how their arguments are given. `node --test tests/web`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signatures } from '../../web/signatures.js';
import { torch, warnings } from './helpers.mjs';

const { nn } = torch;
const F = nn.functional;
const names = (pairs) => pairs.map(([name]) => name);
const ones = (...sizes) => new nn.Parameter(torch.ones(sizes));

// ---------------------------------------------------------------- what a module registers

test('a Parameter shares the memory of its tensor, requires grad unless told otherwise, and is one of the leaves that the graph knows', () => {
  const x = torch.ones([2]);
  const [learned, frozen, named] = [
    new nn.Parameter(x),
    new nn.Parameter(x, false),
    new nn.Parameter(x, { requires_grad: false }),
  ];
  assert.deepEqual(
    [learned, frozen, named].map((p) => p.requires_grad),
    [true, false, false],
  );
  x.zero_();
  assert.deepEqual(learned.tolist(), [0, 0]);
  assert.ok(
    learned instanceof torch.Tensor &&
      learned instanceof nn.Parameter &&
      !(x instanceof nn.Parameter),
  );
  for (const parameter of [learned, frozen.requires_grad_(), named]) {
    parameter.requires_grad = true;
    assert.equal(parameter.mul(2).grad_fn.next_functions[0][0].variable, parameter);
  }
  assert.match(
    String(learned),
    /^Parameter containing:\ntensor\(\[0., 0.\], requires_grad=True\)$/,
  );
  assert.deepEqual(new nn.Parameter().shape, [0]);
  assert.throws(() => new nn.Parameter([1, 2]), {
    name: 'TypeError',
    message: "Parameter(): argument 'data' (position 1) must be Tensor, not list",
  });
  assert.throws(() => new nn.Parameter(torch.tensor([1n])), {
    name: 'RuntimeError',
    message: /floating point/,
  });
});

test('a Parameter that is made in a scope lives on', () => {
  const parameter = torch.scope(() => {
    const made = ones(2);
    return { made };
  }).made;
  const layer = torch.scope(() => [new nn.Linear(2, 3)])[0];
  assert.deepEqual([parameter.tolist(), layer.call(torch.ones([2])).shape], [[1, 1], [3]]);
});

test('parameters are Parameters, learned or frozen, each once; plain tensors are none', () => {
  class Net extends nn.Module {
    scale = ones(1);
    frozen = new nn.Parameter(torch.ones([1]), false);
    constant = torch.ones([1]);
    leaf = torch.ones([1], { requires_grad: true });

    constructor() {
      super();
      const shared = new nn.Linear(1, 1, { bias: false });
      Object.assign(this, { first: shared, again: shared, tied: shared.weight });
    }
  }
  const net = new Net();
  assert.deepEqual(names(net.named_parameters()), ['scale', 'frozen', 'tied']);
  assert.deepEqual(net.parameters(), [net.scale, net.frozen, net.first.weight]);
  assert.deepEqual(names(net.named_parameters({ remove_duplicate: false })), [
    'scale',
    'frozen',
    'tied',
    'first.weight',
    'again.weight',
  ]);
  assert.deepEqual(names(net.named_modules()), ['', 'first']);
  assert.deepEqual(Object.keys(net.state_dict()), [
    'scale',
    'frozen',
    'tied',
    'first.weight',
    'again.weight',
  ]);
  assert.deepEqual(names(net.requires_grad_(false).named_parameters('net', false)), [
    'net.scale',
    'net.frozen',
    'net.tied',
  ]);
  assert.deepEqual(
    net.parameters().map((p) => p.requires_grad),
    [false, false, false],
  );
});

test('a shared layer is stepped once', () => {
  class Shared extends nn.Module {
    a = new nn.Linear(1, 1, false);
    b = this.a;
  }
  const net = new Shared();
  torch.no_grad(() => net.a.weight.fill_(1));
  const optimizer = new torch.optim.SGD(net.parameters(), 0.5);
  net.a.weight.mul(2).sum().backward();
  optimizer.step();
  assert.deepEqual(net.a.weight.tolist(), [[0]]);
});

test('names are in the order of registration: own ones before those of submodules', () => {
  class Net extends nn.Module {
    inner = new nn.Linear(1, 1);
    10 = ones(1);
    9 = ones(1);
    last = ones(1);
  }
  const net = new Net();
  assert.deepEqual(names(net.named_parameters()).slice(-2), ['inner.weight', 'inner.bias']);
  const added = new nn.Module();
  for (const name of ['10', '9', 'a']) added.register_parameter(name, ones(1));
  delete added.a;
  added.a = ones(1);
  added['10'] = null;
  assert.deepEqual(names(added.named_parameters()), ['9', 'a']);
  added['10'] = ones(1);
  assert.deepEqual(names(added.named_parameters()), ['10', '9', 'a']);
});

test('a name that was registered takes no other kind of thing', () => {
  const net = new nn.Module();
  net.w = ones(1);
  net.layer = new nn.ReLU();
  net.register_buffer('mean', torch.zeros([1]));
  const cases = [
    [
      () => {
        net.w = torch.ones([1]);
      },
      "cannot assign 'torch.FloatTensor' as parameter 'w' (torch.nn.Parameter or None expected)",
    ],
    [
      () => {
        net.w = new nn.ReLU();
      },
      "cannot assign 'ReLU' as parameter 'w' (torch.nn.Parameter or None expected)",
    ],
    [
      () => {
        net.layer = 3;
      },
      "cannot assign 'int' as child module 'layer' (torch.nn.Module or None expected)",
    ],
    [
      () => {
        net.mean = 'x';
      },
      "cannot assign 'str' as buffer 'mean' (torch.nn.Buffer, torch.Tensor or None expected)",
    ],
    [
      () => net.register_parameter('v', torch.ones([1])),
      "cannot assign 'torch.FloatTensor' object to parameter 'v' (torch.nn.Parameter or None required)",
    ],
    [
      () => net.register_buffer('v', 3),
      "register_buffer(): argument 'tensor' (position 2) must be Tensor, not int",
    ],
    [
      () => net.register_buffer('v'),
      "register_buffer() missing 1 required positional argument: 'tensor'",
    ],
    [
      () => net.register_parameter(3, null),
      "register_parameter(): argument 'name' (position 1) must be str, not int",
    ],
    [() => net.add_module('v', 3), 'int is not a Module subclass'],
  ];
  for (const [call, message] of cases) assert.throws(call, { name: 'TypeError', message });
  for (const [name, message] of [
    ['', /can't be empty/],
    ['a.b', /can't contain/],
    ['w', /already exists/],
    ['forward', /already exists/],
  ])
    assert.throws(() => net.register_buffer(name, torch.ones([1])), { name: 'KeyError', message });
  assert.deepEqual(
    [
      net.w.tolist(),
      names(net.named_parameters()),
      names(net.named_buffers()),
      names(net.named_children()),
    ],
    [[1], ['w'], ['mean'], ['layer']],
  );
  Object.assign(net, { w: null, layer: null, mean: null });
  assert.deepEqual([net.parameters(), net.buffers(), net.children()], [[], [], []]);
});

test('buffers are saved and not learned; those that do not persist are not saved', () => {
  const net = new nn.Module();
  net.register_buffer('mean', torch.zeros([2]));
  net.register_buffer('cache', torch.zeros([3]), { persistent: false });
  net.register_buffer('none', null);
  net.mean = torch.ones([2]);
  assert.deepEqual(
    [names(net.named_buffers()), Object.keys(net.state_dict()), net.parameters()],
    [['mean', 'cache'], ['mean'], []],
  );
  assert.deepEqual(
    net.buffers().map((b) => b.tolist()),
    [
      [1, 1],
      [0, 0, 0],
    ],
  );
});

test('private fields, accessors and symbols of a subclass are its own affair', () => {
  const key = Symbol('key');
  class Net extends nn.Module {
    #secret = 3;
    [key] = 4;
    get secret() {
      return this.#secret;
    }
    set secret(value) {
      this.#secret = value;
    }
  }
  const net = new Net();
  net.secret = 5;
  assert.deepEqual([net.secret, net[key], net.parameters()], [5, 4, []]);
  const receivers = [];
  Object.defineProperty(net, 'own', {
    set(value) {
      receivers.push(this, value);
    },
  });
  net.own = 6;
  assert.ok(receivers[0] === net && receivers[1] === 6);
});

// ---------------------------------------------------------------- state dicts

test('a state dict shares memory with its module, prefixed if wanted', () => {
  const layer = new nn.Linear(2, 1, false);
  const state = layer.state_dict({ prefix: 'l.' });
  assert.deepEqual([Object.keys(state), state['l.weight'].requires_grad], [['l.weight'], false]);
  torch.no_grad(() => layer.weight.zero_());
  assert.deepEqual(state['l.weight'].tolist(), [[0, 0]]);
  assert.equal(layer.state_dict({ keep_vars: true }).weight, layer.weight);
  assert.throws(() => layer.state_dict('l.'), { name: 'TypeError', message: /no positional/ });
});

test('what does not fit is named, all of it, and nothing is copied', () => {
  const net = new nn.Sequential(new nn.Linear(2, 3), new nn.ReLU(), new nn.Linear(3, 1));
  const before = net.parameters().map((p) => p.tolist());
  const state = {
    '0.weight': torch.zeros([1, 2]),
    '0.bias': torch.zeros([3]),
    '2.bias': [0],
    '1.weight': torch.zeros([1]),
    'extra': torch.zeros([1]),
    '3.a': torch.zeros([1]),
  };
  assert.throws(() => net.load_state_dict(state), {
    name: 'RuntimeError',
    message:
      'Error(s) in loading state_dict for Sequential:\n\tMissing key(s) in state_dict: "2.weight". ' +
      '\n\tUnexpected key(s) in state_dict: "extra", "3.a", "1.weight". ' +
      '\n\tsize mismatch for 0.weight: copying a param with shape torch.Size([1, 2]) from checkpoint, the shape in current model is torch.Size([3, 2]).' +
      '\n\tWhile copying the parameter named "2.bias", expected torch.Tensor or Tensor-like object from checkpoint but received list',
  });
  assert.throws(() => net.load_state_dict(state, false), { message: /^[^\n]*\n\tsize mismatch/ });
  assert.deepEqual(
    net.parameters().map((p) => p.tolist()),
    before,
  );
  for (const [odd, name] of [
    [null, 'NoneType'],
    [[], 'list'],
    ['x', 'str'],
    [net, 'Sequential'],
  ])
    assert.throws(() => net.load_state_dict(odd), {
      name: 'TypeError',
      message: `Expected state_dict to be dict-like, got ${name}.`,
    });
  assert.throws(() => net.load_state_dict({}, { stric: false }), {
    name: 'TypeError',
    message: /unexpected keyword argument 'stric'/,
  });
});

test('keys that differ are reported if they need not fit, and Maps and old scalars are taken', () => {
  const layer = new nn.Linear(1, 1);
  const kept = layer.bias.tolist();
  const found = layer.load_state_dict(
    new Map([
      ['weight', torch.tensor([[7]])],
      ['x', torch.ones([1])],
    ]),
    { strict: false },
  );
  assert.deepEqual(
    [found, layer.weight.tolist(), layer.bias.tolist()],
    [{ missing_keys: ['bias'], unexpected_keys: ['x'] }, [[7]], kept],
  );
  const net = new nn.Module();
  net.w = new nn.Parameter(torch.tensor(1));
  assert.deepEqual(
    [net.load_state_dict({ w: torch.tensor([3]) }), net.w.tolist()],
    [{ missing_keys: [], unexpected_keys: [] }, 3],
  );
});

test('with assign the tensors themselves are taken', () => {
  const layer = new nn.Linear(1, 1, false);
  layer.requires_grad_(false);
  const weight = torch.tensor([[7]]);
  layer.load_state_dict({ weight }, { assign: true });
  weight.fill_(8);
  assert.deepEqual(
    [layer.weight.tolist(), layer.weight.requires_grad, layer.parameters().length],
    [[[8]], false, 1],
  );
});

test('modes and gradients are set all over the tree', () => {
  const net = new nn.Sequential(new nn.Dropout(0.5), new nn.Linear(2, 1));
  assert.deepEqual(
    net
      .eval()
      .modules()
      .map((m) => m.training),
    [false, false, false],
  );
  assert.deepEqual(
    net
      .train({ mode: true })
      .modules()
      .map((m) => m.training),
    [true, true, true],
  );
  for (const mode of [1, 'eval', null])
    assert.throws(() => net.train(mode), {
      name: 'ValueError',
      message: 'training mode is expected to be boolean',
    });
  net
    .call(torch.ones([2]))
    .sum()
    .backward();
  net.zero_grad({ set_to_none: false });
  assert.deepEqual(
    net.parameters().map((p) => p.grad.tolist().flat()),
    [[0, 0], [0]],
  );
  net.zero_grad();
  assert.deepEqual(
    net.parameters().map((p) => p.grad),
    [null, null],
  );
  assert.throws(() => net.zero_grad('no'), {
    name: 'TypeError',
    message: /'set_to_none' \(position 1\) must be bool, not str/,
  });
  const seen = [];
  net.apply((module) => seen.push(module.constructor.name));
  assert.deepEqual(seen, ['Dropout', 'Linear', 'Sequential']);
});

test('a Sequential takes layers, or names and layers, and nothing else', () => {
  const [a, b] = [new nn.ReLU(), new nn.Flatten(0)];
  assert.deepEqual(names(new nn.Sequential({ a, b }).named_children()), ['a', 'b']);
  assert.deepEqual(
    names(
      new nn.Sequential(
        new Map([
          ['2', a],
          ['1', b],
        ]),
      ).named_children(),
    ),
    ['2', '1'],
  );
  assert.deepEqual(new nn.Sequential(a, b).call(torch.tensor([[-1, 2]])).tolist(), [0, 2]);
  for (const [odd, name] of [
    [3, 'int'],
    [undefined, 'NoneType'],
    [F.relu, 'function'],
    [torch.ones([1]), 'torch.FloatTensor'],
  ])
    assert.throws(() => new nn.Sequential(a, odd), {
      name: 'TypeError',
      message: `${name} is not a Module subclass`,
    });
  assert.throws(() => new nn.Sequential({ 'a.b': a }), {
    name: 'KeyError',
    message: 'module name can\'t contain ".", got: a.b',
  });
});

test('modules in order are added, put in between and taken out, and named by their places', () => {
  const [relu, tanh, linear] = [new nn.ReLU(), new nn.Tanh(), new nn.Linear(2, 1)];
  for (const list of [new nn.ModuleList([relu]), new nn.Sequential(relu)]) {
    list.extend([linear]).append(tanh).insert(1, tanh);
    assert.deepEqual(
      [list.length, [...list], list.at(-2), list.at(0)],
      [4, [relu, tanh, linear, tanh], linear, relu],
    );
    assert.deepEqual(names(list.named_parameters()), ['2.weight', '2.bias']);
    assert.equal(list.pop(1), tanh);
    assert.deepEqual(names(list.named_children()), ['0', '1', '2']);
    assert.throws(() => list.insert(0, 3), { name: 'TypeError', message: /not a Module subclass/ });
    for (const index of [3, -4, 0.5])
      assert.throws(() => list.at(index), {
        name: 'IndexError',
        message: `index ${index} is out of range`,
      });
    assert.deepEqual([...list], [relu, linear, tanh]);
  }
  assert.throws(() => new nn.Sequential(relu).insert(2, relu), { name: 'IndexError' });
  assert.throws(() => new nn.ModuleList(3), {
    name: 'TypeError',
    message: 'ModuleList.extend should be called with an iterable, but got int',
  });
  assert.equal(String(new nn.ModuleList()), 'ModuleList()');
  assert.equal(
    String(new nn.ModuleList([new nn.ReLU(), new nn.ReLU(), linear])),
    'ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Linear(in_features=2, out_features=1, bias=True)\n)',
  );
});

test('modules by name are added, replaced and taken out', () => {
  const [left, right] = [new nn.Linear(2, 1), new nn.ReLU()];
  const heads = new nn.ModuleDict({ left });
  heads.update([['right', right]]);
  assert.deepEqual(
    [heads.length, heads.keys(), heads.values(), heads.items()[1], heads.has('up')],
    [2, ['left', 'right'], [left, right], ['right', right], false],
  );
  assert.deepEqual(names(heads.named_parameters()), ['left.weight', 'left.bias']);
  assert.equal(heads.pop('left'), left);
  assert.throws(() => heads.get('left'), { name: 'KeyError', message: "'left'" });
  assert.throws(() => heads.set('keys', right), { name: 'KeyError', message: /already exists/ });
  assert.throws(() => heads.update(3), {
    name: 'TypeError',
    message: 'ModuleDict.update should be called with an iterable of key/value pairs, but got int',
  });
  heads.clear();
  assert.equal(String(heads), 'ModuleDict()');
});

test('containers of parameters make parameters of tensors, and hold other values', () => {
  const list = new nn.ParameterList([torch.zeros([2, 3]), ones(1), 'x']);
  list.set(-1, torch.ones([]));
  list.append(4);
  assert.deepEqual(names(list.named_parameters()), ['0', '1', '2']);
  assert.deepEqual([list.length, list.at(3), [...list][1]], [4, 4, list.at(1)]);
  assert.equal(
    String(list),
    'ParameterList(\n    (0): Parameter containing: [torch.float32 of size 2x3]\n' +
      '    (1): Parameter containing: [torch.float32 of size 1]\n' +
      '    (2): Parameter containing: [torch.float32 of size ]\n    (3): Object of type: int\n)',
  );
  assert.throws(() => list.extend(torch.ones([2])), {
    name: 'TypeError',
    message: 'ParameterList.extend should be called with an iterable, but got Tensor',
  });
  const dict = new nn.ParameterDict({ b: torch.zeros([2]), a: ones(1) });
  dict.update([['c', 3]]);
  assert.deepEqual([dict.keys(), dict.get('c'), dict.get('d', 5)], [['a', 'b', 'c'], 3, 5]);
  assert.deepEqual(names(dict.named_parameters()), ['a', 'b']);
  assert.equal(dict.pop('b').shape.length, 1);
  assert.equal(
    String(dict),
    'ParameterDict(\n    (a): Parameter containing: [torch.FloatTensor of size 1]\n' +
      '    (c): Object of type: int\n)',
  );
  for (const held of [list, dict])
    assert.throws(() => held.call(), { name: 'RuntimeError', message: /should not be called/ });
  dict.clear();
  assert.deepEqual([dict.length, dict.parameters()], [0, []]);
});

// ---------------------------------------------------------------- how the arguments of layers are given

const containers = ['Sequential', 'ModuleList', 'ModuleDict', 'ParameterList', 'ParameterDict'];
const layers = Object.keys(nn).filter(
  (name) => nn[name].prototype instanceof nn.Module && !containers.includes(name),
);
/** For each type arguments that are no default, and one that is of no type that an argument has. */
const VALUES = {
  'int': 4,
  'int[]': [3, 3],
  'int[]?': [1, 1],
  'str|int[]': 2,
  'bool': true,
  'bool?': true,
  'float': 0.25,
  'float?': 2.5,
  'int?': 1,
  'str': 'mean',
  'Tensor?': () => torch.ones([4, 4]),
  'Device?': 'cpu',
  'ScalarType?': torch.float64,
  'Sizes?': [3, 3],
  'Floats?': 0.5,
};
const OTHERS = {
  padding_mode: 'circular',
  approximate: 'tanh',
  reduction: 'sum',
  groups: 2,
  stride: [2, 1],
  inplace: true,
  sparse: false,
  divisor_override: 3,
};
/** Arguments of one layer, which it would refuse otherwise. */
const OWN = {
  'Hardtanh.max_val': 1.5,
  'Hardtanh.min_value': -0.5,
  'ConvTranspose.padding_mode': 'zeros',
  'FractionalMaxPool.output_ratio': null,
  'MultiMarginLoss.p': 2,
  'MultiMarginLoss.weight': () => torch.ones([4]),
  'GroupNorm.num_groups': 2,
  'RNN.nonlinearity': 'relu',
  'RNNCell.nonlinearity': 'relu',
  'LSTM.proj_size': 2,
};
const given = (layer, name, type) => {
  const own = OWN[`${layer.replace(/\dd$/, '')}.${name}`];
  const value = own === undefined ? (OTHERS[name] ?? VALUES[type]) : own;
  return typeof value === 'function' ? value() : value;
};
/** Layers that need more arguments than those without defaults. */
const LEAST = { FractionalMaxPool2d: 2, FractionalMaxPool3d: 2 };
/** What is seen of a layer: what it keeps, and its tensors after the same draws. */
function look(name, args) {
  torch.manual_seed(0);
  let layer;
  warnings(() => {
    layer = new nn[name](...args);
  });
  return {
    ...Object.fromEntries(
      Object.entries(layer).filter(([, value]) => !(value instanceof nn.Module)),
    ),
    ...Object.fromEntries(
      [...layer.named_parameters(), ...layer.named_buffers()].map(([key, t]) => [
        key,
        [t.tolist(), t.dtype, t.requires_grad],
      ]),
    ),
  };
}

test("every layer has a signature of Python's, but the one that takes anything", () => {
  assert.ok(layers.length >= 120);
  assert.deepEqual(
    layers.filter((name) => !signatures[name]),
    ['Identity'],
  );
});

for (const name of layers.filter((each) => signatures[each])) {
  const signature = Object.entries(signatures[name]);
  const values = signature.map(([key, [type]]) => given(name, key, type));
  const required = LEAST[name] ?? signature.filter(([, row]) => row.length === 1).length;
  const inOrder = signature.filter(([, row]) => row[2] !== 'named').length;
  /** Arguments, the first of them in order. */
  const mixed = (count, entries = signature.map(([key], i) => [key, values[i]])) => [
    ...values.slice(0, count),
    Object.fromEntries(entries.slice(count)),
  ];

  test(`${name}: arguments in order are those by name, and may be mixed`, () => {
    const all = look(name, mixed(inOrder));
    for (let count = 0; count < inOrder; count++)
      assert.deepEqual(look(name, mixed(count)), all, `${count} in order`);
    const standards = signature.map(([key, [, value]]) => [key, value]);
    for (let count = required; count < inOrder; count++)
      assert.deepEqual(
        look(name, mixed(count, standards)),
        look(name, values.slice(0, count)),
        `${count} given`,
      );
  });

  test(`${name}: what it does not take is an error, not left unread`, () => {
    assert.throws(() => new nn[name](...values.slice(0, inOrder), 1), {
      name: 'TypeError',
      message: /takes at most \d+ positional arguments? but \d+ were given/,
    });
    assert.throws(() => new nn[name](...values.slice(0, inOrder), { nonsense: 1 }), {
      name: 'TypeError',
      message: `${name}() got an unexpected keyword argument 'nonsense'`,
    });
    signature.forEach(([key, row], i) => {
      const named = Object.fromEntries(signature.map(([each], k) => [each, values[k]]));
      if (i < inOrder)
        assert.throws(() => new nn[name](...values.slice(0, i + 1), { [key]: 1 }), {
          name: 'TypeError',
          message: `${name}() got multiple values for argument '${key}'`,
        });
      const message = new RegExp(
        `^${name}\\(\\): argument '${key}' \\(position ${i + 1}\\) must be `,
      );
      assert.throws(
        () => new nn[name]({ ...named, [key]: Symbol('odd') }),
        { name: 'TypeError', message },
        key,
      );
      if (!row[0].endsWith('?'))
        assert.throws(
          () => new nn[name]({ ...named, [key]: null }),
          { name: 'TypeError', message },
          key,
        );
      delete named[key];
      if (row.length === 1)
        assert.throws(() => new nn[name](named), {
          name: 'TypeError',
          message: `${name}() missing 1 required positional argument: '${key}'`,
        });
    });
  });

  test(`${name}: an input too many is an error`, () => {
    const layer = new nn[name](...values.slice(0, required));
    assert.throws(() => layer.call(...Array(12).fill(1)), {
      name: 'TypeError',
      message: /^forward\(\) takes at most/,
    });
  });
}

test('a class derived from a layer has its arguments, and may make it differently', () => {
  class Same extends nn.Linear {}
  class Square extends nn.Conv2d {
    scale = ones(1);

    constructor(channels) {
      super(channels, channels, { kernel_size: 1, bias: false });
    }

    forward(x) {
      return super.forward(x).mul(this.scale);
    }
  }
  const [same, square] = [new Same(2, 1, { bias: false }), new Square(3)];
  assert.equal(String(same), 'Same(in_features=2, out_features=1, bias=False)');
  assert.throws(() => new Same(2), { message: /^Linear\(\) missing 1 required/ });
  assert.deepEqual(names(square.named_parameters()), ['weight', 'scale']);
  assert.deepEqual(square.call(torch.zeros([1, 3, 2, 2])).shape, [1, 3, 2, 2]);
});

test('sizes that are missing are all named', () => {
  assert.throws(() => new nn.Conv2d(), {
    name: 'TypeError',
    message:
      "Conv2d() missing 3 required positional arguments: 'in_channels', 'out_channels', and 'kernel_size'",
  });
  assert.throws(() => new nn.Linear(), {
    message: "Linear() missing 2 required positional arguments: 'in_features' and 'out_features'",
  });
});

test('every argument of a layer does what it does in its function', () => {
  torch.manual_seed(0);
  const image = torch.randn([1, 4, 6, 6]);
  const same = (a, b) => assert.deepEqual(a.tolist(), b.tolist());
  for (const padding of [1, [2, 1], 'same', 'valid']) {
    for (const padding_mode of ['zeros', 'circular', 'reflect', 'replicate']) {
      const conv = new nn.Conv2d(4, 2, [3, 3], {
        padding,
        padding_mode,
        dilation: [1, 2],
        groups: 2,
        bias: false,
      });
      const [p, q] =
        { same: [1, 2], valid: [0, 0] }[padding] ?? [padding].flat().concat(padding).slice(0, 2);
      const around = F.pad(
        image,
        [q, q, p, p],
        padding_mode === 'zeros' ? 'constant' : padding_mode,
      );
      same(conv.call(image), F.conv2d(around, conv.weight, null, 1, 0, [1, 2], 2));
    }
  }
  assert.deepEqual(
    new nn.Conv2d(1, 8, 3, 1, 1).call(torch.zeros([1, 1, 5, 5])).shape,
    [1, 8, 5, 5],
  );
  same(
    new nn.AvgPool2d(2, { divisor_override: 3 }).call(image),
    F.avg_pool2d(image, 2, { divisor_override: 3 }),
  );
  same(
    new nn.AvgPool2d(3, 2, 1, true, false).call(image),
    F.avg_pool2d(image, 3, 2, 1, true, false),
  );
  same(
    new nn.MaxPool2d(3, 2, 1, 1, { ceil_mode: true }).call(image),
    F.max_pool2d(image, 3, { stride: 2, padding: 1, ceil_mode: true }),
  );
  same(
    new nn.MaxPool2d(2, { return_indices: true }).call(image)[1],
    F.max_pool2d(image, 2, { return_indices: true })[1],
  );
  same(new nn.GELU('tanh').call(image), F.gelu(image, { approximate: 'tanh' }));
  same(new nn.Softmax(1).call(image), F.softmax(image, 1));
  same(
    new nn.LayerNorm([6, 6], 0.5, false).call(image),
    F.layer_norm(image, [6, 6], null, null, 0.5),
  );
  assert.deepEqual(names(new nn.LayerNorm(6, { bias: false }).named_parameters()), ['weight']);
  const written = torch.tensor([-1, 2]);
  assert.equal(new nn.ReLU({ inplace: true }).call(written), written);
  assert.equal(new nn.Dropout(0, true).call(written), written);
  assert.deepEqual(warnings(() => new nn.Softmax().call(image)).length, 1);
});

test('an embedding has a row that is padding, norms, and rows that were given', () => {
  const table = new nn.Embedding(3, 2, -1);
  assert.deepEqual([table.padding_idx, table.weight.tolist()[2]], [2, [0, 0]]);
  table
    .call(torch.tensor([0n, 2n]))
    .sum()
    .backward();
  assert.deepEqual(table.weight.grad.tolist(), [
    [1, 1],
    [0, 0],
    [0, 0],
  ]);
  const rows = torch.tensor([
    [3, 4],
    [0.3, 0.4],
  ]);
  const given = nn.Embedding.from_pretrained(rows, { max_norm: 1 });
  const near = (a, b) => assert.ok(torch.allclose(a, torch.tensor(b)));
  near(given.call(torch.tensor([0n, 1n])), [
    [0.6, 0.8],
    [0.3, 0.4],
  ]);
  assert.deepEqual(
    [given.weight.requires_grad, nn.Embedding.from_pretrained(rows, false).weight.requires_grad],
    [false, true],
  );
  assert.throws(() => new nn.Embedding(3, 2, 3), {
    name: 'AssertionError',
    message: 'Padding_idx must be within num_embeddings',
  });
  assert.throws(() => new nn.Embedding(3, 2, { _weight: rows }), {
    name: 'AssertionError',
    message: /Shape of weight/,
  });
  assert.throws(() => nn.Embedding.from_pretrained(rows.index(0)), {
    name: 'AssertionError',
    message: /2-dimensional/,
  });
});

test('a layer has the dtype that is asked for, and the CPU alone', () => {
  for (const layer of [
    new nn.Linear(2, 2, { dtype: torch.float64 }),
    new nn.Conv2d(1, 1, 1, { dtype: torch.float64 }),
    new nn.LayerNorm(2, { dtype: torch.float64 }),
  ])
    assert.deepEqual(
      layer.parameters().map((p) => p.dtype),
      [torch.float64, torch.float64],
    );
  assert.throws(() => new nn.Linear(2, 2, true, 'cuda'), {
    name: 'AssertionError',
    message: /CUDA/,
  });
});

test('losses keep their arguments, and the older flags mean what they did', () => {
  const [x, y] = [
    torch.tensor([
      [1, 2],
      [3, 4],
    ]),
    torch.tensor([0n, 1n]),
  ];
  const weight = torch.tensor([1, 3]);
  const loss = new nn.CrossEntropyLoss(weight, {
    ignore_index: 1,
    reduction: 'sum',
    label_smoothing: 0.1,
  });
  assert.deepEqual(
    loss.call(x, y).tolist(),
    F.cross_entropy(x, y, {
      weight,
      ignore_index: 1,
      reduction: 'sum',
      label_smoothing: 0.1,
    }).tolist(),
  );
  assert.deepEqual([names(loss.named_buffers()), loss.parameters()], [['weight'], []]);
  const texts = warnings(() => {
    const reductions = [[false], [true], [null, false], [true, true], [false, false]].map(
      (flags) => new nn.MSELoss(...flags).reduction,
    );
    assert.deepEqual(reductions, ['sum', 'mean', 'none', 'mean', 'none']);
  });
  assert.equal(texts.length, 5);
  assert.throws(() => new nn.MSELoss({ reduction: 'all' }).call(x, x), {
    name: 'ValueError',
    message: 'all is not a valid value for reduction',
  });
});

test('values out of range are errors in the words of PyTorch', () => {
  const cases = [
    [() => new nn.Dropout(-0.1), 'dropout probability has to be between 0 and 1, but got -0.1'],
    [() => new nn.Dropout(1.5), 'dropout probability has to be between 0 and 1, but got 1.5'],
    [() => new nn.Dropout(NaN).call(torch.ones([1])), /probability has to be between 0 and 1/],
    [() => new nn.Conv2d(3, 4, 1, { groups: 2 }), 'in_channels must be divisible by groups'],
    [() => new nn.Conv2d(4, 3, 1, { groups: 2 }), 'out_channels must be divisible by groups'],
    [() => new nn.Conv2d(4, 4, 1, { groups: 0 }), 'groups must be a positive integer'],
    [
      () => new nn.Conv2d(1, 1, 1, { padding: 'full' }),
      "Invalid padding string 'full', should be one of {'same', 'valid'}",
    ],
    [
      () => new nn.Conv2d(1, 1, 1, 2, 'same'),
      "padding='same' is not supported for strided convolutions",
    ],
    [
      () => new nn.Conv2d(1, 1, 1, { padding_mode: 'none' }),
      /^padding_mode must be one of \{'zeros', .*\}, but got padding_mode='none'$/,
    ],
  ];
  for (const [call, message] of cases) assert.throws(call, { name: 'ValueError', message });
  assert.throws(() => new nn.Linear(-1, 2), {
    name: 'RuntimeError',
    message: /negative dimension/,
  });
  assert.deepEqual(
    warnings(() =>
      assert.deepEqual(new nn.Linear(0, 2).call(torch.ones([1, 0])).tolist(), [[0, 0]]),
    ),
    ['Initializing zero-element tensors is a no-op'],
  );
});

test('a base of modules takes no arguments, and needs a forward', () => {
  assert.throws(() => new nn.Module(1), {
    name: 'TypeError',
    message: 'Module() takes no arguments, but 1 were given',
  });
  assert.throws(() => new nn.Module().call(1), {
    name: 'NotImplementedError',
    message: 'Module [Module] is missing the required "forward" function',
  });
});

// ---------------------------------------------------------------- layers that the engine composes of other ops

const near = (tensor, wanted) => {
  const found = tensor.flatten().tolist();
  assert.equal(found.length, wanted.length);
  found.forEach((value, i) =>
    assert.ok(Math.abs(value - wanted[i]) < 1e-5, `${found} is not ${wanted}`),
  );
};

test('ctc_loss sums over the alignments of a labelling, whose lengths are tensors or lists', () => {
  const even = torch.zeros([3, 1, 2]).log_softmax(2).requires_grad_(),
    target = torch.tensor([[1n]]);
  const loss = F.ctc_loss(even, target, [3], [1]);
  near(loss.exp(), [4 / 3]);
  near(
    F.ctc_loss(even, target, torch.tensor([3n]), torch.tensor([1n]), { reduction: 'sum' }).exp(),
    [4 / 3],
  );
  loss.backward();
  near(even.grad.sum(2), [0, 0, 0]);
  assert.throws(() => F.ctc_loss(even, target, [4], [1]), {
    name: 'RuntimeError',
    message: /input_lengths to have value at most 3/,
  });
});

test('grid_sample takes an image at the places of affine_grid', () => {
  const image = torch.arange(4).reshape([1, 1, 2, 2]).float().requires_grad_();
  const theta = torch.tensor([
    [
      [1, 0, 0],
      [0, 1, 0],
    ],
  ]);
  const grid = F.affine_grid(theta, [1, 1, 2, 2], { align_corners: true });
  near(grid, [-1, -1, 1, -1, -1, 1, 1, 1]);
  const found = F.grid_sample(image, grid, { align_corners: true });
  near(found, [0, 1, 2, 3]);
  found.sum().backward();
  near(image.grad, [1, 1, 1, 1]);
  near(torch.grid_sampler(image, torch.zeros([1, 1, 1, 2]), 0, 0, true), [1.5]);
  assert.deepEqual(warnings(() => F.grid_sample(image, grid)).length, 1);
  assert.throws(() => F.grid_sample(image, grid, 'cubic'), {
    name: 'ValueError',
    message: /expected mode to be 'bilinear'/,
  });
});

test('max_unpool puts back what max_pool took', () => {
  const x = torch.tensor([
    [
      [
        [1, 3],
        [2, 0],
      ],
    ],
  ]);
  near(F.max_unpool2d(...F.max_pool2d(x, 2, { return_indices: true }), 2), [0, 3, 0, 0]);
  near(
    F.max_unpool1d(torch.tensor([[3]]), torch.tensor([[1n]]), 2, { output_size: [3] }),
    [0, 3, 0],
  );
});

test('fractional_max_pool2d and gumbel_softmax draw as Python does', () => {
  torch.manual_seed(0);
  assert.deepEqual(
    F.fractional_max_pool2d(torch.ones([1, 1, 4, 4]), 2, { output_size: 2 }).tolist(),
    [
      [
        [
          [1, 1],
          [1, 1],
        ],
      ],
    ],
  );
  assert.deepEqual(
    F.gumbel_softmax(torch.zeros([2, 3]), 1, true)
      .sum(-1)
      .tolist(),
    [1, 1],
  );
});

test('upsample_nearest and upsample_bilinear are interpolate by older names, and say so', () => {
  const texts = warnings(() => near(F.upsample_nearest(torch.ones([1, 1, 1]), 2), [1, 1]));
  assert.deepEqual(texts, [
    '`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.',
  ]);
  warnings(() =>
    near(F.upsample_bilinear(torch.arange(2).float().reshape([1, 1, 1, 2]), [1, 3]), [0, 0.5, 1]),
  );
});

test('multi_head_attention_forward attends by weights that are given', () => {
  const x = torch.ones([3, 1, 2]),
    eye = torch.eye(2);
  const weights = [torch.cat([eye, eye, eye]), null, null, null, false, 0, eye, null];
  const [output, shown] = F.multi_head_attention_forward(x, x, x, 2, 1, ...weights);
  near(output, [1, 1, 1, 1, 1, 1]);
  near(shown, Array(9).fill(1 / 3));
  assert.equal(
    F.multi_head_attention_forward(x, x, x, 2, 1, ...weights, { need_weights: false })[1],
    null,
  );
  assert.throws(() => F.multi_head_attention_forward(x, x, x, 2, 3, ...weights), {
    name: 'AssertionError',
    message: 'embed_dim 2 not divisible by num_heads 3',
  });
  assert.throws(() => F.multi_head_attention_forward(x, x, x), {
    name: 'TypeError',
    message: /missing 10 required positional arguments/,
  });
});

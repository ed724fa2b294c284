// Every optimizer in this language: the twin of test_optimizers.py's.

const flat = (torch, x) => {
  const own = x.detach().resolve_conj();
  const real = own.is_complex() ? torch.view_as_real(own) : own;
  return real.to(torch.float64).flatten().tolist();
};

const values = (torch, shape, phase, dtype) => {
  const count = shape.reduce((a, b) => a * b, 1);
  const real = torch.arange(count, { dtype: torch.float64 }).add(phase).sin().reshape(shape);
  const kind = torch[dtype];
  return (kind.is_complex ? torch.complex(real, real.mul(3).cos()) : real).to(kind);
};

/** Parameters, states and the order of names after some steps. */
function steps(torch, { name, options, dtype, shapes }) {
  const params = shapes.map((shape, k) => values(torch, shape, 0.3 * k, dtype).requires_grad_());
  const optimizer = new torch.optim[name](params, options);
  for (let step = 0; step < 4; step++) {
    params.forEach((p, k) => {
      const grad = values(torch, p.shape, 1 + k + 0.1 * step, dtype);
      p.grad = name === 'SparseAdam' ? grad.to_sparse_coo() : grad;
    });
    if (step === 2) params[0].grad = null;
    optimizer.step();
  }
  const { params: _, ...group } = optimizer.param_groups[0];
  const state = params.map((p) =>
    Object.entries(optimizer.state.get(p) ?? {}).map(([key, value]) => [key, flat(torch, value)]),
  );
  return [params.map((p) => flat(torch, p)), state, Object.keys(group)];
}

/** The error of a constructor, or null. */
function error(torch, { name, options }) {
  try {
    new torch.optim[name]([torch.ones([2, 2]).requires_grad_()], options);
  } catch (raised) {
    return [raised.name, raised.message];
  }
  return null;
}

/** Losses, parameter, state and counters of some steps of L-BFGS. */
function minimize(torch, { dtype, options }) {
  const kind = torch[dtype];
  const x = torch.tensor([0.3, -1.2, 2], { dtype: kind }).requires_grad_();
  const optimizer = new torch.optim.LBFGS([x], options);
  const closure = () => {
    optimizer.zero_grad();
    const apart = x.sub(torch.tensor([1, 2, 3], { dtype: kind }));
    const loss = apart.square().mul(x.cos().add(2)).sum();
    loss.backward();
    return loss;
  };
  const losses = [0, 1, 2].map(() => torch.scope(() => optimizer.step(closure).item()));
  const { func_evals, n_iter } = optimizer.state.get(x);
  return [losses, x.tolist(), Object.keys(optimizer.state.get(x)), func_evals, n_iter];
}

export const answer = (torch, { trained, wrong, minimized }) => [
  trained.map((each) => steps(torch, each)),
  wrong.map((each) => error(torch, each)),
  minimized.map((each) => minimize(torch, each)),
];

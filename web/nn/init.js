/** Values of new parameters, in the steps of Python's functions: the same bits for the same seed. */
import { ValueError } from '../engine.js';

/** The numbers of inputs of an output element, and of outputs of an input element. */
function _calculate_fan_in_and_fan_out(tensor) {
  const [n_out, n_in, ...kernel] = tensor.shape;
  if (n_in === undefined)
    throw new ValueError(
      'Fan in and fan out can not be computed for tensor with fewer than 2 dimensions',
    );
  const field = kernel.reduce((a, b) => a * b, 1);
  return [n_in * field, n_out * field];
}

/** Functions of torch.nn.init that layers call. */
export function makeInit(engine, { no_grad }) {
  const fill = (tensor, value) => no_grad(() => tensor.fill_(value));
  const uniform_ = (tensor, low, high) =>
    no_grad(() => (tensor.numel() ? tensor.uniform_(low + 0, high) : tensor)); // -0 becomes 0

  /** He's initialisation for leaky_relu of slope `a`: uniform on (-b, b), b = gain * sqrt(3 / fan_in). */
  function kaiming_uniform_(tensor, { a }) {
    if (!tensor.numel()) {
      engine.onWarning('Initializing zero-element tensors is a no-op');
      return tensor;
    }
    const [fan] = _calculate_fan_in_and_fan_out(tensor);
    const bound = Math.sqrt(3) * (Math.sqrt(2 / (1 + a * a)) / Math.sqrt(fan));
    return uniform_(tensor, -bound, bound);
  }

  /** Glorot's standard deviation: of inputs and outputs together. */
  function standardDeviation(tensor) {
    const [fan_in, fan_out] = _calculate_fan_in_and_fan_out(tensor);
    return Math.sqrt(2 / (fan_in + fan_out));
  }

  /** Glorot's initialisation: uniform on (-b, b), b = sqrt(6 / (fan_in + fan_out)). */
  function xavier_uniform_(tensor) {
    const bound = Math.sqrt(3) * standardDeviation(tensor);
    return uniform_(tensor, -bound, bound);
  }

  return {
    _calculate_fan_in_and_fan_out,
    xavier_uniform_,
    xavier_normal_: (tensor) => no_grad(() => tensor.normal_(0, standardDeviation(tensor))),
    uniform_,
    kaiming_uniform_,
    normal_: (tensor) => no_grad(() => tensor.normal_()),
    constant_: fill,
    ones_: (tensor) => fill(tensor, 1),
    zeros_: (tensor) => no_grad(() => tensor.zero_()),
  };
}

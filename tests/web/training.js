// A training that can stop and go on elsewhere: the twin of test_continuation.py's.
import { makeNetwork } from '../../web/rooms/network.js';

const OPTIMIZERS = {
  SGD: (torch, parameters) =>
    new torch.optim.SGD(parameters, { lr: 0.1, momentum: 0.9, nesterov: true }),
  Adam: (torch, parameters) => new torch.optim.Adam(parameters, { lr: 2e-3, amsgrad: true }),
  AdamW: (torch, parameters) => new torch.optim.AdamW(parameters, { lr: 2e-3, betas: [0.8, 0.99] }),
};

class Training {
  constructor(torch, name) {
    this.torch = torch;
    this.model = makeNetwork(torch, 0);
    this.optimizer = OPTIMIZERS[name](torch, this.model.parameters());
  }

  run(steps) {
    const { torch, model, optimizer } = this;
    for (let step = 0; step < steps; step++)
      torch.scope(() => {
        const [images, labels] = [torch.rand([32, 64]), torch.randint(10, [32])];
        optimizer.zero_grad();
        torch.nn.functional.cross_entropy(model.call(images), labels).backward();
        optimizer.step();
      });
  }

  /** All that there is to go on from, as a file. */
  save() {
    const { torch, model, optimizer } = this;
    return torch.save({
      model: model.state_dict(),
      optimizer: optimizer.state_dict(),
      generator: torch.get_rng_state(),
    });
  }

  load(bytes) {
    const { model, optimizer, generator } = this.torch.load(bytes);
    this.model.load_state_dict(model);
    this.optimizer.load_state_dict(optimizer);
    this.torch.set_rng_state(generator);
  }
}

/** Some steps from the seed on, or from a file; the file that they end with. */
export function train(torch, name, steps, bytes) {
  const training = new Training(torch, name);
  if (bytes) training.load(bytes);
  training.run(steps);
  return training.save();
}

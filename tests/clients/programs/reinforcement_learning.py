"""No package: PyTorch's tutorials on games: a deep Q-network, an actor and a critic, PPO."""

import math
import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.distributions import Categorical, Normal

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class Cart:
    """A pole on a cart, as Barto, Sutton and Anderson have it."""

    def reset(self):
        self.state = np.random.uniform(-0.05, 0.05, 4).astype(np.float32)
        self.steps = 0
        return self.state

    def step(self, action):
        _, speed, angle, turning = self.state
        force, cos, sin = 10.0 if action else -10.0, math.cos(angle), math.sin(angle)
        pushed = (force + 0.05 * turning**2 * sin) / 1.1
        turned = (9.8 * sin - cos * pushed) / (0.5 * (4 / 3 - 0.1 * cos * cos / 1.1))
        moved = pushed - 0.05 * turned * cos / 1.1
        change = np.array([speed, moved, turning, turned], dtype=np.float32)
        self.state = self.state + np.float32(0.02) * change
        self.steps += 1
        return self.state, bool(abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21)


def network(outputs):
    return nn.Sequential(
        nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, outputs)
    )


environment = Cart()
policy, target = network(2), network(2)
target.load_state_dict(policy.state_dict())
optimizer = optim.AdamW(policy.parameters(), lr=3e-4, amsgrad=True)
memory = deque(maxlen=1000)


def learn():
    batch = Transition(*zip(*random.sample(memory, 16), strict=True))
    goes_on = torch.tensor([state is not None for state in batch.next_state])
    after = torch.cat([state for state in batch.next_state if state is not None])
    values = policy(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
    next_values = torch.zeros(16)
    with torch.no_grad():
        next_values[goes_on] = target(after).max(1).values
    expected = next_values * 0.99 + torch.cat(batch.reward)
    loss = nn.SmoothL1Loss()(values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy.parameters(), 100)
    optimizer.step()
    state = target.state_dict()
    for name, value in policy.state_dict().items():
        state[name] = value * 0.005 + state[name] * 0.995
    target.load_state_dict(state)
    return loss.item()


for episode in range(4):
    state, ended, loss = torch.tensor(environment.reset())[None], False, 0.0
    while not ended and environment.steps < 50:
        if random.random() > 0.5:
            with torch.no_grad():
                action = policy(state).max(1).indices.view(1, 1)
        else:
            action = torch.tensor([[random.randint(0, 1)]])
        seen, ended = environment.step(action.item())
        after = None if ended else torch.from_numpy(seen)[None]
        memory.append(Transition(state, action, after, torch.tensor([1.0])))
        state = after
        if len(memory) >= 16:
            loss = learn()
    print("q-network", episode, environment.steps, loss)

body, actor, critic = nn.Linear(4, 32), nn.Linear(32, 2), nn.Linear(32, 1)
parameters = [p for each in (body, actor, critic) for p in each.parameters()]
optimizer = optim.Adam(parameters, lr=3e-2)
for episode in range(3):
    state, ended, saved = environment.reset(), False, []
    while not ended and environment.steps < 50:
        hidden = F.relu(body(torch.from_numpy(state)))
        choice = Categorical(F.softmax(actor(hidden), dim=-1))
        action = choice.sample()
        saved.append((choice.log_prob(action), critic(hidden)))
        state, ended = environment.step(action.item())
    returns, total = [], 0.0
    for _ in saved:
        total = 1 + 0.99 * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + np.finfo(np.float32).eps.item())
    losses = [
        -log_prob * (reward - value.item()) + F.smooth_l1_loss(value, reward[None])
        for (log_prob, value), reward in zip(saved, returns, strict=True)
    ]
    optimizer.zero_grad()
    torch.stack(losses).sum().backward()
    optimizer.step()
    print("actor and critic", episode, len(saved), torch.stack(losses).sum().item())

actor, critic = network(2), network(1)
for layer in [*actor, *critic]:
    if isinstance(layer, nn.Linear):
        nn.init.orthogonal_(layer.weight, np.sqrt(2))
        nn.init.constant_(layer.bias, 0.0)
log_std = nn.Parameter(torch.zeros(1, 2))
optimizer = optim.Adam([*actor.parameters(), *critic.parameters(), log_std], lr=3e-4, eps=1e-5)
states, advantages, returns = torch.randn(64, 4), torch.randn(64), torch.randn(64)
before = Normal(actor(states), log_std.exp().expand(64, 2))
actions = before.sample()
old = before.log_prob(actions).sum(1).detach()
order = np.arange(64)
for epoch in range(2):
    np.random.shuffle(order)
    for start in range(0, 64, 16):
        part = order[start : start + 16]
        now = Normal(actor(states[part]), log_std.exp().expand(16, 2))
        ratio = (now.log_prob(actions[part]).sum(1) - old[part]).exp()
        gain = advantages[part]
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        clipped = torch.max(-gain * ratio, -gain * torch.clamp(ratio, 0.8, 1.2)).mean()
        miss = 0.5 * ((critic(states[part]).view(-1) - returns[part]) ** 2).mean()
        loss = clipped - 0.01 * now.entropy().sum(1).mean() + 0.5 * miss
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(actor.parameters(), 0.5)
        optimizer.step()
    print("ppo", epoch, loss.item(), norm.item(), (ratio - 1).abs().max().item())

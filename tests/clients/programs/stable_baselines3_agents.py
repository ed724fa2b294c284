"""stable_baselines3: four agents that learn for a few steps; one is saved and loaded."""

import tempfile

import numpy as np
from stable_baselines3 import A2C, DQN, PPO, SAC

small = {"net_arch": [16]}
late = {"learning_starts": 20, "batch_size": 8}
for kind, game, more in (
    (PPO, "CartPole-v1", {"n_steps": 64, "batch_size": 32, "n_epochs": 2}),
    (A2C, "CartPole-v1", {}),
    (DQN, "CartPole-v1", late | {"train_freq": 4}),
    (SAC, "Pendulum-v1", late),
):
    agent = kind("MlpPolicy", game, seed=0, device="cpu", policy_kwargs=small, **more)
    agent.learn(96)
    seen = np.full(agent.observation_space.shape, 0.1, np.float32)
    print(kind.__name__, sum(p.abs().sum().item() for p in agent.policy.parameters()))
    print(agent.predict(seen, deterministic=True)[0].tolist())
with tempfile.TemporaryDirectory() as folder:
    agent.save(f"{folder}/agent")
    loaded = SAC.load(f"{folder}/agent", device="cpu")
print(loaded.predict(seen, deterministic=True)[0].tolist())

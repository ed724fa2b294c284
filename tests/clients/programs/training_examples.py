"""No package: programs as PyTorch's examples have them: images, words, series, games, a VAE."""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.distributions import Categorical
from torch.optim.lr_scheduler import CosineAnnealingLR, StepLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 8, 3, 1)
        self.dropout = nn.Dropout2d(0.25)
        self.fc = nn.Linear(8 * 5 * 5, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(x)))), 2)
        return F.log_softmax(self.fc(torch.flatten(self.dropout(x), 1)), dim=1)


net = Net()
loader = DataLoader(
    TensorDataset(torch.randn(32, 1, 14, 14), torch.arange(32) % 10), 8, shuffle=True
)
optimizer = optim.Adadelta(net.parameters(), lr=1.0)
scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
for _ in range(2):
    for data, target in loader:
        optimizer.zero_grad()
        loss = F.nll_loss(net(data), target)
        loss.backward()
        optimizer.step()
    scheduler.step()
    print("images", loss.item(), scheduler.get_last_lr())


class Words(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.rnn = getattr(nn, kind)(8, 12, 2, dropout=0.1)
        self.out = nn.Linear(12, 20)

    def forward(self, tokens, state=None):
        found, state = self.rnn(self.embed(tokens), state)
        return self.out(found), state


for kind in ("LSTM", "GRU", "RNN"):
    words = Words(kind)
    optimizer = optim.SGD(words.parameters(), lr=1.0)
    tokens = torch.arange(30).reshape(10, 3) % 20
    for _ in range(2):
        optimizer.zero_grad()
        scores, _ = words(tokens[:-1])
        loss = F.cross_entropy(scores.flatten(0, 1), tokens[1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(words.parameters(), 0.25)
        optimizer.step()
    print(kind, loss.item())

sequence = nn.LSTMCell(1, 6), nn.Linear(6, 1)
series = torch.sin(torch.arange(20.0) / 3).reshape(1, -1, 1)
parameters = [p for each in sequence for p in each.parameters()]
optimizer = optim.LBFGS(parameters, lr=0.5, max_iter=5)


def closure():
    optimizer.zero_grad()
    h = c = torch.zeros(1, 6)
    total = 0.0
    for i in range(19):
        h, c = sequence[0](series[:, i], (h, c))
        total = total + F.mse_loss(sequence[1](h), series[:, i + 1])
    total.backward()
    return total


print("series", optimizer.step(closure).item(), closure().item())

policy = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
choice = Categorical(logits=policy(torch.randn(5, 4)))
actions = choice.sample()
loss = -(choice.log_prob(actions) * torch.arange(5.0)).sum()
loss.backward()
print("policy", actions.tolist(), loss.item(), choice.entropy().mean().item())


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.mean, self.spread = nn.Linear(20, 10), nn.Linear(10, 3), nn.Linear(10, 3)
        self.back = nn.Sequential(nn.Linear(3, 10), nn.ReLU(), nn.Linear(10, 20), nn.Sigmoid())

    def forward(self, x):
        h = F.relu(self.into(x))
        mean, logvar = self.mean(h), self.spread(h)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * logvar)
        return self.back(z), mean, logvar


vae = VAE()
optimizer = optim.Adam(vae.parameters(), lr=1e-2)
scheduler = CosineAnnealingLR(optimizer, 4)
x = torch.rand(8, 20)
for _ in range(4):
    optimizer.zero_grad()
    again, mean, logvar = vae(x)
    loss = F.binary_cross_entropy(again, x, reduction="sum")
    loss = loss - 0.5 * torch.sum(1 + logvar - mean.pow(2) - logvar.exp())
    loss.backward()
    optimizer.step()
    scheduler.step()
print("vae", loss.item())
model = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)
found = model(torch.randn(2, 5, 16), mask=nn.Transformer.generate_square_subsequent_mask(5))
found.sum().backward()
print("transformer", found.std().item())

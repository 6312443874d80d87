"""DIEN. Zhou et al., "Deep Interest Evolution Network for Click-Through Rate Prediction" (AAAI 2019): a GRU over the
history of items, attention to the target item, a GRU whose update gate the attention scales (AUGRU, Equation 7), and
the layers on top with Dice. The public code's sizes (18 a feature, 36 hidden); the item table is cut to `items`."""
import torch
from torch import nn


class Dice(nn.Module):
    """Zhou et al., "Deep Interest Network" (KDD 2018), Equation 9."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.BatchNorm1d(width, affine=False)
        self.alpha = nn.Parameter(torch.zeros(width))

    def forward(self, x):  # [N, width]
        gate = torch.sigmoid(self.norm(x))
        return gate * x + (1 - gate) * self.alpha * x


class Augru(nn.Module):
    """The cell, written out at every step: exporters know no recurrent operator with attention in it."""

    def __init__(self, fan_in, hidden):
        super().__init__()
        self.gates = nn.Linear(fan_in + hidden, 2 * hidden)
        self.candidate = nn.Linear(fan_in + hidden, hidden)

    def forward(self, x, attention, state):  # [N, T, fan_in], [N, T], [N, hidden]
        for step in range(x.shape[1]):
            now = x[:, step]
            reset, update = torch.sigmoid(self.gates(torch.cat([now, state], dim=1))).chunk(2, dim=1)
            candidate = torch.tanh(self.candidate(torch.cat([now, reset * state], dim=1)))
            update = attention[:, step:step + 1] * update
            state = (1 - update) * state + update * candidate
        return state


class Dien(nn.Module):
    def __init__(self, users=10000, items=20000, categories=1600, width=18):
        super().__init__()
        self.user, self.item, self.category = (nn.Embedding(rows, width) for rows in (users, items, categories))
        hidden = 2 * width
        self.interest = nn.GRU(hidden, hidden, batch_first=True)
        self.query = nn.Sequential(nn.Linear(hidden, hidden), nn.PReLU())
        self.attention = nn.Sequential(nn.Linear(4 * hidden, 80), nn.Sigmoid(), nn.Linear(80, 40), nn.Sigmoid(),
                                       nn.Linear(40, 1))
        self.evolution = Augru(hidden, hidden)
        top = width + 4 * hidden
        self.top = nn.Sequential(nn.BatchNorm1d(top), nn.Linear(top, 200), Dice(200), nn.Linear(200, 80), Dice(80),
                                 nn.Linear(80, 2))

    def forward(self, user, item, category, item_history, category_history, mask):  # [N] each, then [N, T]
        target = torch.cat([self.item(item), self.category(category)], dim=1)
        history = torch.cat([self.item(item_history), self.category(category_history)], dim=2)
        behaviour = (history * mask.unsqueeze(2)).sum(dim=1)
        interest, _ = self.interest(history)
        query = self.query(target).unsqueeze(1).expand(-1, interest.shape[1], -1)
        scores = self.attention(torch.cat([query, interest, query - interest, query * interest], dim=2)).squeeze(2)
        attention = torch.softmax(scores.masked_fill(mask == 0, -1e9), dim=1)
        state = self.evolution(interest, attention, torch.zeros_like(interest[:, 0]))
        features = torch.cat([self.user(user), target, behaviour, target * behaviour, state], dim=1)
        return torch.softmax(self.top(features), dim=1)
